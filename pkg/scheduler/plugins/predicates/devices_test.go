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

// What is said of nodes without the devices of a claim.
const (
	noDevice  = "cannot allocate all claims"
	elsewhere = "resourceclaim not available on the node"
)

func TestDevices(t *testing.T) {
	both := func(message string) map[string]string { return map[string]string{"n1": message, "n2": message} }
	tests := map[string]struct {
		objects []runtime.Object
		pod     *v1.Pod
		want    map[string]string
	}{
		"nobody has written the claim": {
			pod: pod("p", using("one")), want: both(`could not find ResourceClaim "default/one"`),
		},
		"the claim is not made from its template yet": {
			pod: pod("p", fromTemplate("")), want: both(`pod "default/p": ResourceClaim not created yet`),
		},
		"the claim is made from its template": {
			objects: []runtime.Object{gpuClass(), gpus("n1", "a"), ownedBy("p", wants("p-gpu", 1))},
			pod:     pod("p", fromTemplate("p-gpu")), want: map[string]string{"n1": fits, "n2": noDevice},
		},
		"the claim is made for another pod": {
			objects: []runtime.Object{gpuClass(), gpus("n1", "a"), ownedBy("q", wants("q-gpu", 1))},
			pod:     pod("p", fromTemplate("q-gpu")), want: both("ResourceClaim default/q-gpu was not created for Pod default/p (Pod is not owner)"),
		},
		"the claim is for devices of a class that does not exist": {
			objects: []runtime.Object{gpus("n1", "a"), wants("one", 1)},
			pod:     pod("p", using("one")), want: both("request gpu: device class gpu does not exist"),
		},
		"one node has enough devices": {
			objects: []runtime.Object{gpuClass(), gpus("n1", "a"), gpus("n2", "b", "c"), wants("one", 2)},
			pod:     pod("p", using("one")), want: map[string]string{"n1": noDevice, "n2": fits},
		},
		"two claims share out the devices of a node": {
			objects: []runtime.Object{gpuClass(), gpus("n1", "a"), gpus("n2", "b", "c"), wants("one", 1), wants("two", 1)},
			pod:     pod("p", using("one"), using("two")), want: map[string]string{"n1": noDevice, "n2": fits},
		},
		"a device belongs to another claim": {
			objects: []runtime.Object{gpuClass(), gpus("n1", "a"), gpus("n2", "b"), wants("one", 1), allocated("n1", "a", wants("two", 1))},
			pod:     pod("p", using("one")), want: map[string]string{"n1": noDevice, "n2": fits},
		},
		"the claim has its device": {
			objects: []runtime.Object{gpuClass(), gpus("n1", "a"), gpus("n2", "b"), allocated("n1", "a", wants("one", 1))},
			pod:     pod("p", using("one")), want: map[string]string{"n1": fits, "n2": elsewhere},
		},
		"devices that are attached later are not given away": {
			objects: []runtime.Object{gpuClass(), attachedLater(gpus("n1", "a")), wants("one", 1)},
			pod:     pod("p", using("one")), want: both(noDevice),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			inStore(t, tt.objects, []*v1.Pod{tt.pod}, func(t *testing.T, s *store) {
				ssn, _ := s.given.openWith(t, s.profile)
				expect(t, tt.want, verdicts(ssn, "p", api.Now))
			})
		})
	}
}

// TestDevicesAreReadFirst asks before the informers have started.
func TestDevicesAreReadFirst(t *testing.T) {
	unread := "resource claims are not synced yet"
	g := given{
		nodes: []*v1.Node{node("n1")}, pods: []*v1.Pod{pod("p", using("one"))},
		handle: framework.Handle{Informers: informers.NewSharedInformerFactory(fake.NewClientset(), 0)},
	}
	ssn, _ := g.open(t)
	expect(t, map[string]string{"n1": unread}, verdicts(ssn, "p", api.Now))
}

