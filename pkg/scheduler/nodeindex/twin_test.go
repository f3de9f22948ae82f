// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package nodeindex

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model/modeltest"
)

// TestIndexAgainstTwin compares each answer of an index with what a walk over all nodes finds, after random changes of
// the cluster between sessions and random placements and reservations in them.
func TestIndexAgainstTwin(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := &twin{T: t, c: NewCluster(), reservedFor: map[*api.NodeInfo][]string{}}
		w.c.Events().SetPodGroup(Group("gang", rapid.IntRange(1, 3).Draw(t, "minMember")))
		w.index = New(w.c, w.c.Dims())
		for range rapid.IntRange(1, 6).Draw(t, "sessions") {
			for range rapid.IntRange(0, 6).Draw(t, "changes") {
				w.changeSomething()
			}
			w.filters = open(w.index, w.c)
			w.total = w.findTotal()
			w.compare()
			undo := w.decideSomething()
			w.compare()
			undo()
			if rapid.Bool().Draw(t, "compared after the undo") {
				w.compare()
			}
			w.index.Close()
		}
	})
}

// twin answers the questions of an index by walking over all nodes.
type twin struct {
	*rapid.T
	c       *model.Cluster
	index   *Index
	filters *filters
	total   api.Resource // when the session opened
	// reservedFor are the names of the jobs for which resources of nodes are reserved.
	reservedFor map[*api.NodeInfo][]string
}

func (w *twin) changeSomething() {
	nodeName := fmt.Sprintf("n%d", rapid.IntRange(0, 3).Draw(w.T, "node"))
	podName := fmt.Sprintf("p%d", rapid.IntRange(0, 5).Draw(w.T, "pod"))
	switch rapid.IntRange(0, 5).Draw(w.T, "change") {
	case 0, 1:
		w.c.Events().SetNode(Node(nodeName, rapid.IntRange(1, 4).Draw(w.T, "cpu"), func(n *v1.Node) {
			n.Labels["disk"] = rapid.SampledFrom([]string{"ssd", "hdd"}).Draw(w.T, "disk")
			if rapid.Bool().Draw(w.T, "with GPUs") {
				gpus(2)(n)
			}
			if rapid.IntRange(0, 4).Draw(w.T, "cordoned") == 0 {
				cordoned(n)
			}
			if rapid.IntRange(0, 4).Draw(w.T, "not ready") == 0 {
				notReady(n)
			}
		}))
	case 2:
		w.c.Events().DeleteNode(nodeName)
	case 3:
		w.c.Events().DeletePod(types.UID(podName))
	default:
		w.c.Events().SetPod(w.drawPod(podName, nodeName))
	}
}

func (w *twin) drawPod(name, nodeName string) *v1.Pod {
	return Pod(name, rapid.IntRange(0, 2).Draw(w.T, "cpu"), func(p *v1.Pod) {
		if old := w.c.Tasks()[api.TaskID(p.UID)]; old != nil {
			p.Spec.SchedulerName, p.Labels = old.Pod.Spec.SchedulerName, old.Pod.Labels
		} else if rapid.Bool().Draw(w.T, "foreign") {
			foreign(p)
		} else if rapid.Bool().Draw(w.T, "in a gang") {
			InGroup("gang")(p)
		}
		if rapid.IntRange(0, 3).Draw(w.T, "with GPUs") == 0 {
			requestsGPUs(rapid.Int64Range(1, 2).Draw(w.T, "GPUs"))(p)
		}
		if rapid.Bool().Draw(w.T, "placed") {
			On(nodeName)(p)
		} else if rapid.IntRange(0, 2).Draw(w.T, "nominated") == 0 {
			p.Status.NominatedNodeName = nodeName // keeps resources from pods of lower priority if the pod is foreign
		}
		p.Spec.Priority = new(rapid.Int32Range(0, 1).Draw(w.T, "priority"))
		if rapid.Bool().Draw(w.T, "node selector") {
			selecting(rapid.SampledFrom([]string{"ssd", "hdd"}).Draw(w.T, "disk"))(p)
		}
		if rapid.IntRange(0, 7).Draw(w.T, "self-affinity") == 0 { // not local to nodes
			together("disk")(p)
		}
		if rapid.IntRange(0, 3).Draw(w.T, "host port") == 0 {
			p.Spec.Containers[0].Ports = []v1.ContainerPort{{HostPort: 80}}
		}
		if rapid.IntRange(0, 5).Draw(w.T, "with a claim") == 0 { // not local to nodes
			p.Spec.Volumes = []v1.Volume{{VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}}}
		}
		if rapid.IntRange(0, 4).Draw(w.T, "ended") == 0 {
			p.Status.Phase = v1.PodSucceeded
		}
		if rapid.IntRange(0, 4).Draw(w.T, "being deleted") == 0 {
			beingDeleted(p)
		}
	})
}

