package cache

import (
	"maps"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// maxTwins bounds how many pods a trimmer remembers.
const maxTwins = 1024

// trimmer makes objects small before an informer keeps them. It drops what no scheduler reads:
// managedFields, and of a pod what concerns only its kubelet. And it has pods that are alike, as those
// of a gang are, share what they have in common, which nobody may write to anyway. Of 100,000 pods
// that is most of the memory they take. Plugins get pods as they are after this.
type trimmer struct {
	mu sync.Mutex
	// twins are pods seen lately, by namespace and image, with which the next ones are compared.
	twins map[string]*v1.Pod
}

func newTrimmer() *trimmer { return &trimmer{twins: map[string]*v1.Pod{}} }

// trim is the transform of all informers.
func (t *trimmer) trim(obj any) (any, error) {
	if m, err := meta.Accessor(obj); err == nil {
		m.SetManagedFields(nil)
	}
	if pod, ok := obj.(*v1.Pod); ok {
		trimPod(pod)
		t.share(pod)
	}
	return obj, nil
}

// share looks for a twin of a pod, and makes the pod the twin of later ones if they differ.
func (t *trimmer) share(pod *v1.Pod) {
	if len(pod.Spec.Containers) == 0 {
		return
	}
	key := pod.Namespace + "/" + pod.Spec.Containers[0].Image
	t.mu.Lock()
	defer t.mu.Unlock()
	if twin := t.twins[key]; twin != nil && shareAll(pod, twin) {
		return
	}
	if len(t.twins) >= maxTwins {
		clear(t.twins) // the next pods are twins again
	}
	t.twins[key] = pod
}

// shareAll has a pod share with its twin whatever is equal, and reports whether all was.
func shareAll(pod, twin *v1.Pod) bool {
	labels := maps.Equal(pod.Labels, twin.Labels)
	if labels {
		pod.Labels = twin.Labels
	}
	annotations := maps.Equal(pod.Annotations, twin.Annotations)
	if annotations {
		pod.Annotations = twin.Annotations
	}
	owners := equality.Semantic.DeepEqual(pod.OwnerReferences, twin.OwnerReferences)
	if owners {
		pod.OwnerReferences = twin.OwnerReferences
	}
	spec := twin.Spec
	spec.NodeName, spec.Hostname = pod.Spec.NodeName, pod.Spec.Hostname // their own, always
	alike := equality.Semantic.DeepEqual(&pod.Spec, &spec)
	if alike {
		pod.Spec = spec
	}
	return labels && annotations && owners && alike
}

func trimPod(pod *v1.Pod) {
	delete(pod.Annotations, v1.LastAppliedConfigAnnotation)
	trimContainers(pod.Spec.InitContainers)
	trimContainers(pod.Spec.Containers)
	pod.Spec.Volumes = slices.DeleteFunc(pod.Spec.Volumes, func(v v1.Volume) bool { return !api.BindsToNodes(&v) })
	if len(pod.Spec.Volumes) == 0 {
		pod.Spec.Volumes = nil // lets go of the array
	}
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
