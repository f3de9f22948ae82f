package framework

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// What a profile remembers across sessions equals what a walk over everything finds out, after
// any changes.
func TestMemoryAgainstTwin(t *testing.T) {
	byLabel := testPlugin{name: "label", open: func(ssn *Session) {
		ssn.AddFilterFn("label", func(s *api.Signature, n *api.NodeInfo) *api.Unfit {
			if want := s.Exemplar.NodeSelector["disk"]; want != "" && n.Node.Labels["disk"] != want {
				return &api.Unfit{Reason: api.NodeSelector}
			}
			return nil
		})
	}}
	rapid.Check(t, func(t *rapid.T) {
		c := newCluster()
		profile := profileOf(t, nil, []testPlugin{byLabel})
		for range rapid.IntRange(1, 6).Draw(t, "sessions") {
			for range rapid.IntRange(0, 6).Draw(t, "changes") {
				changeSomething(t, c)
			}
			ssn, _ := open(t, profile, c)
			compareMemory(t, ssn)
			compareRooms(t, ssn)
			stmt := ssn.Statement()
			for _, id := range slices.Sorted(maps.Keys(c.Tasks)) { // some of it comes back when the session closes
				task := c.Tasks[id]
				if n := c.Node("n1"); n != nil && task.Waiting() && rapid.Bool().Draw(t, "placed in the session") {
					stmt.Allocate(task, n)
					compareRooms(t, ssn)
				}
			}
			stmt.Discard()
			ssn.Close()
		}
	})
}

func changeSomething(t *rapid.T, c *api.Cluster) {
	nodeName := fmt.Sprintf("n%d", rapid.IntRange(0, 3).Draw(t, "node"))
	podName := fmt.Sprintf("p%d", rapid.IntRange(0, 5).Draw(t, "pod"))
	switch rapid.IntRange(0, 5).Draw(t, "change") {
	case 0:
		c.SetNode(node(nodeName, rapid.IntRange(1, 4).Draw(t, "cpu"), func(n *v1.Node) {
			n.Labels["disk"] = rapid.SampledFrom([]string{"ssd", "hdd"}).Draw(t, "disk")
			n.Spec.Unschedulable = rapid.IntRange(0, 4).Draw(t, "cordoned") == 0
			if rapid.IntRange(0, 4).Draw(t, "lost") == 0 {
				n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionUnknown}}
			}
		}))
	case 2:
		c.DeleteNode(nodeName)
	case 3:
		c.DeletePod(types.UID(podName))
	default:
		c.SetPod(pod(podName, rapid.IntRange(0, 2).Draw(t, "cpu"), func(p *v1.Pod) {
			if old := c.Tasks[api.TaskID(p.UID)]; old != nil {
				p.Spec.SchedulerName = old.Pod.Spec.SchedulerName
			} else if rapid.Bool().Draw(t, "foreign") {
				foreign(p)
			}
			if rapid.Bool().Draw(t, "placed") {
				p.Spec.NodeName = nodeName
			}
			if rapid.Bool().Draw(t, "picky") {
				p.Spec.NodeSelector = map[string]string{"disk": rapid.SampledFrom([]string{"ssd", "hdd"}).Draw(t, "disk")}
			}
			if rapid.IntRange(0, 4).Draw(t, "ended") == 0 {
				p.Status.Phase = v1.PodSucceeded
			}
			if rapid.IntRange(0, 4).Draw(t, "being deleted") == 0 {
				p.DeletionTimestamp = new(metav1.Now())
			}
		}))
	}
}

func compareMemory(t *rapid.T, ssn *Session) {
	c := ssn.Cluster()
	var total api.Resource
	for i, n := range c.Nodes() {
		usable := false
		for _, task := range c.Tasks {
			passes := n != nil && ssn.Filter(task.Signature, n) == nil
			if has := ssn.FeasibleNodes(task.Signature).Has(i); has != passes {
				t.Fatalf("node %d passes for %s: remembered as %t", i, task.ID, has)
			}
			member := task.Job != nil && (task.Waiting() || task.Status.Holding() && task.Node.Exists())
			usable = usable || passes && member
		}
		switch {
		case n == nil:
		case usable && n.Ready() && !n.Node.Spec.Unschedulable:
			total.Add(n.Allocatable.Minus(n.Foreign).NotNegative())
		default:
			for _, task := range n.Tasks {
				if task.Job != nil && task.Status.Holding() {
					total.Add(task.Request)
				}
			}
		}
	}
	if !ssn.Total().Equal(total) {
		t.Fatalf("total: remembered as %v, found %v", ssn.Total(), total)
	}
	for _, task := range c.Tasks {
		if got, want := ssn.CapacityCount(task.Signature), capacityCount(ssn, task.Signature); got != want {
			t.Fatalf("slots for %s: remembered as %d, found %d", task.ID, got, want)
		}
	}
}