// decideSomething places and evicts pods and reserves resources, as a session does, and compares at each step. It returns
// a function that undoes the decisions.
func (w *twin) decideSomething() (undo func()) {
	var undos []func()
	for _, id := range slices.Sorted(maps.Keys(w.c.Tasks())) {
		task := w.c.Tasks()[id]
		n := w.c.Node(fmt.Sprintf("n%d", rapid.IntRange(0, 3).Draw(w.T, "node of the decision")))
		status, before := task.Status, task.Node
		decision := rapid.SampledFrom([]string{"nothing", "allocate", "pipeline", "evict", "reserve"}).Draw(w.T, "decision")
		switch {
		case decision == "allocate" && n != nil && task.Waiting():
			w.c.Ledger().Place(task, api.Allocated, n)
		case decision == "pipeline" && n != nil && task.Waiting():
			w.c.Ledger().Place(task, api.Pipelined, n)
		case decision == "evict" && task.Job != nil && status == api.Bound && before.Exists():
			w.c.Ledger().Place(task, api.Releasing, before)
		case decision == "reserve" && n != nil && task.Job != nil && task.Waiting():
			r := w.c.Ledger().Reserve(task.Job.Queue, []api.Decision{{Kind: api.Pipeline, Task: task, Node: n}})
			if before := w.reservedFor[n]; !r.Parts[0].Amount.IsZero() {
				w.reservedFor[n] = append(slices.Clone(before), task.Job.Key)
				undos = append(undos, func() { w.reservedFor[n] = before })
			}
			undos = append(undos, func() { w.c.Ledger().Unreserve(r) })
			continue
		default:
			continue
		}
		undos = append(undos, func() { w.c.Ledger().Place(task, status, before) })
		w.compare()
	}
	return func() {
		for _, undo := range slices.Backward(undos) {
			undo()
		}
	}
}

