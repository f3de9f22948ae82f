// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package predicates

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

// Verdicts for nodes without the devices of a claim.
const (
	noDevice  = "cannot allocate all claims"
	without   = "without devices of class gpu"
	tooFew    = "too few devices of class gpu"
	inUse     = "Insufficient devices of class gpu"
	elsewhere = "resourceclaim not available on the node"
)

func TestDevices(t *testing.T) {
	both := func(message string) map[string]string { return map[string]string{"n1": message, "n2": message} }
	tests := map[string]struct {
		objects []runtime.Object
		pod     *v1.Pod
		want    map[string]string
	}{
		"the claim does not exist": {
			pod: pod("p", usesClaim("one")), want: both(`could not find ResourceClaim "default/one"`),
		},
		"the claim is not created from its template yet": {
			pod: pod("p", fromTemplate("")), want: both(`pod "default/p": ResourceClaim not created yet`),
		},
		"the claim is created from its template": {
			objects: []runtime.Object{gpuClass(), gpus("n1", "a"), ownedBy("p", deviceClaim("p-gpu", 1))},
			pod:     pod("p", fromTemplate("p-gpu")), want: map[string]string{"n1": fits, "n2": without},
		},
		"the claim is created for another pod": {
			objects: []runtime.Object{gpuClass(), gpus("n1", "a"), ownedBy("q", deviceClaim("q-gpu", 1))},
			pod:     pod("p", fromTemplate("q-gpu")), want: both("ResourceClaim default/q-gpu was not created for Pod default/p (Pod is not owner)"),
		},
		"the claim is for devices of a class that does not exist": {
			objects: []runtime.Object{gpus("n1", "a"), deviceClaim("one", 1)},
			pod:     pod("p", usesClaim("one")), want: both("request gpu: device class gpu does not exist"),
		},
		"one node has enough devices": {
			objects: []runtime.Object{gpuClass(), gpus("n1", "a"), gpus("n2", "b", "c"), deviceClaim("one", 2)},
			pod:     pod("p", usesClaim("one")), want: map[string]string{"n1": tooFew, "n2": fits},
		},
		"two claims use the devices of a node": {
			objects: []runtime.Object{gpuClass(), gpus("n1", "a"), gpus("n2", "b", "c"), deviceClaim("one", 1), deviceClaim("two", 1)},
			pod:     pod("p", usesClaim("one"), usesClaim("two")), want: map[string]string{"n1": tooFew, "n2": fits},
		},
		"a device is allocated to another claim": {
			objects: []runtime.Object{gpuClass(), gpus("n1", "a"), gpus("n2", "b"), deviceClaim("one", 1), allocated("n1", "a", deviceClaim("two", 1))},
			pod:     pod("p", usesClaim("one")), want: map[string]string{"n1": inUse, "n2": fits},
		},
		"the claim is allocated": {
			objects: []runtime.Object{gpuClass(), gpus("n1", "a"), gpus("n2", "b"), allocated("n1", "a", deviceClaim("one", 1))},
			pod:     pod("p", usesClaim("one")), want: map[string]string{"n1": fits, "n2": elsewhere},
		},
		"devices with binding conditions are not allocated": {
			objects: []runtime.Object{gpuClass(), attachedLater(gpus("n1", "a")), deviceClaim("one", 1)},
			pod:     pod("p", usesClaim("one")), want: map[string]string{"n1": noDevice, "n2": without},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			runWithAPIServer(t, tt.objects, []*v1.Pod{tt.pod}, func(t *testing.T, s *fakeAPIServer) {
				ssn, _ := s.given.openWith(t, s.profile)
				expect(t, tt.want, verdicts(ssn, "p", api.Now))
			})
		})
	}
}

