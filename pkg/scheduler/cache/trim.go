// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"bytes"
	"maps"
	"reflect"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// maxTemplates bounds how many pods a trimmer keeps as templates.
const maxTemplates = 1024

// trimmer reduces the memory of objects before an informer stores them. It does three things:
//
//  1. It removes what no plugin reads: managedFields, and of a pod what concerns only its kubelet.
//  2. It lets equal pods share memory. The first pod of a namespace and image becomes the template
//     of the next ones: labels, annotations, owners and spec that are equal are replaced by those of
//     the template. Objects of an informer are read-only, so they can be shared. Most pods of a gang
//     are equal but for name and node: of 100,000 pods this saves most of the memory.
//  3. It clamps quantities that are so large that computing with them takes seconds.
//
// Plugins get objects as they are after that.
//
// An informer whose list comes as a watch trims each object twice. By the second time a pod may share
// memory with pods that are being read, so the trimmer writes only where something is left to trim.
type trimmer struct {
	mu sync.Mutex
	// templates are recent pods, by namespace and image.
	templates map[string]template
	spec      []byte // the encoded spec of the pod being compared; a buffer
}

type template struct {
	pod  *v1.Pod
	spec []byte // see encode
}

// NewTransform returns the transform of the scheduler's informers, for other readers of objects that
// must see them as plugins do.
func NewTransform() toolscache.TransformFunc { return newTrimmer().trim }

func newTrimmer() *trimmer { return &trimmer{templates: map[string]template{}} }

// trim is the transform of all informers.
func (t *trimmer) trim(obj any) (any, error) {
	if m, err := meta.Accessor(obj); err == nil {
		m.SetManagedFields(nil)
	}
	switch obj := obj.(type) {
	case *v1.Pod:
		trimPod(obj)
		t.share(obj)
	case *v1.PersistentVolumeClaim:
		api.ClampQuantities(obj.Spec.Resources.Requests)
	}
	return obj, nil
}

// share lets a pod share memory with its template. A pod that differs becomes the new template.
func (t *trimmer) share(pod *v1.Pod) {
	if len(pod.Spec.Containers) == 0 {
		return
	}
	key := pod.Namespace + "/" + pod.Spec.Containers[0].Image
	t.mu.Lock()
	defer t.mu.Unlock()
	t.encode(&pod.Spec)
	known := t.templates[key]
	if known.pod != nil && t.shareAll(pod, known) {
		return
	}
	if len(t.templates) >= maxTemplates {
		clear(t.templates) // the next pods become templates again
	}
	known.pod, known.spec = pod, append(known.spec[:0], t.spec...)
	t.templates[key] = known
}

// encode encodes a spec, without the fields that are different in each pod, as protobuf with sorted
// maps. Equal encodings mean equal specs, and comparing them costs a fraction of comparing all
// fields.
func (t *trimmer) encode(spec *v1.PodSpec) {
	common := *spec
	common.NodeName, common.Hostname = "", ""
	size := common.Size()
	t.spec = slices.Grow(t.spec[:0], size)[:size]
	if _, err := common.MarshalToSizedBuffer(t.spec); err != nil {
		t.spec = t.spec[:0] // equal to no other; see shareAll
	}
}

// shareAll replaces what is equal in a pod by that of its template, and reports whether all was equal.
// t.spec holds the encoded spec of the pod.
func (t *trimmer) shareAll(pod *v1.Pod, like template) bool {
	labels := maps.Equal(pod.Labels, like.pod.Labels)
	if labels {
		pod.Labels = like.pod.Labels
	}
	annotations := maps.Equal(pod.Annotations, like.pod.Annotations)
	if annotations {
		pod.Annotations = like.pod.Annotations
	}
	owners := equality.Semantic.DeepEqual(pod.OwnerReferences, like.pod.OwnerReferences)
	if owners {
		pod.OwnerReferences = like.pod.OwnerReferences
	}
	specs := len(t.spec) > 0 && bytes.Equal(t.spec, like.spec)
	if specs {
		node, host := pod.Spec.NodeName, pod.Spec.Hostname
		pod.Spec = like.pod.Spec
		pod.Spec.NodeName, pod.Spec.Hostname = node, host
	}
	return labels && annotations && owners && specs
}

// trimPod removes what no plugin reads from a pod, and clamps its quantities.
func trimPod(pod *v1.Pod) {
	//nolint:staticcheck // S1033: without the guard delete writes to a map that may be shared and being read; see trimmer
	if _, present := pod.Annotations[v1.LastAppliedConfigAnnotation]; present {
		delete(pod.Annotations, v1.LastAppliedConfigAnnotation)
	}
	trimContainers(pod.Spec.InitContainers)
	trimContainers(pod.Spec.Containers)
	api.ClampQuantities(pod.Spec.Overhead)
	if pod.Spec.Resources != nil {
		clampResources(pod.Spec.Resources)
	}
	pod.Spec.Volumes = slices.DeleteFunc(pod.Spec.Volumes, func(v v1.Volume) bool { return !api.BindsToNodes(&v) })
	if len(pod.Spec.Volumes) == 0 {
		pod.Spec.Volumes = nil // frees the array
	}
	pod.Spec.EphemeralContainers, pod.Status.EphemeralContainerStatuses = nil, nil // they request nothing
	trimStatuses(pod.Status.InitContainerStatuses)
	trimStatuses(pod.Status.ContainerStatuses)
}

// trimContainers keeps what decides where a container can run: image, resources, ports, and the
// restart policy, which makes an init container a sidecar.
func trimContainers(containers []v1.Container) {
	for i := range containers {
		c := &containers[i]
		if kept := (v1.Container{Name: c.Name, Image: c.Image, Ports: c.Ports, RestartPolicy: c.RestartPolicy, Resources: c.Resources}); !reflect.DeepEqual(*c, kept) {
			*c = kept
		}
		clampResources(&c.Resources)
	}
}

// trimStatuses keeps the allocated resources of containers, which differ from the requested ones
// during a resize.
func trimStatuses(statuses []v1.ContainerStatus) {
	for i := range statuses {
		s := &statuses[i]
		*s = v1.ContainerStatus{Name: s.Name, AllocatedResources: s.AllocatedResources, Resources: s.Resources}
	}
}

func clampResources(r *v1.ResourceRequirements) { api.ClampQuantities(r.Requests, r.Limits) }