// TestFulfilDevices places the pods p on n1 and q on n2, or where their claims let them, and has all of their
// devices given to them; what has failed is cancelled, and what was placed with it.
func TestFulfilDevices(t *testing.T) {
	apart := []*v1.Pod{pod("p", using("one")), pod("q", using("two"))}
	shared := []*v1.Pod{pod("p", using("one")), pod("q", using("one"))}
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
		devise func(*store) // what the API server does
		want   []string     // errors
		claims []string     // then
	}{
		"two claims": {
			pods: apart, nodes: []string{"n1", "n2"}, want: []string{"", ""},
			claims: []string{"one: n1/a for p", "two: n2/b for q"},
		},
		"one claim for both": {
			pods: shared, nodes: []string{"n1", "n1"}, want: []string{"", ""},
			claims: []string{"one: n1/a for p q", "two: nothing"},
		},
		"one is refused": {
			pods: apart, nodes: []string{"n1", "n2"}, devise: func(s *store) { s.refuse = statusOf("two") },
			want:   []string{"", "claim two of pod q on node n2: add allocation and reservation to claim default/two: no space left"},
			claims: []string{"one: nothing", "two: nothing"},
		},
		"the shared one is refused": {
			pods: shared, nodes: []string{"n1", "n1"}, devise: func(s *store) { s.refuse = statusOf("one") },
			want: []string{
				"claim one of pod p on node n1: add allocation and reservation to claim default/one: no space left",
				"claim one of pod q on node n1: a claim that it shares is not allocated for pod p",
			},
			claims: []string{"one: nothing", "two: nothing"},
		},
		"one was given away meanwhile": {
			pods: apart, nodes: []string{"n1", "n2"}, devise: func(s *store) {
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
			objects := []runtime.Object{gpuClass(), gpus("n1", "a"), gpus("n2", "b"), wants("one", 1), wants("two", 1)}
			inStore(t, objects, tt.pods, func(t *testing.T, s *store) {
				ssn, cluster := s.given.openWith(t, s.profile)
				stmt := ssn.Statement()
				for i, p := range tt.pods {
					stmt.Allocate(taskNamed(cluster, p.Name), cluster.Node(tt.nodes[i]))
				}
				if tt.devise != nil {
					tt.devise(s)
				}
				got, failed := s.fulfil(stmt.Decisions())
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("errors (-want +got):\n%s", diff)
				}
				if failed {
					s.refuse = nil
					stmt.Discard()
				}
				if diff := cmp.Diff(tt.claims, []string{s.holds("one"), s.holds("two")}); diff != "" {
					t.Errorf("claims (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestLostAnswer has the API server take a claim, or not, and its answer get lost.
func TestLostAnswer(t *testing.T) {
	for name, taken := range map[string]bool{"the claim was written": true, "the claim was not written": false} {
		t.Run(name, func(t *testing.T) {
			objects := []runtime.Object{gpuClass(), gpus("n1", "a"), wants("one", 1), wants("two", 1)}
			inStore(t, objects, []*v1.Pod{pod("p", using("one")), pod("q", using("two"))}, func(t *testing.T, s *store) {
				ssn, cluster := s.given.openWith(t, s.profile)
				stmt := ssn.Statement()
				stmt.Allocate(taskNamed(cluster, "p"), cluster.Node("n1"))
				s.refuse = func(resource, name string) error {
					if resource != "resourceclaims/status" {
						return nil
					}
					s.refuse = nil
					if taken {
						s.put(usedBy("p", allocated("n1", "a", wants(name, 1))))
					}
					return apierrors.NewTimeoutError("no answer", 0)
				}
				if got, failed := s.fulfil(stmt.Decisions()); !failed {
					t.Errorf("no error, %v", got)
				}
				later, _ := s.given.openWith(t, s.profile)
				expect(t, map[string]string{"n1": noDevice, "n2": noDevice}, verdicts(later, "q", api.Now))
				stmt.Discard()
				later, _ = s.given.openWith(t, s.profile)
				expect(t, map[string]string{"n1": fits, "n2": noDevice}, verdicts(later, "q", api.Now))
				if diff := cmp.Diff("one: nothing", s.holds("one")); diff != "" {
					t.Errorf("claim (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// put writes a claim behind the back of clients.
func (s *store) put(claim *resourcev1.ResourceClaim) {
	s.stamp(claim)
	if err := s.kube.Tracker().Update(resourcev1.SchemeGroupVersion.WithResource("resourceclaims"), claim, "default"); err != nil {
		s.t.Error(err)
	}
}

// TestDevicesOutliveTheConfiguration looks what a plugin knows that a reload has made.
func TestDevicesOutliveTheConfiguration(t *testing.T) {
	objects := []runtime.Object{gpuClass(), gpus("n1", "a"), wants("one", 1), wants("two", 1)}
	inStore(t, objects, []*v1.Pod{pod("p", using("one")), pod("q", using("two"))}, func(t *testing.T, s *store) {
		spec := Spec()
		reload := func() *framework.Session {
			ssn, _ := s.given.openWith(t, s.given.profileOf(t, spec))
			synctest.Wait()
			return ssn
		}
		first := reload()
		first.Statement().Allocate(taskNamed(first.Cluster(), "p"), first.Cluster().Node("n1"))
		expect(t, map[string]string{"n1": noDevice, "n2": noDevice}, verdicts(reload(), "q", api.Now))
	})
}

// fulfil fulfils all reservations at once, and tells the errors and whether there are any.
func (s *store) fulfil(decisions []api.Decision) (errs []string, failed bool) {
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

func (s *store) resourceClaim(name string) *resourcev1.ResourceClaim {
	s.t.Helper()
	claim, err := s.kube.ResourceV1().ResourceClaims("default").Get(s.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return claim
}

// holds tells which device a claim has, and for whom.
func (s *store) holds(name string) string {
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

// using lets a pod use a claim for devices.
func using(name string) change[v1.Pod] {
	return func(p *v1.Pod) {
		p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, v1.PodResourceClaim{Name: name, ResourceClaimName: &name})
	}
}

// fromTemplate lets a pod use a claim that is made for it, or has been.
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

// gpus are the devices of a node, or those that all nodes reach.
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

// attachedLater has devices attached once they are allocated.
func attachedLater(slice *resourcev1.ResourceSlice) *resourcev1.ResourceSlice {
	for i := range slice.Spec.Devices {
		slice.Spec.Devices[i].BindingConditions = []string{"Attached"}
	}
	return slice
}

// wants is a claim for so many devices of the class gpu.
func wants(name string, count int64) *resourcev1.ResourceClaim {
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

// allocated gives a claim a device of a node.
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
