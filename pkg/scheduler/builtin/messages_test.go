// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// TestMessagesOmitOtherNamespaces asserts that messages mention other jobs by numbers only. schedtest searches all messages
// for names of other namespaces.
func TestMessagesOmitOtherNamespaces(t *testing.T) {
	for name, test := range map[string]struct {
		given []Row
		want  string
	}{
		"a job that waits for victims": {
			given: Given(Node("n1", "2cpu"), Queue("q", 1),
				Group("q/victim", 1, In("secret"), Running(2, "1cpu", "n1", Priority(1))),
				Group("q/preemptor", 1, Pending(1, "1cpu", Priority(9)))),
			want: "waits q/preemptor Preempting: waiting for 1 evicted pod to terminate",
		},
		"a job without available nodes": {
			given: Given(Node("n1", "2cpu"), Queue("q", 1),
				Group("q/holder", 1, In("secret"), Running(2, "1cpu", "n1", Priority(9))),
				Group("q/late", 1, Pending(1, "1cpu", Priority(1)))),
			want: "waits q/late NotEnoughResources: needs 1 more pod of 1 cpu; 0/1 nodes are available: 1 Insufficient cpu",
		},
		"a job whose queue is full": {
			given: Given(Node("n1", "4cpu"), Queue("q", 1, Capability("2cpu")),
				Group("q/holder", 1, In("secret"), Running(2, "1cpu", "n1", Priority(9))),
				Group("q/late", 1, Pending(1, "1cpu", Priority(1)))),
			want: "waits q/late QueueFull: queue q is full: capability 2 cpu, allocated 2, needs 1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := New(t, BuiltIn(t), test.given, WithConfig(AllActions))
			c.Cycle()
			if diff := cmp.Diff(test.want, c.Waits()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestMessagesCountSignatures asserts that the numbers of a message are about the pods that it names.
func TestMessagesCountSignatures(t *testing.T) {
	gpuNodes := Rows(Nodes(4, "g", "64cpu 8gpu"), Nodes(2, "c", "16cpu"), Queue("q", 1))
	for name, test := range map[string]struct {
		given []Row
		want  string
	}{
		"a launcher and workers": {
			given: Given(gpuNodes, Group("q/runs", 1, Running(1, "1cpu 8gpu", "g1")), Group("q/mpi", 5, Pending(1, "1cpu"), Pending(4, "4cpu 8gpu"))),
			want: "waits q/mpi NotEnoughResources: needs 4 more pods of 8 nvidia.com/gpu + 4 cpu, 3 of them could start now, and 1 pod of 1 cpu; " +
				"3/6 nodes are available: 2 without nvidia.com/gpu, 1 Insufficient nvidia.com/gpu",
		},
		"pods that only differ in the names of their claims": {
			given: Given(gpuNodes, Group("q/claims", 6, Pending(3, "4cpu 8gpu", madeClaim("a")), Pending(3, "4cpu 8gpu", madeClaim("b")))),
			want:  "waits q/claims Unschedulable: needs 6 more pods of 8 nvidia.com/gpu + 4 cpu; 0/6 nodes are available: 4 resource claims are not synced yet, 2 without nvidia.com/gpu",
		},
		"pods of equal requests that suit different nodes": {
			given: Given(gpuNodes, Group("q/picky", 3, Pending(2, "1cpu"), Pending(1, "1cpu", NodeSelector("disk", "ssd")))),
			want: "waits q/picky Unschedulable: needs 1 more pod of 1 cpu and 2 other pods of 1 cpu; " +
				"0/6 nodes are available: 6 node(s) didn't match Pod's node affinity/selector (node selector disk=ssd)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := New(t, BuiltIn(t), test.given)
			c.Cycle()
			if diff := cmp.Diff(test.want, c.Waits()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestMessagesOfGangsThatCannotStart asserts that a gang that can never start has a reason of its own.
func TestMessagesOfGangsThatCannotStart(t *testing.T) {
	gpuNodes := Rows(Nodes(4, "g", "64cpu 8gpu"), Nodes(2, "c", "16cpu"), Queue("q", 1), Queue("small", 1, Capability("8gpu")))
	for name, test := range map[string]struct {
		given []Row
		want  string
	}{
		"a pod that is larger than each node": {
			given: Given(gpuNodes, Group("q/large", 1, Pending(1, "4cpu 16gpu"))),
			want: "waits q/large ExceedsClusterCapacity: needs 1 more pod of 16 nvidia.com/gpu + 4 cpu; " +
				"0/6 nodes are available: 4 Insufficient nvidia.com/gpu, 2 without nvidia.com/gpu; would not fit the empty nodes: " +
				"a pod requests 16 nvidia.com/gpu, the largest suitable node has 8",
		},
		"a pod without a PodGroup that is larger than each node": {
			given: Given(gpuNodes, Plain("large", OfQueue("q"), Pending(1, "4cpu 16gpu"))),
			want: "waits large-0 ExceedsClusterCapacity: needs 1 more pod of 16 nvidia.com/gpu + 4 cpu; " +
				"0/6 nodes are available: 4 Insufficient nvidia.com/gpu, 2 without nvidia.com/gpu; would not fit the empty nodes: " +
				"a pod requests 16 nvidia.com/gpu, the largest suitable node has 8",
		},
		"a surplus pod that is larger than each node": {
			given: Given(gpuNodes, Group("q/surplus", 1, Running(1, "1cpu", "c1"), Pending(1, "4cpu 16gpu"))),
			want: "waits q/surplus-1 ExceedsClusterCapacity: needs 1 more pod of 16 nvidia.com/gpu + 4 cpu; " +
				"0/6 nodes are available: 4 Insufficient nvidia.com/gpu, 2 without nvidia.com/gpu; would not fit the empty nodes: " +
				"a pod requests 16 nvidia.com/gpu, the largest suitable node has 8",
		},
		"a pod that no suitable node is large enough for": {
			given: Given(gpuNodes, Node("l", "64cpu 16gpu", Label("pool", "other")), Group("q/large", 1, Pending(1, "4cpu 16gpu", NodeSelector("pool", "own")))),
			want: "waits q/large Unschedulable: needs 1 more pod of 16 nvidia.com/gpu + 4 cpu; " +
				"0/7 nodes are available: 7 node(s) didn't match Pod's node affinity/selector (node selector pool=own)",
		},
		"a pod whose requests no node has together": {
			given: Given(gpuNodes, Node("l", "2cpu 16gpu"), Group("q/large", 1, Pending(1, "4cpu 16gpu"))),
			want: "waits q/large ExceedsClusterCapacity: needs 1 more pod of 16 nvidia.com/gpu + 4 cpu; " +
				"0/7 nodes are available: 4 Insufficient nvidia.com/gpu, 2 without nvidia.com/gpu, 1 Insufficient cpu; would not fit the empty nodes",
		},
		"a pod that exceeds the capability of its queue": {
			given: Given(gpuNodes, Queue("tiny", 1, Capability("1gpu")), Group("tiny/large", 3, Pending(3, "1cpu 2gpu"))),
			want:  "waits tiny/large ExceedsQueueCapability: exceeds the queue's capability: a pod requests 2 nvidia.com/gpu, and queue tiny has a capability of 1",
		},
		"a gang with one member more than the nodes can run": {
			given: Given(gpuNodes, Group("q/large", 6, Pending(1, "1cpu"), Pending(5, "4cpu 8gpu"))),
			want: "waits q/large ExceedsClusterCapacity: needs 5 more pods of 8 nvidia.com/gpu + 4 cpu, 4 of them could start now, and 1 pod of 1 cpu; " +
				"4/6 nodes are available: 2 without nvidia.com/gpu; would not fit the empty nodes (at most 5 of 6 pods)",
		},
		"a gang that fits without the pods of other schedulers": {
			given: Given(gpuNodes, Foreign("other", Running(1, "8gpu", "g1")), Group("q/waits", 4, Pending(4, "4cpu 8gpu"))),
			want: "waits q/waits NotEnoughResources: needs 4 more pods of 8 nvidia.com/gpu + 4 cpu, 3 of them could start now; " +
				"3/6 nodes are available: 2 without nvidia.com/gpu, 1 Insufficient nvidia.com/gpu because of pods of other schedulers",
		},
		"a gang that alone exceeds the capability of its queue": {
			given: Given(gpuNodes, Group("small/large", 10, Pending(10, "1cpu 1gpu"))),
			want:  "waits small/large ExceedsQueueCapability: exceeds the queue's capability: needs 10 nvidia.com/gpu, and queue small has a capability of 8",
		},
		"a gang that exceeds the capability of its queue with another gang": {
			given: Given(gpuNodes, Group("small/runs", 4, Running(4, "1cpu 1gpu", "g1")), Group("small/large", 8, Pending(8, "1cpu 1gpu"))),
			want:  "waits small/large QueueFull: queue small is full: capability 8 nvidia.com/gpu, allocated 4, needs 8",
		},
		"a queue that cannot borrow": {
			given: Given(gpuNodes, Queue("mine", 1, NotReclaimable()), Group("mine/mine", 2, Running(1, "1cpu 7gpu", "g1"), Running(1, "1cpu 8gpu", "g2")),
				Group("mine/more", 2, Pending(2, "1cpu 2gpu")), Group("q/others", 2, Running(1, "1cpu 8gpu", "g3"), Running(1, "1cpu 8gpu", "g4"))),
			want: "waits mine/more OverShare: queue mine cannot borrow (spec.reclaimable is false): deserved 16 nvidia.com/gpu, allocated 15, needs 4",
		},
		"spec.minResources exceeds the capability of the queue": {
			given: Given(gpuNodes, Group("small/large", 1, MinResources("9gpu"), Pending(1, "1cpu 1gpu"))),
			want:  "waits small/large ExceedsQueueCapability: exceeds the queue's capability: needs 9 nvidia.com/gpu, and queue small has a capability of 8; requested by spec.minResources",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := New(t, BuiltIn(t), test.given)
			c.Cycle()
			if diff := cmp.Diff(test.want, c.Waits()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestMessagesNameTheBestDomain asserts that the message of a gang that must be in one rack names the best rack.
func TestMessagesNameTheBestDomain(t *testing.T) {
	racks := Rows(Nodes(2, "a", "64cpu 8gpu", Label("rack", "r1")), Nodes(2, "b", "64cpu 8gpu", Label("rack", "r2")), Nodes(2, "c", "16cpu"), Queue("q", 1))
	together := Near("rack", "app=mpi")
	for name, test := range map[string]struct {
		given []Row
		want  string
	}{
		"no empty rack is large enough": {
			given: Given(racks, Group("q/mpi", 3, Label("app", "mpi"), together, Pending(3, "4cpu 8gpu"))),
			want: "waits q/mpi ExceedsClusterCapacity: needs 3 more pods of 8 nvidia.com/gpu + 4 cpu in one topology domain; rack r1 has resources for 2 of 3 pods; " +
				"4/6 nodes are available: 2 without nvidia.com/gpu; would not fit the empty nodes (at most 2 of 3 pods)",
		},
		"each rack is in use": {
			given: Given(racks, Group("q/runs", 2, Running(1, "1cpu 8gpu", "a1"), Running(1, "1cpu 1gpu", "b1")),
				Group("q/mpi", 2, Label("app", "mpi"), together, Pending(2, "4cpu 8gpu"))),
			want: "waits q/mpi NotEnoughResources: needs 2 more pods of 8 nvidia.com/gpu + 4 cpu in one topology domain; rack r1 has resources for 1 of 2 pods; " +
				"2/6 nodes are available: 2 Insufficient nvidia.com/gpu, 2 without nvidia.com/gpu",
		},
		"the largest rack is not the best": {
			given: Given(racks, Group("q/runs", 3, Running(1, "1cpu", "a1", HostPort(80)), Running(1, "1cpu", "a2", HostPort(80)), Running(1, "2cpu", "b1", HostPort(80))),
				Group("q/mpi", 2, Label("app", "mpi"), together, Pending(2, "1cpu", HostPort(80)))),
			want: "waits q/mpi NotEnoughResources: needs 2 more pods of 1 cpu in one topology domain; rack r2 has resources for 1 of 2 pods; " +
				"1/6 nodes are available: 3 node(s) didn't have free ports for the requested pod ports, 2 node(s) didn't match pod affinity rules",
		},
		"no rack has resources for a pod": {
			given: Given(racks, Group("q/runs", 4, Running(2, "1cpu 4gpu", "a1"), Running(1, "1cpu 4gpu", "a2"), Running(1, "1cpu 8gpu", "b1"), Running(1, "1cpu 8gpu", "b2")),
				Group("q/mpi", 2, Label("app", "mpi"), together, Pending(2, "4cpu 8gpu"))),
			want: "waits q/mpi NotEnoughResources: needs 2 more pods of 8 nvidia.com/gpu + 4 cpu in one topology domain; rack r1 has resources for 0 of 2 pods; " +
				"0/6 nodes are available: 4 Insufficient nvidia.com/gpu, 2 without nvidia.com/gpu",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := New(t, BuiltIn(t), test.given)
			c.Cycle()
			if diff := cmp.Diff(test.want, c.Waits()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// madeClaim gives pods a claim of that name that was made from a template.
func madeClaim(name string) PodOption {
	return Mutate(func(p *v1.Pod) {
		template := "devices"
		p.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "device", ResourceClaimTemplateName: &template}}
		p.Status.ResourceClaimStatuses = []v1.PodResourceClaimStatus{{Name: "device", ResourceClaimName: &name}}
	})
}

// TestNominatedResourcesAreNotOfOtherSchedulers asserts that resources which victims have left, and which are nominated to
// the gang that evicted them, do not count as used by pods of other schedulers.
func TestNominatedResourcesAreNotOfOtherSchedulers(t *testing.T) {
	c := New(t, BuiltIn(t), Given(Node("g1", "64cpu 8gpu"), Queue("q", 1),
		Group("q/low", 2, Running(2, "1cpu 4gpu", "g1")),
		Group("q/high", 1, Priority(9), Pending(1, "1cpu 8gpu")),
		Group("q/other", 1, Pending(1, "1cpu 4gpu")),
	), WithConfig(AllActions))
	c.Cycle()
	c.FinishEvictions("q/low-0")
	c.Cycle()
	const want = "waits q/other NotEnoughResources: needs 1 more pod of 4 nvidia.com/gpu + 1 cpu; 0/1 nodes are available: 1 Insufficient nvidia.com/gpu"
	if got := strings.Split(c.Waits(), "\n"); !slices.Contains(got, want) {
		t.Errorf("want %q in %q", want, got)
	}
}
