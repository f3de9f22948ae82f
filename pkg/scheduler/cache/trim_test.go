package cache

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestTrim(t *testing.T) {
	amount := v1.ResourceList{v1.ResourceCPU: resource.MustParse("2")}
	asks := v1.ResourceRequirements{Requests: amount}
	kept := v1.Container{Name: "main", Image: "image", Ports: []v1.ContainerPort{{HostPort: 80}}, RestartPolicy: ptr.To(v1.ContainerRestartPolicyAlways), Resources: asks}
	furnished := kept
	furnished.Command, furnished.Args = []string{"train"}, []string{"--fast"}
	furnished.Env = []v1.EnvVar{{Name: "KEY", Value: "value"}}
	furnished.VolumeMounts = []v1.VolumeMount{{Name: "data", MountPath: "/data"}}
	furnished.LivenessProbe = &v1.Probe{PeriodSeconds: 10}
	given := v1.ContainerStatus{Name: "main", AllocatedResources: amount, Resources: &asks}
	told := given
	told.ImageID, told.ContainerID = "sha256:0", "containerd://0"
	told.State.Running = &v1.ContainerStateRunning{}

	for name, test := range map[string]struct{ given, want metav1.Object }{
		"who wrote what in a node": {
			&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}}},
			&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}},
		},
		"what kubectl applied": {
			&v1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1.LastAppliedConfigAnnotation: "{}", "kept": ""}}},
			&v1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"kept": ""}}},
		},
		"what containers do": {
			&v1.Pod{Spec: v1.PodSpec{InitContainers: []v1.Container{furnished}, Containers: []v1.Container{furnished, furnished}, NodeName: "n"}},
			&v1.Pod{Spec: v1.PodSpec{InitContainers: []v1.Container{kept}, Containers: []v1.Container{kept, kept}, NodeName: "n"}},
		},
		"how containers do": {
			&v1.Pod{Status: v1.PodStatus{InitContainerStatuses: []v1.ContainerStatus{told}, ContainerStatuses: []v1.ContainerStatus{told}, Phase: v1.PodRunning}},
			&v1.Pod{Status: v1.PodStatus{InitContainerStatuses: []v1.ContainerStatus{given}, ContainerStatuses: []v1.ContainerStatus{given}, Phase: v1.PodRunning}},
		},
		"who debugs": {
			&v1.Pod{
				Spec:   v1.PodSpec{EphemeralContainers: []v1.EphemeralContainer{{}}, Volumes: []v1.Volume{{Name: "data"}}},
				Status: v1.PodStatus{EphemeralContainerStatuses: []v1.ContainerStatus{told}},
			},
			&v1.Pod{Spec: v1.PodSpec{Volumes: []v1.Volume{{Name: "data"}}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := trim(test.given)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(any(test.want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
