// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"reflect"
	"strconv"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

func TestTrim(t *testing.T) {
	quantity := v1.ResourceList{v1.ResourceCPU: resource.MustParse("2")}
	requests := v1.ResourceRequirements{Requests: quantity}
	kept := v1.Container{Name: "main", Image: "image", Ports: []v1.ContainerPort{{HostPort: 80}}, RestartPolicy: ptr.To(v1.ContainerRestartPolicyAlways), Resources: requests}
	full := kept
	full.Command, full.Args = []string{"train"}, []string{"--fast"}
	full.Env = []v1.EnvVar{{Name: "KEY", Value: "value"}}
	full.VolumeMounts = []v1.VolumeMount{{Name: "data", MountPath: "/data"}}
	full.LivenessProbe = &v1.Probe{PeriodSeconds: 10}
	given := v1.ContainerStatus{Name: "main", AllocatedResources: quantity, Resources: &requests}
	reported := given
	reported.ImageID, reported.ContainerID = "sha256:0", "containerd://0"
	reported.State.Running = &v1.ContainerStateRunning{}

	scratch := v1.Volume{Name: "scratch", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}
	claimed := v1.Volume{Name: "data", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}

	// Quantities with which computing would take minutes are clamped to the largest one.
	huge := func() v1.ResourceList { return v1.ResourceList{v1.ResourceCPU: resource.MustParse("1e99999999")} }
	most := v1.ResourceList{v1.ResourceCPU: resource.MustParse(fmt.Sprint(api.MaxQuantity))}

	for name, test := range map[string]struct{ given, want metav1.Object }{
		"huge quantities of a pod": {
			&v1.Pod{Spec: v1.PodSpec{
				InitContainers: []v1.Container{{Resources: v1.ResourceRequirements{Requests: huge()}}},
				Containers:     []v1.Container{{Resources: v1.ResourceRequirements{Requests: huge(), Limits: huge()}}},
				Resources:      &v1.ResourceRequirements{Requests: huge()},
				Overhead:       huge(),
			}},
			&v1.Pod{Spec: v1.PodSpec{
				InitContainers: []v1.Container{{Resources: v1.ResourceRequirements{Requests: most}}},
				Containers:     []v1.Container{{Resources: v1.ResourceRequirements{Requests: most, Limits: most}}},
				Resources:      &v1.ResourceRequirements{Requests: most},
				Overhead:       most,
			}},
		},
		"huge requests of a claim": {
			&v1.PersistentVolumeClaim{Spec: v1.PersistentVolumeClaimSpec{Resources: v1.VolumeResourceRequirements{Requests: huge()}}},
			&v1.PersistentVolumeClaim{Spec: v1.PersistentVolumeClaimSpec{Resources: v1.VolumeResourceRequirements{Requests: most}}},
		},
		"managed fields": {
			&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}}},
			&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}},
		},
		"the annotation of kubectl apply": {
			&v1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1.LastAppliedConfigAnnotation: "{}", "kept": ""}}},
			&v1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"kept": ""}}},
		},
		"fields of containers for the kubelet": {
			&v1.Pod{Spec: v1.PodSpec{InitContainers: []v1.Container{full}, Containers: []v1.Container{full, full}, NodeName: "n"}},
			&v1.Pod{Spec: v1.PodSpec{InitContainers: []v1.Container{kept}, Containers: []v1.Container{kept, kept}, NodeName: "n"}},
		},
		"statuses of containers": {
			&v1.Pod{Status: v1.PodStatus{InitContainerStatuses: []v1.ContainerStatus{reported}, ContainerStatuses: []v1.ContainerStatus{reported}, Phase: v1.PodRunning}},
			&v1.Pod{Status: v1.PodStatus{InitContainerStatuses: []v1.ContainerStatus{given}, ContainerStatuses: []v1.ContainerStatus{given}, Phase: v1.PodRunning}},
		},
		"ephemeral containers": {
			&v1.Pod{
				Spec:   v1.PodSpec{EphemeralContainers: []v1.EphemeralContainer{{}}},
				Status: v1.PodStatus{EphemeralContainerStatuses: []v1.ContainerStatus{reported}},
			},
			&v1.Pod{},
		},
		"volumes that every node provides": {
			&v1.Pod{Spec: v1.PodSpec{Volumes: []v1.Volume{scratch, claimed, scratch}}},
			&v1.Pod{Spec: v1.PodSpec{Volumes: []v1.Volume{claimed}}},
		},
		"all volumes, if every node provides them": {
			&v1.Pod{Spec: v1.PodSpec{Volumes: []v1.Volume{scratch}}},
			&v1.Pod{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := newTrimmer().trim(test.given)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(any(test.want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestEqualPodsShare checks what two pods share that are trimmed one after the other. Their content must
// not change.
func TestEqualPodsShare(t *testing.T) {
	newPod := func(name string, change func(*v1.Pod)) *v1.Pod {
		pod := &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: name, Labels: map[string]string{"job": "a"}, Annotations: map[string]string{"for": "a"},
				OwnerReferences: []metav1.OwnerReference{{Name: "a"}},
			},
			Spec: v1.PodSpec{
				NodeName: "node-of-" + name, Hostname: name,
				Containers: []v1.Container{{Image: "image", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}}}},
			},
		}
		change(pod)
		return pod
	}
	type shared struct{ Labels, Annotations, Owners, Spec bool }
	for name, test := range map[string]struct {
		given func(*v1.Pod) // how the second pod differs
		want  shared
	}{
		"all but names and nodes":     {func(*v1.Pod) {}, shared{true, true, true, true}},
		"not labels that differ":      {func(p *v1.Pod) { p.Labels["job"] = "b" }, shared{false, true, true, true}},
		"not annotations that differ": {func(p *v1.Pod) { p.Annotations["for"] = "b" }, shared{true, false, true, true}},
		"not owners that differ":      {func(p *v1.Pod) { p.OwnerReferences[0].Name = "b" }, shared{true, true, false, true}},
		"not requests that differ": {func(p *v1.Pod) { p.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = resource.MustParse("2") },
			shared{true, true, true, false}},
		"nothing with another namespace": {func(p *v1.Pod) { p.Namespace = "other" }, shared{}},
		"nothing with another image":     {func(p *v1.Pod) { p.Spec.Containers[0].Image = "other" }, shared{}},
	} {
		t.Run(name, func(t *testing.T) {
			trimmer := newTrimmer()
			first, second := newPod("p-0", func(*v1.Pod) {}), newPod("p-1", test.given)
			want := second.DeepCopy()
			for _, pod := range []*v1.Pod{first, second} {
				if _, err := trimmer.trim(pod); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(want, second); diff != "" {
				t.Errorf("the pod has changed (-want +got):\n%s", diff)
			}
			same := func(a, b map[string]string) bool { return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() }
			got := shared{
				same(first.Labels, second.Labels), same(first.Annotations, second.Annotations),
				&first.OwnerReferences[0] == &second.OwnerReferences[0], &first.Spec.Containers[0] == &second.Spec.Containers[0],
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestTrimTwice needs the race detector. An informer whose list comes as a watch trims pods twice; the
// second time they share memory with pods that are being read.
func TestTrimTwice(t *testing.T) {
	trimmer := newTrimmer()
	trimmed := func(name string) *v1.Pod {
		pod := &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{v1.LastAppliedConfigAnnotation: "{}"}},
			Spec: v1.PodSpec{
				InitContainers: []v1.Container{{Image: "image", ImagePullPolicy: v1.PullAlways}},
				Containers:     []v1.Container{{Image: "image", Command: []string{"train"}}},
				Volumes:        []v1.Volume{{Name: "scratch", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}},
				Overhead:       v1.ResourceList{v1.ResourceCPU: resource.MustParse("1e99999999")},
			},
		}
		if _, err := trimmer.trim(pod); err != nil {
			t.Fatal(err)
		}
		return pod
	}
	first, second := trimmed("p-0"), trimmed("p-1")
	var reading sync.WaitGroup
	reading.Go(func() { first.DeepCopy() })
	if _, err := trimmer.trim(second); err != nil {
		t.Fatal(err)
	}
	reading.Wait()
}

func TestTemplatesAreBounded(t *testing.T) {
	trimmer := newTrimmer()
	for i := range 3 * maxTemplates {
		pod := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Image: strconv.Itoa(i)}}}}
		if _, err := trimmer.trim(pod); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(trimmer.templates); got > maxTemplates {
		t.Errorf("%d templates are kept, more than %d", got, maxTemplates)
	}
}
