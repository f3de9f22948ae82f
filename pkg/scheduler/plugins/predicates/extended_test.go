// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package predicates

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

const gpuResource = "nvidia.com/gpu"

// TestExtendedResources filters nodes for pods that request devices as an extended resource.
func TestExtendedResources(t *testing.T) {
	lists := func(n *v1.Node) { n.Status.Allocatable[gpuResource] = resource.MustParse("4") }
	tests := map[string]struct {
		objects []runtime.Object
		node2   change[v1.Node]
		pod     *v1.Pod
		want    map[string]string
	}{
		"nodes with enough devices and with too few": {
			objects: []runtime.Object{gpus("n1", "a"), gpus("n2", "b", "c")},
			pod:     pod("p", gpu(2)), want: map[string]string{"n1": "too few nvidia.com/gpu", "n2": fits},
		},
		"a node that lists the resource": {
			objects: []runtime.Object{gpus("n1", "a")}, node2: lists,
			pod: pod("p", gpu(2)), want: map[string]string{"n1": "too few nvidia.com/gpu", "n2": fits},
		},
		"claims hold the devices": {
			objects: []runtime.Object{gpus("n1", "a"), gpus("n2", "b"), allocated("n1", "a", deviceClaim("one", 1))},
			pod:     pod("p", gpu(1)), want: map[string]string{"n1": "Insufficient nvidia.com/gpu", "n2": fits},
		},
		"a claim, on a node that lists the resource": {
			objects: []runtime.Object{gpus("n1", "a", "b", "c"), gpus("n2", "d"), deviceClaim("one", 1), allocated("n2", "d", deviceClaim("two", 1))}, node2: lists,
			pod: pod("p", gpu(2), usesClaim("one")), want: map[string]string{"n1": fits, "n2": inUse},
		},
		"a claim and an extended resource": {
			objects: []runtime.Object{gpus("n1", "a"), gpus("n2", "b", "c"), deviceClaim("one", 1)},
			pod:     pod("p", gpu(1), usesClaim("one")), want: map[string]string{"n1": noDevice, "n2": fits},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			runWithAPIServer(t, append(tt.objects, gpuClassFor(gpuResource)), []*v1.Pod{tt.pod}, func(t *testing.T, s *fakeAPIServer) {
				s.given.devices = map[string]int64{"n1": 1, "n2": 2}
				if tt.node2 != nil {
					tt.node2(s.given.nodes[1])
				}
				ssn, _ := s.given.openWith(t, s.profile)
				expect(t, tt.want, verdicts(ssn, "p", api.Now))
			})
		})
	}
}

// TestExtendedResourceWithoutClass opens a session of a model that has not received the deletion of a class yet.
func TestExtendedResourceWithoutClass(t *testing.T) {
	runWithAPIServer(t, []runtime.Object{gpus("n1", "a")}, []*v1.Pod{pod("p", gpu(1))}, func(t *testing.T, s *fakeAPIServer) {
		s.given.devices = map[string]int64{"n1": 1}
		ssn, cluster := s.given.openWith(t, s.profile)
		none := "no device class provides the requested extended resources"
		expect(t, map[string]string{"n1": none, "n2": none}, verdicts(ssn, "p", api.Now))
		stmt := ssn.Statement()
		stmt.Allocate(taskNamed(cluster, "p"), cluster.Node("n1"))
		if got, failed := s.commitAll(stmt.Decisions()); !failed {
			t.Errorf("no error, %v", got)
		}
	})
}