// compareRooms counts for each task by walking over all nodes what the session knows by following them.
func compareRooms(t *rapid.T, ssn *Session) {
	c := ssn.Cluster()
	for i, n := range c.Nodes() {
		if got, want := ssn.ReleasingNodes().Has(i), n != nil && n.HasReleasing(); got != want {
			t.Fatalf("node %d has future room: remembered as %t", i, got)
		}
	}
	for _, task := range c.Tasks {
		var want api.NodeCounts
		for i, n := range c.Nodes() {
			if n == nil {
				continue
			}
			unfit := ssn.Filter(task.Signature, n)
			if short := n.InsufficientDimension(task, api.Now); unfit == nil && short >= 0 {
				unfit = &api.Unfit{Reason: api.Insufficient, Detail: string(c.Dims.Name(short))}
				if beside := n.Idle.Plus(n.Foreign); task.Request.Fits(beside) {
					unfit.Reason = api.InsufficientWithForeignPods
				}
			}
			if unfit != nil && unfit.Reason == api.NodeSelector {
				unfit.Detail = "node selector disk=" + task.Signature.Exemplar.NodeSelector["disk"]
			}
			want.Count(unfit)
			if known := ssn.KnownAvailable(task); known != nil && known.Has(i) != (unfit == nil) {
				t.Fatalf("node %d has room for %s: remembered as %t", i, task.ID, unfit != nil)
			}
		}
		want.Sort()
		if want.Available == 0 {
			want.Nearest = findNearest(ssn, task)
		}
		if diff := cmp.Diff(want, ssn.CountNodes(task), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("nodes for %s (-found +remembered):\n%s", task.ID, diff)
		}
		if task.Job == nil {
			continue
		}
		claim := api.NewClaim(task.Job, task.Job.Tasks)
		room := ssn.sumAvailable(claim)
		for d, asked := range claim.Request {
			if got := ssn.Insufficient(claim, d); asked > 0 && got != (asked > room.At(d)) {
				t.Fatalf("%s short of %s: %t, and there is %d for %d", task.Job.Key, c.Dims.Name(d), got, room.At(d), asked)
			}
		}
	}
}

// findNearest compares what is missing on all nodes.
func findNearest(ssn *Session, task *api.TaskInfo) *api.NearestNode {
	var miss *api.NearestNode
	var least int64
	for _, n := range ssn.Cluster().Nodes() {
		if n == nil || ssn.Filter(task.Signature, n) != nil || n.Fits(task, api.Now) {
			continue
		}
		lacks, room, gap := task.Request.Clone(), n.Available(task.Priority, api.Now), int64(0)
		for d, asked := range task.Request {
			lacks[d] = max(0, asked-room.At(d))
			if lacks[d] > 0 {
				gap += min(1000, int64(math.Ceil(float64(lacks[d])*1000/float64(asked))))
			}
		}
		if miss == nil || gap < least || gap == least && n.Name < miss.Node {
			miss, least = &api.NearestNode{Node: n.Name, Shortfall: lacks}, gap
		}
	}
	return miss
}

// capacityCount counts by trying: how many pods go on each node, one after the other.
func capacityCount(ssn *Session, signature *api.Signature) int64 {
	count := int64(0)
	for _, n := range ssn.Cluster().Nodes() {
		if n == nil || !n.Ready() || n.Node.Spec.Unschedulable || ssn.Filter(signature, n) != nil {
			continue
		}
		room := n.Allocatable.Minus(n.Foreign)
		for signature.Request.Fits(room) {
			room.Sub(signature.Request)
			count++
		}
	}
	return count
}
