package predicates

import (
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

// store is an API server with nodes n1 and n2 in zones a and b, where tests play the volume controller.
type store struct {
	t       *testing.T
	kube    *fake.Clientset
	profile *framework.Profile
	given   given
	refuse  func(resource, name string) error // updates; nil refuses none

	mu      sync.Mutex
	version int
}

// inStore runs a test in a bubble of its own, over the objects and pods that wait.
func inStore(t *testing.T, objects []runtime.Object, pods []*v1.Pod, test func(*testing.T, *store)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &store{t: t, given: given{nodes: []*v1.Node{node("n1", zone("a")), node("n2", zone("b"))}, pods: pods}}
		s.given.arguments = conf.Arguments{"predicate.VolumeBindTimeoutSeconds": "60"}
		for _, n := range s.given.nodes {
			objects = append(objects, n)
		}
		for _, p := range pods {
			objects = append(objects, p)
		}
		for _, o := range objects {
			s.stamp(o)
		}
		s.kube = fake.NewClientset(objects...)
		s.kube.PrependReactor("update", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
			object := action.(clienttesting.UpdateAction).GetObject().DeepCopyObject()
			if err := s.objection(action, object); err != nil {
				return true, nil, err
			}
			s.stamp(object)
			return true, object, s.kube.Tracker().Update(action.GetResource(), object, action.GetNamespace())
		})
		factory := informers.NewSharedInformerFactory(s.kube, 0)
		s.given.handle = framework.Handle{Informers: factory, Kube: s.kube}
		s.profile = s.given.profile(t)
		factory.Core().V1().Pods().Informer()
		factory.Core().V1().Nodes().Informer()
		factory.Start(t.Context().Done())
		synctest.Wait()
		test(t, s)
	})
}

func (s *store) stamp(object runtime.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.access(object).SetResourceVersion(strconv.Itoa(s.version))
}

func (s *store) access(object runtime.Object) metav1.Object {
	m, err := meta.Accessor(object)
	if err != nil {
		panic(err)
	}
	return m
}

// objection is why the API server does not take an update: somebody else was faster, or the test says so.
func (s *store) objection(action clienttesting.Action, object runtime.Object) error {
	m, what := s.access(object), action.GetResource()
	if s.refuse != nil {
		if err := s.refuse(what.Resource+"/"+action.GetSubresource(), m.GetName()); err != nil {
			return err
		}
	}
	current, err := s.kube.Tracker().Get(what, action.GetNamespace(), m.GetName())
	if err == nil && s.access(current).GetResourceVersion() != m.GetResourceVersion() {
		err = apierrors.NewConflict(what.GroupResource(), m.GetName(), errors.New("it has changed"))
	}
	return err
}

