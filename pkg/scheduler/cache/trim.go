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

// maxTwins bounds how many pods a trimmer remembers.
const maxTwins = 1024

// trimmer makes objects small before an informer keeps them. It drops what no scheduler reads:
// managedFields, and of a pod what concerns only its kubelet. And it has pods that are alike, as those
// of a gang are, share what they have in common, which nobody may write to anyway. Of 100,000 pods
// that is most of the memory they take. Amounts that take seconds to reckon with are lowered before anybody does.
// Plugins get pods as they are after this.
//
// An informer that lists anew by a watch trims what it gets twice. By the second time a pod shares with
// others that are being read, so whatever is trimmed already must not be written to.
type trimmer struct {
	mu sync.Mutex
	// twins are pods seen lately, by namespace and image, with which the next ones are compared.
	twins map[string]twin
	spec  []byte // of the pod that is being compared; see encode
}

type twin struct {
	pod  *v1.Pod
	spec []byte
}

// NewTransform returns what an informer of the scheduler puts each object through before it keeps it, for others who
// read objects.
func NewTransform() toolscache.TransformFunc { return newTrimmer().trim }

func newTrimmer() *trimmer { return &trimmer{twins: map[string]twin{}} }

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

// share looks for a twin of a pod, and makes the pod the twin of later ones if they differ.
func (t *trimmer) share(pod *v1.Pod) {
	if len(pod.Spec.Containers) == 0 {
		return
	}
	key := pod.Namespace + "/" + pod.Spec.Containers[0].Image
	t.mu.Lock()
	defer t.mu.Unlock()
	t.encode(&pod.Spec)
	twin := t.twins[key]
	if twin.pod != nil && t.shareAll(pod, twin) {
		return
	}
	if len(t.twins) >= maxTwins {
		clear(t.twins) // the next pods are twins again
	}
	twin.pod, twin.spec = pod, append(twin.spec[:0], t.spec...)
	t.twins[key] = twin
}

// encode writes a spec, but for what each pod has of its own, as protobuf, whose maps Kubernetes sorts.
// Equal encodings mean equal specs, and to compare them costs a fraction of what comparing all fields
// would.
func (t *trimmer) encode(spec *v1.PodSpec) {
	common := *spec
	common.NodeName, common.Hostname = "", ""
	size := common.Size()
	t.spec = slices.Grow(t.spec[:0], size)[:size]
	if _, err := common.MarshalToSizedBuffer(t.spec); err != nil {
		t.spec = t.spec[:0] // like no other
	}
}

// shareAll has a pod share with its twin whatever is equal, and reports whether all was.
func (t *trimmer) shareAll(pod *v1.Pod, twin twin) bool {
	labels := maps.Equal(pod.Labels, twin.pod.Labels)
	if labels {
		pod.Labels = twin.pod.Labels
	}
	annotations := maps.Equal(pod.Annotations, twin.pod.Annotations)
	if annotations {
		pod.Annotations = twin.pod.Annotations
	}
	owners := equality.Semantic.DeepEqual(pod.OwnerReferences, twin.pod.OwnerReferences)
	if owners {
		pod.OwnerReferences = twin.pod.OwnerReferences
	}
	alike := len(t.spec) > 0 && bytes.Equal(t.spec, twin.spec)
	if alike {
		node, host := pod.Spec.NodeName, pod.Spec.Hostname
		pod.Spec = twin.pod.Spec
		pod.Spec.NodeName, pod.Spec.Hostname = node, host
	}
	return labels && annotations && owners && alike
}

func trimPod(pod *v1.Pod) {
	delete(pod.Annotations, v1.LastAppliedConfigAnnotation)
	trimContainers(pod.Spec.InitContainers)
	trimContainers(pod.Spec.Containers)
	api.ClampQuantities(pod.Spec.Overhead)
	if pod.Spec.Resources != nil {
		tame(pod.Spec.Resources)
	}
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
		if kept := (v1.Container{Name: c.Name, Image: c.Image, Ports: c.Ports, RestartPolicy: c.RestartPolicy, Resources: c.Resources}); !reflect.DeepEqual(*c, kept) {
			*c = kept
		}
		tame(&c.Resources)
	}
}

// trimStatuses keeps what a container was given, which differs from what it asks for while it is resized.
func trimStatuses(statuses []v1.ContainerStatus) {
	for i := range statuses {
		s := &statuses[i]
		*s = v1.ContainerStatus{Name: s.Name, AllocatedResources: s.AllocatedResources, Resources: s.Resources}
	}
}

func tame(r *v1.ResourceRequirements) { api.ClampQuantities(r.Requests, r.Limits) }