// TestCommitExtendedResources places the pods p on n1 and q on n2, and commits the reservations. If one of them fails,
// all are released. The sessions afterwards delete what is left.
func TestCommitExtendedResources(t *testing.T) {
	broken := errors.New("no space left")
	nothing := []string{}
	tests := map[string]struct {
		devise func(*fakeAPIServer)
		want   []string // errors
		claims []string // after the release
		later  []string // after the next session; the same if nil
	}{
		"both": {
			want:   []string{"", ""},
			claims: []string{"p: n1/a, named by p", "q: n2/b, named by q"},
		},
		"a claim is not created": {
			devise: func(s *fakeAPIServer) {
				s.failCreate("q", broken, false)
			},
			want:   []string{"", "the devices of pod q on node n2: create claim for extended resources default/: no space left"},
			claims: nothing,
		},
		"a claim is created and the response is lost": {
			devise: func(s *fakeAPIServer) { s.failCreate("q", broken, true) },
			want:   []string{"", "the devices of pod q on node n2: create claim for extended resources default/: no space left"},
			claims: []string{"q: nothing"},
			later:  nothing,
		},
		"a status is not written": {
			devise: func(s *fakeAPIServer) {
				s.updateErr = func(resource, claim string) error {
					if resource == "resourceclaims/status" && strings.HasPrefix(claim, "q-") {
						return broken
					}
					return nil
				}
			},
			want:   []string{"", "the devices of pod q on node n2: add allocation and reservation to claim default/q-extended-resources-0: no space left"},
			claims: nothing,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			objects := []runtime.Object{gpuClassFor(gpuResource), gpus("n1", "a"), gpus("n2", "b")}
			runWithAPIServer(t, objects, []*v1.Pod{pod("p", gpu(1)), pod("q", gpu(1))}, func(t *testing.T, s *fakeAPIServer) {
				s.createsClaims()
				s.given.devices = map[string]int64{"n1": 1, "n2": 1}
				ssn, cluster := s.given.openWith(t, s.profile)
				stmt := ssn.Statement()
				stmt.Allocate(taskNamed(cluster, "p"), cluster.Node("n1"))
				stmt.Allocate(taskNamed(cluster, "q"), cluster.Node("n2"))
				if tt.devise != nil {
					tt.devise(s)
				}
				got, failed := s.commitAll(stmt.Decisions())
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("errors (-want +got):\n%s", diff)
				}
				if failed {
					s.updateErr = nil
					stmt.Discard()
				}
				s.expectClaims(tt.claims)
				if tt.later == nil {
					return
				}
				s.sessionLater()
				s.expectClaims(tt.later)
				free, _ := s.given.openWith(t, s.profile)
				expect(t, map[string]string{"n1": fits, "n2": fits}, verdicts(free, "q", api.Now))
			})
		})
	}
}

// TestLeftovers starts with a claim that an earlier scheduler has created.
func TestLeftovers(t *testing.T) {
	bound := func(p *v1.Pod) { p.Spec.NodeName, p.Status.Phase = "n1", v1.PodRunning }
	names := func(claim string) change[v1.Pod] {
		return func(p *v1.Pod) {
			p.Status.ExtendedResourceClaimStatus = &v1.PodExtendedResourceClaimStatus{ResourceClaimName: claim}
		}
	}
	deleting := "the resource claim of an earlier attempt is being deleted"
	tests := map[string]struct {
		pod     *v1.Pod
		claims  []string
		verdict string // for n1 in the session that finds the claim
	}{
		"of a pod without node": {pod: pod("p", gpu(1), names("left")), claims: []string{}, verdict: deleting},
		"of a pod that uses it": {pod: pod("p", gpu(1), names("left"), bound), claims: []string{"left: n1/a, named by p"}},
		"of a pod that uses another one": {
			pod: pod("p", gpu(1), names("other"), bound), claims: []string{},
		},
		"of a pod of another scheduler": {
			pod: pod("p", gpu(1), names("left"), func(p *v1.Pod) { p.Spec.SchedulerName = "other" }), claims: []string{"left: n1/a, named by p"},
		},
		"of a pod that does not exist": {pod: pod("q", gpu(1)), claims: []string{"left: n1/a"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			claim := ownedBy("p", allocated("n1", "a", deviceClaim("left", 1)))
			claim.Annotations = map[string]string{resourcev1.ExtendedResourceClaimAnnotation: "true"}
			claim.Finalizers = []string{resourcev1.Finalizer}
			objects := []runtime.Object{gpuClassFor(gpuResource), gpus("n1", "a", "b"), claim}
			runWithAPIServer(t, objects, []*v1.Pod{tt.pod}, func(t *testing.T, s *fakeAPIServer) {
				s.given.devices = map[string]int64{"n1": 2}
				s.kube.PrependReactor("delete", "resourceclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
					time.Sleep(time.Second) // the session looks at the nodes meanwhile
					return false, nil, nil
				})
				ssn, _ := s.given.openWith(t, s.profile)
				if tt.verdict != "" {
					if got := verdicts(ssn, "p", api.Now)["n1"]; got != tt.verdict {
						t.Errorf("n1: got %q, want %q", got, tt.verdict)
					}
				}
				s.sessionLater()
				s.expectClaims(tt.claims)
				if tt.verdict != "" {
					later, _ := s.given.openWith(t, s.profile)
					if got := verdicts(later, "p", api.Now)["n1"]; got != fits {
						t.Errorf("n1 afterwards: got %q", got)
					}
				}
			})
		})
	}
}