func (w *twin) compare() {
	if !w.index.Total().Equal(w.total) {
		w.Fatalf("total: the index returns %v, the walk %v", w.index.Total(), w.total)
	}
	for i, n := range w.c.Nodes() {
		if got, want := w.index.Releasing().Has(i), n != nil && n.HasReleasing(); got != want {
			w.Fatalf("node %d is releasing resources: the index returns %t", i, got)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(w.c.Tasks())) {
		task := w.c.Tasks()[id]
		w.compareNodes(task)
		if got, want := w.index.CapacityCount(task.Signature), w.inOneDomain(task.Signature, true); got != want {
			w.Fatalf("capacity count for %s: the index returns %d, the walk %d", id, got, want)
		}
		if task.Job != nil {
			w.compareClaim(task.Job)
		}
	}
}

// compareNodes compares the verdicts of all nodes for a task.
func (w *twin) compareNodes(task *api.TaskInfo) {
	known := w.index.KnownAvailable(task)
	if known != nil && !w.c.ClassOf(task).NodeLocal() {
		w.Fatalf("the nodes for %s are known, although the answer does not depend on single nodes", task.ID)
	}
	var want api.NodeCounts
	for i, n := range w.c.Nodes() {
		feasible := n != nil && w.filters.Filter(task.Signature, n) == nil
		if got := w.index.Feasible(task.Signature).Has(i); got != feasible {
			w.Fatalf("node %d is feasible for %s: the index returns %t", i, task.ID, got)
		}
		if n == nil {
			if known != nil && known.Has(i) {
				w.Fatalf("node %d is known to be available for %s, and does not exist", i, task.ID)
			}
			continue
		}
		unfit := w.unfit(task, n)
		want.Count(unfit)
		if known != nil && known.Has(i) != (unfit == nil) {
			w.Fatalf("node %d is available for %s: the index returns %t", i, task.ID, known.Has(i))
		}
	}
	want.Sort()
	if want.Available == 0 {
		want.Nearest = w.nearest(task)
	}
	if diff := cmp.Diff(want, w.index.Count(task), cmpopts.EquateEmpty()); diff != "" {
		w.Fatalf("nodes for %s (-walk +index):\n%s", task.ID, diff)
	}
	if known := w.index.KnownAvailable(task); (known != nil) != w.c.ClassOf(task).NodeLocal() {
		w.Fatalf("after Count the nodes for %s are known: %t", task.ID, known != nil)
	}
}

// unfit returns why the task cannot start on the node now, or nil.
func (w *twin) unfit(task *api.TaskInfo, n *api.NodeInfo) *api.Unfit {
	if unfit := w.filters.Filter(task.Signature, n); unfit != nil {
		if unfit.Reason == api.NodeSelector {
			unfit.Detail = "node selector disk=" + task.Signature.Exemplar.NodeSelector["disk"]
		}
		return unfit
	}
	dimension := n.InsufficientDimension(task, api.Now)
	if dimension < 0 {
		return w.filters.Predicate(task, n, api.Now)
	}
	if _, found := n.Node.Status.Allocatable[gpu]; !found && task.Request.At(w.c.Dims().Index(gpu)) > 0 {
		return &api.Unfit{Reason: api.WithoutResource, Detail: gpu, Plugin: "resources"}
	}
	if !n.Reserved.IsZero() && task.Request.Fits(n.Idle) {
		return &api.Unfit{Reason: api.Reserved, Detail: slices.Min(w.reservedFor[n]), Plugin: "reservation"}
	}
	unfit := &api.Unfit{Reason: api.Insufficient, Detail: string(w.c.Dims().Name(dimension)), Plugin: "resources"}
	if !n.Foreign.IsZero() && task.Request.Fits(n.Available(task.Priority, api.Now).Plus(n.Foreign)) {
		unfit.Reason = api.InsufficientWithForeignPods
	}
	return unfit
}

// compareClaim compares the sums for a claim of all tasks of a job.
func (w *twin) compareClaim(job *api.JobInfo) {
	claim := api.NewClaim(job, job.Tasks)
	available := w.available(claim)
	if got := w.index.Available(claim); !got.Equal(available) {
		w.Fatalf("available for %s: the index returns %v, the walk %v", job.Key, got, available)
	}
	for d, requested := range claim.Request {
		if got := w.index.Insufficient(claim, d); requested > 0 && got != (requested > available.At(d)) {
			w.Fatalf("insufficient %s for %s: the index returns %t, available are %d of %d", w.c.Dims().Name(d), job.Key, got, available.At(d), requested)
		}
	}
	if got, want := w.index.MaxMembers(job), w.members(job, false, map[*api.Signature]int64{}); got != want {
		w.Fatalf("most members of %s: the index returns %d, the walk %d", job.Key, got, want)
	}
	signature := job.Tasks[0].Signature
	if most := w.inOneDomain(signature, false); !w.index.CouldHold(signature, most) || w.index.CouldHold(signature, most+1) {
		w.Fatalf("the empty nodes hold %d tasks of %s: the index returns something else", most, job.Key)
	}
	tasks, enough := w.couldFit(job)
	gotTasks, gotEnough := w.index.CouldFit(job)
	if !maps.Equal(gotTasks, tasks) || gotEnough != enough {
		w.Fatalf("%s could fit: the index returns %v, %t, the walk %v, %t", job.Key, gotTasks, gotEnough, tasks, enough)
	}
}

func (w *twin) findTotal() api.Resource {
	var total api.Resource
	for _, n := range w.c.Nodes() {
		if n == nil {
			continue
		}
		usable := false
		for _, task := range w.c.Tasks() {
			member := task.Job != nil && (task.Waiting() || task.Status.Holding() && task.Node.Exists())
			usable = usable || member && w.filters.Filter(task.Signature, n) == nil
		}
		if usable && n.Ready() && !n.Node.Spec.Unschedulable {
			total.Add(n.Allocatable.Minus(n.Foreign).NotNegative())
			continue
		}
		for _, task := range n.Tasks {
			if task.Job != nil && task.Status.Holding() {
				total.Add(task.Request)
			}
		}
	}
	return total
}

func (w *twin) available(claim *api.Claim) api.Resource {
	var sum api.Resource
	for _, n := range w.c.Nodes() {
		if n == nil || !slices.ContainsFunc(claim.Tasks, func(t *api.TaskInfo) bool { return w.filters.Filter(t.Signature, n) == nil }) {
			continue
		}
		free := n.Idle.Clone()
		if n.Ready() {
			free.Add(n.Releasing)
		}
		free.Sub(n.Pipelined)
		free.Sub(n.Reserved)
		for d := range free {
			if claim.Request.At(d) == 0 {
				free[d] = 0
			}
		}
		sum.Add(free.NotNegative())
	}
	return sum
}

// nearest compares what is missing on all nodes.
func (w *twin) nearest(task *api.TaskInfo) *api.NearestNode {
	var nearest *api.NearestNode
	var least int64
	for _, n := range w.c.Nodes() {
		if n == nil {
			continue
		}
		if unfit := w.unfit(task, n); unfit == nil || unfit.Reason != api.Insufficient && unfit.Reason != api.InsufficientWithForeignPods {
			continue
		}
		shortfall, available, deficit := task.Request.Clone(), n.Available(task.Priority, api.Now), int64(0)
		for d, requested := range task.Request {
			if requested == 0 { // the node may be over capacity
				continue
			}
			shortfall[d] = max(0, requested-available.At(d))
			if shortfall[d] > 0 {
				deficit += min(1000, int64(math.Ceil(float64(shortfall[d])*1000/float64(requested))))
			}
		}
		if nearest == nil || deficit < least || deficit == least && n.Name < nearest.Node {
			nearest, least = &api.NearestNode{Node: n.Name, Shortfall: shortfall}, deficit
		}
	}
	return nearest
}
