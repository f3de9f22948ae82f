package cache

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
)

// trim drops what no scheduler reads, before an informer keeps an object: managedFields, and of a pod
// what concerns only its kubelet. Of 100,000 pods that is most of the memory they take. Plugins get
// pods as they are after this.
func trim(obj any) (any, error) {
	if m, err := meta.Accessor(obj); err == nil {
		m.SetManagedFields(nil)
	}
	if pod, ok := obj.(*v1.Pod); ok {
		trimPod(pod)
	}
	return obj, nil
}

func trimPod(pod *v1.Pod) {
	delete(pod.Annotations, v1.LastAppliedConfigAnnotation)
	trimContainers(pod.Spec.InitContainers)
	trimContainers(pod.Spec.Containers)
	pod.Spec.EphemeralContainers, pod.Status.EphemeralContainerStatuses = nil, nil // they ask for nothing
	trimStatuses(pod.Status.InitContainerStatuses)
	trimStatuses(pod.Status.ContainerStatuses)
}

// trimContainers keeps what says where a container can run: image, resources, ports, and for init
// containers whether they stay.
func trimContainers(containers []v1.Container) {
	for i := range containers {
		c := &containers[i]
		*c = v1.Container{Name: c.Name, Image: c.Image, Ports: c.Ports, RestartPolicy: c.RestartPolicy, Resources: c.Resources}
	}
}

// trimStatuses keeps what a container was given, which differs from what it asks for while it is resized.
func trimStatuses(statuses []v1.ContainerStatus) {
	for i := range statuses {
		s := &statuses[i]
		*s = v1.ContainerStatus{Name: s.Name, AllocatedResources: s.AllocatedResources, Resources: s.Resources}
	}
}