// TestDeviceDemand asserts how messages describe devices, and which node is the nearest.
func TestDeviceDemand(t *testing.T) {
	tests := map[string]struct {
		objects []runtime.Object
		pod     *v1.Pod
		want    api.DeviceDemand
	}{
		"a claim that was created from a template": {
			objects: []runtime.Object{gpuClass(), gpus("n1", "a", "b"), gpus("n2", "c", "d"), ownedBy("p", deviceClaim("p-gpu", 2)),
				allocated("n1", "a", deviceClaim("x", 1)), allocated("n1", "b", deviceClaim("y", 1)), allocated("n2", "c", deviceClaim("z", 1))},
			pod:  pod("p", fromTemplate("p-gpu")),
			want: api.DeviceDemand{Text: "2 devices of class gpu", Nearest: &api.NearestNode{Node: "n2", Devices: "1 device of class gpu"}},
		},
		"claims that the pod names": {
			objects: []runtime.Object{gpuClass(), gpus("n1", "a"), deviceClaim("one", 1), deviceClaim("two", 2)},
			pod:     pod("p", usesClaim("one"), usesClaim("two")),
			want:    api.DeviceDemand{Text: "claim one (1 device of class gpu) + claim two (2 devices of class gpu)"},
		},
		"the first of two equal nodes": {
			objects: []runtime.Object{gpuClass(), gpus("n1", "a"), gpus("n2", "b"), deviceClaim("one", 1),
				allocated("n2", "b", deviceClaim("x", 1)), allocated("n1", "a", deviceClaim("y", 1))},
			pod:  pod("p", usesClaim("one")),
			want: api.DeviceDemand{Text: "claim one (1 device of class gpu)", Nearest: &api.NearestNode{Node: "n1", Devices: "1 device of class gpu"}},
		},
		"selectors count": {
			objects: []runtime.Object{gpuClass(), gpus("n1", "a"), gpus("n2", "b"), selects(`"absent" in device.attributes["test.driver"]`, deviceClaim("one", 1)),
				allocated("n1", "a", deviceClaim("x", 1))},
			pod:  pod("p", usesClaim("one")),
			want: api.DeviceDemand{Text: "claim one (1 device of class gpu)"},
		},
		"the claim does not exist": {pod: pod("p", usesClaim("one"))},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			runWithAPIServer(t, tt.objects, []*v1.Pod{tt.pod}, func(t *testing.T, s *fakeAPIServer) {
				ssn, cluster := s.given.openWith(t, s.profile)
				if diff := cmp.Diff(&tt.want, ssn.Devices(taskNamed(cluster, "p"), true)); diff != "" {
					t.Errorf("devices (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// selects adds a selector to the request of a claim.
func selects(expression string, claim *resourcev1.ResourceClaim) *resourcev1.ResourceClaim {
	claim.Spec.Devices.Requests[0].Exactly.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}}
	return claim
}

// TestClaimsBeforeInformersSync runs the filter before the informers have started.
func TestClaimsBeforeInformersSync(t *testing.T) {
	unread := "resource claims are not synced yet"
	g := given{
		nodes: []*v1.Node{node("n1")}, pods: []*v1.Pod{pod("p", usesClaim("one"))},
		handle: framework.Handle{Informers: informers.NewSharedInformerFactory(fake.NewClientset(), 0)},
	}
	ssn, _ := g.open(t)
	expect(t, map[string]string{"n1": unread}, verdicts(ssn, "p", api.Now))
}

// TestCommitDevices places the pods p on n1 and q on n2, or where their claims permit, and commits all reservations.
// Reservations that fail, and those made with them, are released.
func TestCommitDevices(t *testing.T) {
	apart := []*v1.Pod{pod("p", usesClaim("one")), pod("q", usesClaim("two"))}
	shared := []*v1.Pod{pod("p", usesClaim("one")), pod("q", usesClaim("one"))}
	broken := errors.New("no space left")
	statusOf := func(name string) func(string, string) error {
		return func(resource, claim string) error {
			if resource == "resourceclaims/status" && claim == name {
				return broken
			}
			return nil
		}
	}
	tests := map[string]struct {
		pods   []*v1.Pod
		nodes  []string
		devise func(*fakeAPIServer) // faults of the API server
		want   []string             // errors
		claims []string             // the claims afterwards
	}{
		"two claims": {
			pods: apart, nodes: []string{"n1", "n2"}, want: []string{"", ""},
			claims: []string{"one: n1/a for p", "two: n2/b for q"},
		},
		"one claim for both": {
			pods: shared, nodes: []string{"n1", "n1"}, want: []string{"", ""},
			claims: []string{"one: n1/a for p q", "two: nothing"},
		},
		"one update fails": {
			pods: apart, nodes: []string{"n1", "n2"}, devise: func(s *fakeAPIServer) { s.updateErr = statusOf("two") },
			want:   []string{"", "claim two of pod q on node n2: add allocation and reservation to claim default/two: no space left"},
			claims: []string{"one: nothing", "two: nothing"},
		},
		"the update of the shared claim fails": {
			pods: shared, nodes: []string{"n1", "n1"}, devise: func(s *fakeAPIServer) { s.updateErr = statusOf("one") },
			want: []string{
				"claim one of pod p on node n1: add allocation and reservation to claim default/one: no space left",
				"claim one of pod q on node n1: a claim that it shares is not allocated for pod p",
			},
			claims: []string{"one: nothing", "two: nothing"},
		},
		"one device is allocated to another claim meanwhile": {
			pods: apart, nodes: []string{"n1", "n2"}, devise: func(s *fakeAPIServer) {
				_, err := s.kube.ResourceV1().ResourceClaims("default").UpdateStatus(s.t.Context(), usedBy("x", allocated("n2", "b", s.resourceClaim("two"))), metav1.UpdateOptions{})
				if err != nil {
					s.t.Fatal(err)
				}
			},
			want:   []string{"", "claim two of pod q on node n2: claim default/two got allocated elsewhere in the meantime"},
			claims: []string{"one: nothing", "two: n2/b for x"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			objects := []runtime.Object{gpuClass(), gpus("n1", "a"), gpus("n2", "b"), deviceClaim("one", 1), deviceClaim("two", 1)}
			runWithAPIServer(t, objects, tt.pods, func(t *testing.T, s *fakeAPIServer) {
				ssn, cluster := s.given.openWith(t, s.profile)
				stmt := ssn.Statement()
				for i, p := range tt.pods {
					stmt.Allocate(taskNamed(cluster, p.Name), cluster.Node(tt.nodes[i]))
				}
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
				if diff := cmp.Diff(tt.claims, []string{s.describeAllocation("one"), s.describeAllocation("two")}); diff != "" {
					t.Errorf("claims (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestDeviceUpdateTimeout lets the API server apply the update of a claim, or not, and lose the response.
func TestDeviceUpdateTimeout(t *testing.T) {
	for name, taken := range map[string]bool{"the claim was written": true, "the claim was not written": false} {
		t.Run(name, func(t *testing.T) {
			objects := []runtime.Object{gpuClass(), gpus("n1", "a"), deviceClaim("one", 1), deviceClaim("two", 1)}
			runWithAPIServer(t, objects, []*v1.Pod{pod("p", usesClaim("one")), pod("q", usesClaim("two"))}, func(t *testing.T, s *fakeAPIServer) {
				ssn, cluster := s.given.openWith(t, s.profile)
				stmt := ssn.Statement()
				stmt.Allocate(taskNamed(cluster, "p"), cluster.Node("n1"))
				s.updateErr = func(resource, name string) error {
					if resource != "resourceclaims/status" {
						return nil
					}
					s.updateErr = nil
					if taken {
						s.setResourceClaim(usedBy("p", allocated("n1", "a", deviceClaim(name, 1))))
					}
					return apierrors.NewTimeoutError("no answer", 0)
				}
				if got, failed := s.commitAll(stmt.Decisions()); !failed {
					t.Errorf("no error, %v", got)
				}
				later, _ := s.given.openWith(t, s.profile)
				expect(t, map[string]string{"n1": inUse, "n2": without}, verdicts(later, "q", api.Now))
				stmt.Discard()
				later, _ = s.given.openWith(t, s.profile)
				expect(t, map[string]string{"n1": fits, "n2": without}, verdicts(later, "q", api.Now))
				if diff := cmp.Diff("one: nothing", s.describeAllocation("one")); diff != "" {
					t.Errorf("claim (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// setResourceClaim changes a claim without the clients of the scheduler.
func (s *fakeAPIServer) setResourceClaim(claim *resourcev1.ResourceClaim) {
	s.setResourceVersion(claim)
	if err := s.kube.Tracker().Update(resourcev1.SchemeGroupVersion.WithResource("resourceclaims"), claim, "default"); err != nil {
		s.t.Error(err)
	}
}

// TestDevicesSurviveReload checks what a plugin knows after a reload has replaced it.
func TestDevicesSurviveReload(t *testing.T) {
	objects := []runtime.Object{gpuClass(), gpus("n1", "a"), deviceClaim("one", 1), deviceClaim("two", 1)}
	runWithAPIServer(t, objects, []*v1.Pod{pod("p", usesClaim("one")), pod("q", usesClaim("two"))}, func(t *testing.T, s *fakeAPIServer) {
		spec := Spec()
		reload := func() *framework.Session {
			ssn, _ := s.given.openWith(t, s.given.profileOf(t, spec))
			synctest.Wait()
			return ssn
		}
		first := reload()
		first.Statement().Allocate(taskNamed(first.Cluster(), "p"), first.Cluster().Node("n1"))
		expect(t, map[string]string{"n1": inUse, "n2": without}, verdicts(reload(), "q", api.Now))
	})
}

// commitAll commits all reservations concurrently and returns the errors and whether there are any.
func (s *fakeAPIServer) commitAll(decisions []api.Decision) (errs []string, failed bool) {
	errs = make([]string, len(decisions))
	var running sync.WaitGroup
	for i, d := range decisions {
		running.Go(func() {
			if err := d.External[0].Commit(s.t.Context()); err != nil {
				errs[i] = err.Error()
			}
		})
	}
	running.Wait()
	synctest.Wait()
	return errs, strings.Join(errs, "") != ""
}

func (s *fakeAPIServer) resourceClaim(name string) *resourcev1.ResourceClaim {
	s.t.Helper()
	claim, err := s.kube.ResourceV1().ResourceClaims("default").Get(s.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return claim
}

// describeAllocation returns the device of a claim and its consumers.
func (s *fakeAPIServer) describeAllocation(name string) string {
	status := s.resourceClaim(name).Status
	if status.Allocation == nil {
		return name + ": nothing"
	}
	device := status.Allocation.Devices.Results[0]
	var users []string
	for _, user := range status.ReservedFor {
		users = append(users, user.Name)
	}
	return fmt.Sprintf("%s: %s/%s for %s", name, device.Pool, device.Device, strings.Join(users, " "))
}

// usesClaim adds a resource claim to a pod.
func usesClaim(name string) change[v1.Pod] {
	return func(p *v1.Pod) {
		p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, v1.PodResourceClaim{Name: name, ResourceClaimName: &name})
	}
}

// fromTemplate adds a claim template to a pod; made is the name of the claim created from it, if any.
func fromTemplate(made string) change[v1.Pod] {
	return func(p *v1.Pod) {
		p.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: ptr.To("gpu")}}
		if made != "" {
			p.Status.ResourceClaimStatuses = []v1.PodResourceClaimStatus{{Name: "gpu", ResourceClaimName: &made}}
		}
	}
}

const driver = "test.driver"

func gpuClass() *resourcev1.DeviceClass {
	return &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}
}

// gpus are the devices of a node, or devices that all nodes can access.
func gpus(node string, names ...string) *resourcev1.ResourceSlice {
	pool := resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1}
	slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "gpus-" + node}, Spec: resourcev1.ResourceSliceSpec{Driver: driver, Pool: pool, NodeName: &node}}
	if node == "" {
		slice.Spec.Pool.Name, slice.Spec.NodeName, slice.Spec.AllNodes = "all", nil, ptr.To(true)
	}
	for _, name := range names {
		slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{Name: name})
	}
	return slice
}

// attachedLater gives devices binding conditions.
func attachedLater(slice *resourcev1.ResourceSlice) *resourcev1.ResourceSlice {
	for i := range slice.Spec.Devices {
		slice.Spec.Devices[i].BindingConditions = []string{"Attached"}
	}
	return slice
}

// deviceClaim is a claim for count devices of the class gpu.
func deviceClaim(name string, count int64) *resourcev1.ResourceClaim {
	return &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: uid("resourceclaim-" + name)},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
			Name:    "gpu",
			Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count},
		}}}},
	}
}

func ownedBy(pod string, claim *resourcev1.ResourceClaim) *resourcev1.ResourceClaim {
	claim.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod, UID: uid(pod), Controller: ptr.To(true)}}
	return claim
}

// allocated allocates a device of a node to a claim.
func allocated(node, device string, claim *resourcev1.ResourceClaim) *resourcev1.ResourceClaim {
	claim.Status.Allocation = &resourcev1.AllocationResult{
		Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
			{Request: "gpu", Driver: driver, Pool: node, Device: device},
		}},
		NodeSelector: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{nameTerm(v1.NodeSelectorOpIn, node)}},
	}
	return claim
}

func usedBy(pod string, claim *resourcev1.ResourceClaim) *resourcev1.ResourceClaim {
	claim.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: pod, UID: uid(pod)}}
	return claim
}
