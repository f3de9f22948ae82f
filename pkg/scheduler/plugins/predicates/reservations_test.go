// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

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

// fakeAPIServer is an API server with nodes n1 and n2 in zones a and b, in which tests act as the volume controller.
type fakeAPIServer struct {
	t         *testing.T
	kube      *fake.Clientset
	profile   *framework.Profile
	given     given
	updateErr func(resource, name string) error // of updates; nil means none fails

	mu      sync.Mutex
	version int
}

// runWithAPIServer runs a test in its own synctest bubble, with the objects and the pending pods.
func runWithAPIServer(t *testing.T, objects []runtime.Object, pods []*v1.Pod, test func(*testing.T, *fakeAPIServer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &fakeAPIServer{t: t, given: given{nodes: []*v1.Node{node("n1", zone("a")), node("n2", zone("b"))}, pods: pods}}
		s.given.arguments = conf.Arguments{"predicate.VolumeBindTimeoutSeconds": "60"}
		for _, n := range s.given.nodes {
			objects = append(objects, n)
		}
		for _, p := range pods {
			objects = append(objects, p)
		}
		for _, o := range objects {
			s.setResourceVersion(o)
		}
		s.kube = fake.NewClientset(objects...)
		s.kube.PrependReactor("update", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
			object := action.(clienttesting.UpdateAction).GetObject().DeepCopyObject()
			if err := s.updateError(action, object); err != nil {
				return true, nil, err
			}
			s.setResourceVersion(object)
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

func (s *fakeAPIServer) setResourceVersion(object runtime.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.metadata(object).SetResourceVersion(strconv.Itoa(s.version))
}

func (s *fakeAPIServer) metadata(object runtime.Object) metav1.Object {
	m, err := meta.Accessor(object)
	if err != nil {
		panic(err)
	}
	return m
}

// updateError returns why the API server rejects an update: a conflict, or the fault of the test.
func (s *fakeAPIServer) updateError(action clienttesting.Action, object runtime.Object) error {
	m, what := s.metadata(object), action.GetResource()
	if s.updateErr != nil {
		if err := s.updateErr(what.Resource+"/"+action.GetSubresource(), m.GetName()); err != nil {
			return err
		}
	}
	current, err := s.kube.Tracker().Get(what, action.GetNamespace(), m.GetName())
	if err == nil && s.metadata(current).GetResourceVersion() != m.GetResourceVersion() {
		err = apierrors.NewConflict(what.GroupResource(), m.GetName(), errors.New("it has changed"))
	}
	return err
}

// claim returns a claim from the API server.
func (s *fakeAPIServer) claim(name string) *v1.PersistentVolumeClaim {
	s.t.Helper()
	claim, err := s.kube.CoreV1().PersistentVolumeClaims("default").Get(s.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return claim
}

func (s *fakeAPIServer) update(claim *v1.PersistentVolumeClaim) {
	s.t.Helper()
	if _, err := s.kube.CoreV1().PersistentVolumeClaims("default").Update(s.t.Context(), claim, metav1.UpdateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// bind binds a claim to a volume like the volume controller.
func (s *fakeAPIServer) bind(name, volume string) {
	claim := s.claim(name)
	claim.Spec.VolumeName, claim.Status.Phase = volume, v1.ClaimBound
	if claim.Annotations == nil {
		claim.Annotations = map[string]string{}
	}
	claim.Annotations[storagehelpers.AnnBindCompleted] = "yes"
	s.update(claim)
}

// TestReservationsOfASession places two pods, one after the other, and checks where the second pod fits before the
// first placement, after it, and after it is undone.
func TestReservationsOfASession(t *testing.T) {
	locals := noProvisioner(class("local", storagev1.VolumeBindingWaitForFirstConsumer))
	none := "node(s) didn't find available persistent volumes to bind"
	type places map[string]string
	tests := map[string]struct {
		objects []runtime.Object
		pods    []*v1.Pod
		free    places
		taken   places
	}{
		"a volume binds to one claim": {
			objects: []runtime.Object{locals, local("disk", ""), unbound("one", "local"), unbound("two", "local")},
			pods:    []*v1.Pod{pod("p", claim("one")), pod("q", claim("two"))},
			free:    places{"n1": fits, "n2": fits}, taken: places{"n1": none, "n2": none},
		},
		"of two volumes each claim gets one": {
			objects: []runtime.Object{locals, local("first", "a"), local("second", "b"), unbound("one", "local"), unbound("two", "local")},
			pods:    []*v1.Pod{pod("p", claim("one")), pod("q", claim("two"))},
			free:    places{"n1": fits, "n2": fits}, taken: places{"n1": none, "n2": fits},
		},
		"volumes to be provisioned are not reserved": {
			objects: []runtime.Object{class("later", storagev1.VolumeBindingWaitForFirstConsumer), unbound("one", "later"), unbound("two", "later")},
			pods:    []*v1.Pod{pod("p", claim("one")), pod("q", claim("two"))},
			free:    places{"n1": fits, "n2": fits}, taken: places{"n1": fits, "n2": fits},
		},
		"a shared claim whose volume is provisioned for another pod does not restrict nodes": {
			objects: []runtime.Object{class("later", storagev1.VolumeBindingWaitForFirstConsumer), unbound("one", "later")},
			pods:    []*v1.Pod{pod("p", claim("one")), pod("q", claim("one"))},
			free:    places{"n1": fits, "n2": fits}, taken: places{"n1": fits, "n2": fits},
		},
		"a shared claim that gets an existing volume restricts nodes to that volume": {
			objects: []runtime.Object{locals, local("first", "a"), local("second", "b"), unbound("one", "local")},
			pods:    []*v1.Pod{pod("p", claim("one")), pod("q", claim("one"))},
			free:    places{"n1": fits, "n2": fits}, taken: places{"n1": fits, "n2": none},
		},
		"a device is allocated to one claim": {
			objects: []runtime.Object{gpuClass(), gpus("n1", "a"), gpus("n2", "b"), deviceClaim("one", 1), deviceClaim("two", 1)},
			pods:    []*v1.Pod{pod("p", usesClaim("one")), pod("q", usesClaim("two"))},
			free:    places{"n1": fits, "n2": fits}, taken: places{"n1": inUse, "n2": fits},
		},
		"of two devices each claim gets one": {
			objects: []runtime.Object{gpuClass(), gpus("n1", "a", "b"), deviceClaim("one", 1), deviceClaim("two", 1)},
			pods:    []*v1.Pod{pod("p", usesClaim("one")), pod("q", usesClaim("two"))},
			free:    places{"n1": fits, "n2": without}, taken: places{"n1": fits, "n2": without},
		},
		"a shared claim restricts nodes to its reserved devices": {
			objects: []runtime.Object{gpuClass(), gpus("n1", "a"), gpus("n2", "b"), deviceClaim("one", 1)},
			pods:    []*v1.Pod{pod("p", usesClaim("one")), pod("q", usesClaim("one"))},
			free:    places{"n1": fits, "n2": fits}, taken: places{"n1": fits, "n2": elsewhere},
		},
		"a claim may get a device that all nodes can access": {
			objects: []runtime.Object{gpuClass(), gpus("", "a"), deviceClaim("one", 1)},
			pods:    []*v1.Pod{pod("p", usesClaim("one")), pod("q", usesClaim("one"))},
			free:    places{"n1": fits, "n2": fits}, taken: places{"n1": fits, "n2": fits},
		},
		"provisioned volumes count for the attach limit": {
			objects: []runtime.Object{
				class("later", storagev1.VolumeBindingWaitForFirstConsumer), unbound("one", "later"), unbound("two", "later"),
				attachLimit("n1", 1), attachLimit("n2", 1),
			},
			pods: []*v1.Pod{pod("p", claim("one")), pod("q", claim("two"))},
			free: places{"n1": fits, "n2": fits}, taken: places{"n1": "node(s) exceed max volume count", "n2": fits},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			runWithAPIServer(t, tt.objects, tt.pods, func(t *testing.T, s *fakeAPIServer) {
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

// TestCommitVolumes places the pod p on n1 and commits its reservation of the claim data.
func TestCommitVolumes(t *testing.T) {
	later := class("later", storagev1.VolumeBindingWaitForFirstConsumer)
	tests := map[string]struct {
		objects []runtime.Object
		// controller acts as the volume controller after the claim or the volume is written.
		controller func(*fakeAPIServer)
		want       string        // the expected error
		takes      time.Duration // until Commit returns
	}{
		"the volume is provisioned": {
			objects:    []runtime.Object{later, unbound("data", "later"), disk("made", "a")},
			controller: func(s *fakeAPIServer) { s.bind("data", "made") },
			takes:      time.Second,
		},
		"the volume is provisioned in another zone": {
			objects:    []runtime.Object{later, unbound("data", "later"), disk("made", "b")},
			controller: func(s *fakeAPIServer) { s.bind("data", "made") },
			want:       `the volumes of pod p on node n1: binding volumes: pv "made" node affinity doesn't match node "n1": no matching NodeSelectorTerms`,
			takes:      time.Second,
		},
		"the provisioner gives up": {
			objects: []runtime.Object{later, unbound("data", "later")},
			controller: func(s *fakeAPIServer) {
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
		"the volume is not provisioned": {
			objects:    []runtime.Object{later, unbound("data", "later")},
			controller: func(*fakeAPIServer) {},
			want:       "claim data of pod p on node n1: not bound within 1m0s",
			takes:      time.Minute,
		},
		"the volume exists": {
			objects: []runtime.Object{
				noProvisioner(class("local", storagev1.VolumeBindingWaitForFirstConsumer)), unbound("data", "local"), local("disk", "a"),
			},
			controller: func(s *fakeAPIServer) {
				volume, err := s.kube.CoreV1().PersistentVolumes().Get(s.t.Context(), "disk", metav1.GetOptions{})
				if err != nil || volume.Spec.ClaimRef == nil || volume.Spec.ClaimRef.Name != "data" {
					s.t.Errorf("the volume has another claimRef: %v", volume.Spec.ClaimRef)
				}
				s.bind("data", "disk")
			},
			takes: time.Second,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			runWithAPIServer(t, tt.objects, []*v1.Pod{pod("p", claim("data"))}, func(t *testing.T, s *fakeAPIServer) {
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
					t.Errorf("Commit returned after %s, want %s", took, tt.takes)
				}
			})
		})
	}
}

// TestCommitSharedVolumes places the pods p on n1 and q on n2, which share the claim data.
func TestCommitSharedVolumes(t *testing.T) {
	tests := map[string]struct {
		volume   string // zone of the provisioned volume
		released bool   // the placement of p is released
		want     []string
	}{
		"a volume that all nodes can access": {want: []string{"", ""}},
		"a volume of one node": {volume: "a", want: []string{
			"", `the volumes of pod q on node n2: shared claim data is bound to volume made, which the node cannot use: no matching NodeSelectorTerms`,
		}},
		"a volume that is not provisioned because the other reservation is released": {released: true, want: []string{
			"", "claim data of pod q on node n2: claim data is not going to be bound for the pod that shares it",
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			objects := []runtime.Object{class("later", storagev1.VolumeBindingWaitForFirstConsumer), unbound("data", "later"), disk("made", tt.volume)}
			pods := []*v1.Pod{pod("p", claim("data")), pod("q", claim("data"))}
			runWithAPIServer(t, objects, pods, func(t *testing.T, s *fakeAPIServer) {
				ssn, cluster := s.given.openWith(t, s.profile)
				stmt := ssn.Statement()
				stmt.Allocate(taskNamed(cluster, "p"), cluster.Node("n1"))
				stmt.Allocate(taskNamed(cluster, "q"), cluster.Node("n2"))
				got := make([]string, 2)
				for i, d := range stmt.Decisions() {
					if i == 0 && tt.released {
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
				if !tt.released {
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

func TestNoReservationWithoutUnboundClaims(t *testing.T) {
	tests := map[string]*v1.Pod{
		"a pod without volumes":       pod("p"),
		"a pod with a bound claim":    pod("p", claim("data")),
		"a pod with an inline volume": pod("p", image("pool/image")),
	}
	for name, p := range tests {
		t.Run(name, func(t *testing.T) {
			runWithAPIServer(t, []runtime.Object{bound("data", "disk"), disk("disk", "")}, []*v1.Pod{p}, func(t *testing.T, s *fakeAPIServer) {
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