// claim shows a claim as the API server has it.
func (s *store) claim(name string) *v1.PersistentVolumeClaim {
	s.t.Helper()
	claim, err := s.kube.CoreV1().PersistentVolumeClaims("default").Get(s.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return claim
}

func (s *store) update(claim *v1.PersistentVolumeClaim) {
	s.t.Helper()
	if _, err := s.kube.CoreV1().PersistentVolumeClaims("default").Update(s.t.Context(), claim, metav1.UpdateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// bind does what the volume controller does in the end.
func (s *store) bind(name, volume string) {
	claim := s.claim(name)
	claim.Spec.VolumeName, claim.Status.Phase = volume, v1.ClaimBound
	if claim.Annotations == nil {
		claim.Annotations = map[string]string{}
	}
	claim.Annotations[storagehelpers.AnnBindCompleted] = "yes"
	s.update(claim)
}

// TestReservationsOfASession places two pods, one after the other, and looks where the second one could go
// before, meanwhile, and once the first placement is undone.
func TestReservationsOfASession(t *testing.T) {
	locals := unprovisioned(class("local", storagev1.VolumeBindingWaitForFirstConsumer))
	none := "node(s) didn't find available persistent volumes to bind"
	type places map[string]string
	tests := map[string]struct {
		objects []runtime.Object
		pods    []*v1.Pod
		free    places
		taken   places
	}{
		"a volume is for one claim": {
			objects: []runtime.Object{locals, local("disk", ""), unbound("one", "local"), unbound("two", "local")},
			pods:    []*v1.Pod{pod("p", claim("one")), pod("q", claim("two"))},
			free:    places{"n1": fits, "n2": fits}, taken: places{"n1": none, "n2": none},
		},
		"of two volumes each claim gets one": {
			objects: []runtime.Object{locals, local("first", "a"), local("second", "b"), unbound("one", "local"), unbound("two", "local")},
			pods:    []*v1.Pod{pod("p", claim("one")), pod("q", claim("two"))},
			free:    places{"n1": fits, "n2": fits}, taken: places{"n1": none, "n2": fits},
		},
		"volumes that are made are no one's in advance": {
			objects: []runtime.Object{class("later", storagev1.VolumeBindingWaitForFirstConsumer), unbound("one", "later"), unbound("two", "later")},
			pods:    []*v1.Pod{pod("p", claim("one")), pod("q", claim("two"))},
			free:    places{"n1": fits, "n2": fits}, taken: places{"n1": fits, "n2": fits},
		},
		"a claim whose volume is made for another pod has no say": {
			objects: []runtime.Object{class("later", storagev1.VolumeBindingWaitForFirstConsumer), unbound("one", "later")},
			pods:    []*v1.Pod{pod("p", claim("one")), pod("q", claim("one"))},
			free:    places{"n1": fits, "n2": fits}, taken: places{"n1": fits, "n2": fits},
		},
		"a claim that gets a volume for another pod is where that is": {
			objects: []runtime.Object{locals, local("first", "a"), local("second", "b"), unbound("one", "local")},
			pods:    []*v1.Pod{pod("p", claim("one")), pod("q", claim("one"))},
			free:    places{"n1": fits, "n2": fits}, taken: places{"n1": fits, "n2": none},
		},
		"a device is for one claim": {
			objects: []runtime.Object{gpuClass(), gpus("n1", "a"), gpus("n2", "b"), wants("one", 1), wants("two", 1)},
			pods:    []*v1.Pod{pod("p", using("one")), pod("q", using("two"))},
			free:    places{"n1": fits, "n2": fits}, taken: places{"n1": noDevice, "n2": fits},
		},
		"of two devices each claim gets one": {
			objects: []runtime.Object{gpuClass(), gpus("n1", "a", "b"), wants("one", 1), wants("two", 1)},
			pods:    []*v1.Pod{pod("p", using("one")), pod("q", using("two"))},
			free:    places{"n1": fits, "n2": noDevice}, taken: places{"n1": fits, "n2": noDevice},
		},
		"a claim that gets devices for another pod is where they are": {
			objects: []runtime.Object{gpuClass(), gpus("n1", "a"), gpus("n2", "b"), wants("one", 1)},
			pods:    []*v1.Pod{pod("p", using("one")), pod("q", using("one"))},
			free:    places{"n1": fits, "n2": fits}, taken: places{"n1": fits, "n2": elsewhere},
		},
		"a claim may get a device that all nodes reach": {
			objects: []runtime.Object{gpuClass(), gpus("", "a"), wants("one", 1)},
			pods:    []*v1.Pod{pod("p", using("one")), pod("q", using("one"))},
			free:    places{"n1": fits, "n2": fits}, taken: places{"n1": fits, "n2": fits},
		},
		"volumes that are made are attached, too": {
			objects: []runtime.Object{
				class("later", storagev1.VolumeBindingWaitForFirstConsumer), unbound("one", "later"), unbound("two", "later"),
				attachable("n1", 1), attachable("n2", 1),
			},
			pods: []*v1.Pod{pod("p", claim("one")), pod("q", claim("two"))},
			free: places{"n1": fits, "n2": fits}, taken: places{"n1": "node(s) exceed max volume count", "n2": fits},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			inStore(t, tt.objects, tt.pods, func(t *testing.T, s *store) {
				ssn, cluster := s.given.openWith(t, s.profile)
				expect(t, tt.free, verdicts(ssn, "q", api.Now))
				stmt := ssn.Statement()
				stmt.Allocate(taskNamed(cluster, "p"), cluster.Node("n1"))
				expect(t, tt.taken, verdicts(ssn, "q", api.Now))
				stmt.Discard()
				expect(t, tt.free, verdicts(ssn, "q", api.Now))
				stmt.Pipeline(taskNamed(cluster, "p"), cluster.Node("n1"))
				expect(t, tt.taken, verdicts(ssn, "q", api.Now))
				stmt.Revoke(taskNamed(cluster, "p"))
				expect(t, tt.free, verdicts(ssn, "q", api.Now))
			})
		})
	}
}

// TestFulfil places the pod p on n1 and has its claim data bound.
func TestFulfil(t *testing.T) {
	later := class("later", storagev1.VolumeBindingWaitForFirstConsumer)
	tests := map[string]struct {
		objects []runtime.Object
		// controller does the rest once the claim or the volume is written.
		controller func(*store)
		want       string        // the error
		takes      time.Duration // until it is known
	}{
		"the volume is made": {
			objects:    []runtime.Object{later, unbound("data", "later"), disk("made", "a")},
			controller: func(s *store) { s.bind("data", "made") },
			takes:      time.Second,
		},
		"the volume is made elsewhere": {
			objects:    []runtime.Object{later, unbound("data", "later"), disk("made", "b")},
			controller: func(s *store) { s.bind("data", "made") },
			want:       `the volumes of pod p on node n1: binding volumes: pv "made" node affinity doesn't match node "n1": no matching NodeSelectorTerms`,
			takes:      time.Second,
		},
		"the provisioner gives up": {
			objects: []runtime.Object{later, unbound("data", "later")},
			controller: func(s *store) {
				claim := s.claim("data")
				if node := claim.Annotations[storagehelpers.AnnSelectedNode]; node != "n1" {
					s.t.Errorf("the node selected for the claim is %q, want n1", node)
				}
				claim.Annotations = nil
				s.update(claim)
			},
			want:  `claim data of pod p on node n1: binding volumes: selectedNode annotation reset for PVC "data"`,
			takes: time.Second,
		},
		"nobody makes the volume": {
			objects:    []runtime.Object{later, unbound("data", "later")},
			controller: func(*store) {},
			want:       "claim data of pod p on node n1: not bound within 1m0s",
			takes:      time.Minute,
		},
		"there is a volume": {
			objects: []runtime.Object{
				unprovisioned(class("local", storagev1.VolumeBindingWaitForFirstConsumer)), unbound("data", "local"), local("disk", "a"),
			},
			controller: func(s *store) {
				volume, err := s.kube.CoreV1().PersistentVolumes().Get(s.t.Context(), "disk", metav1.GetOptions{})
				if err != nil || volume.Spec.ClaimRef == nil || volume.Spec.ClaimRef.Name != "data" {
					s.t.Errorf("the volume is not for the claim: %v", volume.Spec.ClaimRef)
				}
				s.bind("data", "disk")
			},
			takes: time.Second,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			inStore(t, tt.objects, []*v1.Pod{pod("p", claim("data"))}, func(t *testing.T, s *store) {
				ssn, cluster := s.given.openWith(t, s.profile)
				stmt := ssn.Statement()
				stmt.Allocate(taskNamed(cluster, "p"), cluster.Node("n1"))
				reservations := stmt.Decisions()[0].External
				if len(reservations) != 1 {
					t.Fatalf("%d reservations, want 1", len(reservations))
				}
				began, failed := time.Now(), make(chan error, 1)
				go func() { failed <- reservations[0].Commit(t.Context()) }()
				synctest.Wait()
				tt.controller(s)
				got := ""
				if err := <-failed; err != nil {
					got = err.Error()
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("error (-want +got):\n%s", diff)
				}
				if took := time.Since(began); took != tt.takes {
					t.Errorf("known after %s, want %s", took, tt.takes)
				}
			})
		})
	}
}

// TestFulfilShared places the pods p on n1 and q on n2, which share the claim data.
func TestFulfilShared(t *testing.T) {
	tests := map[string]struct {
		volume string // zone of the volume that is made
		gone   bool   // p is not placed after all
		want   []string
	}{
		"a volume that is everywhere": {want: []string{"", ""}},
		"a volume of one node": {volume: "a", want: []string{
			"", `the volumes of pod q on node n2: shared claim data is bound to volume made, which the node cannot use: no matching NodeSelectorTerms`,
		}},
		"a volume that is not made, because the other pod is not placed": {gone: true, want: []string{
			"", "claim data of pod q on node n2: claim data is not going to be bound for the pod that shares it",
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			objects := []runtime.Object{class("later", storagev1.VolumeBindingWaitForFirstConsumer), unbound("data", "later"), disk("made", tt.volume)}
			pods := []*v1.Pod{pod("p", claim("data")), pod("q", claim("data"))}
			inStore(t, objects, pods, func(t *testing.T, s *store) {
				ssn, cluster := s.given.openWith(t, s.profile)
				stmt := ssn.Statement()
				stmt.Allocate(taskNamed(cluster, "p"), cluster.Node("n1"))
				stmt.Allocate(taskNamed(cluster, "q"), cluster.Node("n2"))
				got := make([]string, 2)
				for i, d := range stmt.Decisions() {
					if i == 0 && tt.gone {
						d.UnreserveExternal()
						continue
					}
					go func() {
						if err := d.External[0].Commit(t.Context()); err != nil {
							got[i] = err.Error()
						}
					}()
				}
				synctest.Wait()
				if !tt.gone {
					s.bind("data", "made")
				}
				time.Sleep(5 * time.Second)
				synctest.Wait()
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("errors (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestNothingIsReservedWithoutNeed(t *testing.T) {
	tests := map[string]*v1.Pod{
		"a pod without volumes":   pod("p"),
		"a pod with a bound one":  pod("p", claim("data")),
		"a pod with a plain disk": pod("p", image("pool/image")),
	}
	for name, p := range tests {
		t.Run(name, func(t *testing.T) {
			inStore(t, []runtime.Object{bound("data", "disk"), disk("disk", "")}, []*v1.Pod{p}, func(t *testing.T, s *store) {
				ssn, cluster := s.given.openWith(t, s.profile)
				stmt := ssn.Statement()
				stmt.Allocate(taskNamed(cluster, "p"), cluster.Node("n1"))
				if got := stmt.Decisions()[0].External; got != nil {
					t.Errorf("%d reservations, want none", len(got))
				}
			})
		})
	}
}