// sessionLater opens a session after everything in the background has ended.
func (s *fakeAPIServer) sessionLater() {
	synctest.Wait()
	s.given.openWith(s.t, s.profile)
	time.Sleep(time.Minute)
	synctest.Wait()
}

// createsClaims has the fake API server complete the metadata of claims that are created.
func (s *fakeAPIServer) createsClaims() {
	count := map[string]int{}
	s.kube.PrependReactor("create", "resourceclaims", func(action clienttesting.Action) (bool, runtime.Object, error) {
		claim := action.(clienttesting.CreateAction).GetObject().(*resourcev1.ResourceClaim).DeepCopy()
		s.mu.Lock()
		claim.Name = fmt.Sprint(claim.GenerateName, count[claim.GenerateName])
		count[claim.GenerateName]++
		s.mu.Unlock()
		claim.UID = types.UID("uid-" + claim.Name)
		s.setResourceVersion(claim)
		return true, claim, s.kube.Tracker().Create(action.GetResource(), claim, action.GetNamespace())
	})
}

// failCreate fails the creation of the claim of a pod, after it has taken effect or before.
func (s *fakeAPIServer) failCreate(pod string, err error, created bool) {
	s.kube.PrependReactor("create", "resourceclaims", func(action clienttesting.Action) (bool, runtime.Object, error) {
		claim := action.(clienttesting.CreateAction).GetObject().(*resourcev1.ResourceClaim).DeepCopy()
		if claim.GenerateName != pod+"-extended-resources-" {
			return false, nil, nil
		}
		if created {
			claim.Name, claim.UID = pod, types.UID("uid-"+pod)
			s.setResourceVersion(claim)
			if failed := s.kube.Tracker().Create(action.GetResource(), claim, action.GetNamespace()); failed != nil {
				s.t.Error(failed)
			}
		}
		return true, nil, err
	})
}

// expectClaims compares the claims for extended resources: the device, and the pod whose status names the claim.
func (s *fakeAPIServer) expectClaims(want []string) {
	s.t.Helper()
	claims, err := s.kube.ResourceV1().ResourceClaims("default").List(s.t.Context(), metav1.ListOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	pods, err := s.kube.CoreV1().Pods("default").List(s.t.Context(), metav1.ListOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	got := []string{}
	for _, c := range claims.Items {
		name, _, _ := strings.Cut(c.Name, "-extended-resources-")
		text := name + ": nothing"
		if c.Status.Allocation != nil {
			device := c.Status.Allocation.Devices.Results[0]
			text = fmt.Sprintf("%s: %s/%s", name, device.Pool, device.Device)
		}
		for _, p := range pods.Items {
			if status := p.Status.ExtendedResourceClaimStatus; status != nil && status.ResourceClaimName == c.Name {
				text += ", named by " + p.Name
			}
		}
		got = append(got, text)
	}
	for _, p := range pods.Items {
		if status := p.Status.ExtendedResourceClaimStatus; status != nil && p.Spec.NodeName == "" &&
			!slices.ContainsFunc(claims.Items, func(c resourcev1.ResourceClaim) bool { return c.Name == status.ResourceClaimName }) {
			got = append(got, p.Name+" names a claim that does not exist")
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		s.t.Errorf("claims (-want +got):\n%s", diff)
	}
}

// gpu requests devices as an extended resource.
func gpu(count int64) change[v1.Pod] {
	return func(p *v1.Pod) {
		p.Spec.Containers[0].Resources.Requests = v1.ResourceList{gpuResource: *resource.NewQuantity(count, resource.DecimalSI)}
	}
}

// gpuClassFor is the class gpu, which provides an extended resource.
func gpuClassFor(name string) *resourcev1.DeviceClass {
	class := gpuClass()
	class.Spec.ExtendedResourceName = ptr.To(name)
	return class
}
