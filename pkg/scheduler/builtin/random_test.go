// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/subgroups"
)

// TestRandomClusters runs several cycles of random clusters. It asserts that no task waits for which a node has resources,
// and the invariants of schedtest: consistent accounts, no node and no queue over its limit, no gang bound in part, no
// second decision for a task, no trace of discarded statements, and equal decisions for the same objects in any order.
func TestRandomClusters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &randomCluster{t: t}
		registry := BuiltIn(t)
		if err := registry.AddAction(missedPlacements{t}); err != nil {
			t.Fatal(err)
		}
		c := New(t, registry, r.rows(), WithConfig(r.policy()), WithShuffleSeed(rapid.Int64().Draw(t, "seed")))
		for range rapid.IntRange(1, 5).Draw(t, "cycles") {
			c.Cycle()
			for range rapid.IntRange(0, 4).Draw(t, "changes") {
				r.change(c)
			}
		}
		c.Cycle()
	})
}

// policy returns the built-in policy with missedPlacements after the other actions, and perhaps without a plugin. The
// plugins gang and proportion stay.
func (r *randomCluster) policy() string {
	text := strings.Replace(conf.DefaultYAML(), `"allocate, backfill"`, `"allocate, backfill, missed-placements"`, 1)
	without := r.oneOf("without", "", "", "", "priority", "conformance", "drf", "predicates")
	return strings.Replace(text, "  - name: "+without+"\n", "", 1)
}

// missedPlacements is an action that decides nothing. It fails the test if the other actions should have placed a task:
// a task whose job has started or needs one member only, or a gang of equal tasks, where the queue permits them and nodes
// have available resources.
type missedPlacements struct{ t schedtest.T }

func (missedPlacements) Name() string { return "missed-placements" }

func (a missedPlacements) Execute(_ context.Context, ssn *framework.Session) error {
	defer ssn.ActivateReservation(nil)
	for _, j := range ssn.Jobs() {
		ssn.ActivateReservation(j)
		if ssn.JobPipelined(j) && !ssn.JobReady(j) {
			continue // its placements wait for resources that are being released
		}
		tasks := ssn.WaitingTasks(j)
		if j.SubGroups != nil {
			if !ssn.JobReady(j) {
				continue // package subgroups tests which tasks start first
			}
			tasks = slices.DeleteFunc(tasks, func(t *api.TaskInfo) bool { return !subgroups.MayStartAlone(t) })
		}
		if need := int(j.MinMember - j.ReadyCount()); need > 1 {
			a.tryGang(ssn, j, tasks, need)
			continue
		}
		for _, task := range tasks {
			if n := a.possible(ssn, task); n != nil {
				a.t.Fatalf("%s waits, although node %s is available", task.Key, n.Name)
			}
		}
	}
	return nil
}

// tryGang places equal tasks on any nodes: if enough of them fit, they fit in any order.
func (a missedPlacements) tryGang(ssn *framework.Session, j *api.JobInfo, tasks []*api.TaskInfo, need int) {
	stmt := ssn.Statement()
	defer stmt.Discard()
	placed := 0
	for _, task := range tasks {
		if task.Signature != tasks[0].Signature {
			return
		}
		if n := a.possible(ssn, task); n != nil {
			stmt.Allocate(task, n)
			placed++
		}
	}
	if placed >= need {
		a.t.Fatalf("the gang %s waits, although %d of its pods fit", j.Key, placed)
	}
}

func (missedPlacements) possible(ssn *framework.Session, task *api.TaskInfo) *api.NodeInfo {
	if len(task.Signature.Terms) > 0 { // pods that its affinity selects may have been placed after it
		return nil
	}
	if !ssn.Allocatable(task.Job, task.Request, api.Now) {
		return nil
	}
	for _, n := range ssn.Cluster().Nodes() {
		if n != nil && ssn.Filter(task.Signature, n) == nil && n.Fits(task, api.Now) && ssn.Predicate(task, n, api.Now) == nil {
			return n
		}
	}
	return nil
}

// randomCluster draws rows and changes of a cluster.
type randomCluster struct {
	t         *rapid.T
	nodes     []string
	queues    []string
	groups    int
	added     int
	templates []gangTemplate // for gangOfTemplate
}

func (r *randomCluster) oneOf(what string, values ...string) string {
	return rapid.SampledFrom(values).Draw(r.t, what)
}

func (r *randomCluster) upTo(n int, what string) int { return rapid.IntRange(0, n).Draw(r.t, what) }

func (r *randomCluster) rows() []Row {
	rows := []Row{Queue("default", 1)}
	r.queues = []string{"default"}
	for i := range 1 + r.upTo(2, "queues") {
		rows = append(rows, r.queue(fmt.Sprintf("q%d", i)))
	}
	for range 1 + r.upTo(3, "nodes") {
		rows = append(rows, r.node())
	}
	if rapid.Bool().Draw(r.t, "many nodes") { // so many that not all of them are filtered again
		rows = append(rows, Nodes(20, "cordoned", "1cpu", Unschedulable()))
	}
	for range r.upTo(5, "groups") {
		rows = append(rows, r.group())
	}
	for range r.upTo(3, "others") {
		rows = append(rows, r.other())
	}
	return rows
}

func (r *randomCluster) queue(name string) Row {
	r.queues = append(r.queues, name)
	options := map[string]QueueOption{
		"capability":      Capability("3cpu"),
		"gpu capability":  Capability("2gpu 8Gi"),
		"guarantee":       Guarantee("2cpu"),
		"not reclaimable": NotReclaimable(),
	}
	var chosen []QueueOption
	if option := options[r.oneOf("queue option", "", "capability", "gpu capability", "guarantee", "not reclaimable")]; option != nil {
		chosen = append(chosen, option)
	}
	return Queue(name, int32(1+r.upTo(3, "weight")), chosen...)
}

func (r *randomCluster) node() Row {
	name := fmt.Sprintf("n%d", len(r.nodes))
	r.nodes = append(r.nodes, name)
	options := []NodeOption{Label("zone", r.oneOf("zone", "a", "b"))}
	switch r.oneOf("node option", "", "", "", "taint", "cordoned", "not ready") {
	case "taint":
		options = append(options, Taint("dedicated=infra:NoSchedule"))
	case "cordoned":
		options = append(options, Unschedulable())
	case "not ready":
		options = append(options, NotReady())
	}
	return Node(name, r.oneOf("allocatable", "4cpu 8Gi", "2cpu 4Gi 2gpu", "8cpu 2Gi", "4cpu 8Gi 2pods"), options...)
}

func (r *randomCluster) group() Row {
	r.groups++
	name := r.oneOf("queue", r.queues...) + "/g" + fmt.Sprint(r.groups)
	return Group(name, int32(1+r.upTo(4, "min")), append(r.members(true), randomSubGroups(r.upTo)...)...)
}

// randomSubGroups draws subgroups of pods by the labels role and replica.
func randomSubGroups(upTo func(n int, what string) int) []Part {
	minimum := func() *int32 { return ptr.To(int32(upTo(2, "minimum of a subgroup"))) }
	x, y := v1alpha1.SubGroup{Name: "x", MinMember: minimum()}, v1alpha1.SubGroup{Name: "y", MinMember: minimum()}
	switch upTo(7, "subgroups") {
	case 1:
		return []Part{SubGroups(x)}
	case 2:
		return []Part{SubGroups(x, y)}
	case 3:
		return []Part{SubGroups(v1alpha1.SubGroup{Name: "x", SegmentSize: 2, SegmentBy: "replica", MinSubGroup: minimum()}, y)}
	case 4:
		x.Parent, y.Parent = "any", "any"
		return []Part{SubGroups(v1alpha1.SubGroup{Name: "any", MinSubGroup: minimum()}, x, y)}
	}
	return nil
}

// roleOptions draws the labels that randomSubGroups selects by.
func roleOptions(upTo func(n int, what string) int) []PodOption {
	options := []PodOption{Label("role", []string{"x", "y", "z"}[upTo(2, "role")])}
	if replica := upTo(2, "replica"); replica > 0 {
		options = append(options, Label("replica", fmt.Sprint(replica)))
	}
	return options
}

func (r *randomCluster) other() Row {
	r.added++
	name := fmt.Sprintf("x%d", r.added)
	switch r.oneOf("kind", "plain", "set", "gang", "foreign", "lost") {
	case "plain":
		return Plain(name, r.members(true)...)
	case "set":
		return ReplicaSet(name, append(r.members(true), OfQueue(r.oneOf("queue", r.queues...)))...)
	case "gang":
		return ReplicaSet(name, append(r.members(true), GangOf("2"))...)
	case "lost":
		return MissingGroup(name, r.members(false)...)
	}
	return Foreign(name, append(r.members(true), Priority(int32(r.upTo(1, "priority"))), Nominated(r.oneOf("nominated", r.nodes...)))...)
}

func (r *randomCluster) members(onNodes bool) []Part {
	var parts []Part
	for range r.upTo(2, "pod options") {
		parts = append(parts, r.option())
	}
	for range 1 + r.upTo(2, "member lists") {
		count, request := 1+r.upTo(3, "count"), r.oneOf("request", "1cpu", "2cpu 1Gi", "0.5cpu 3Gi", "1gpu 1cpu", "", "5cpu")
		kinds := []string{"pending", "pending", "pending", "gated"}
		if onNodes {
			kinds = append(kinds, "bound", "running", "releasing", "succeeded", "failed")
		}
		kind, node := r.oneOf("kind", kinds...), r.oneOf("node", r.nodes...)
		labels := roleOptions(r.upTo)
		waiting := append(labels, Priority(int32(r.upTo(2, "priority"))))
		switch kind {
		case "pending":
			parts = append(parts, Pending(count, request, waiting...))
		case "gated":
			parts = append(parts, Gated(count, request, waiting...))
		case "bound":
			parts = append(parts, Bound(count, request, node, labels...))
		case "running":
			parts = append(parts, Running(count, request, node, labels...))
		case "releasing":
			parts = append(parts, Releasing(count, request, node, labels...))
		case "succeeded":
			parts = append(parts, Succeeded(count, request, node, labels...))
		case "failed":
			parts = append(parts, Failed(count, request, node, labels...))
		}
	}
	return parts
}

func (r *randomCluster) option() Part {
	options := []PodOption{
		Label("app", "x"), Label("app", "y"),
		Near("zone", "app=x"), Near(v1.LabelHostname, "app=x"), Away(v1.LabelHostname, "app=x"), Away("zone", "app=y"),
		PreferNear(10, "zone", "app=y"), PreferNodes(10, "zone", "b"), Spread(1, "zone", "app=x"),
		HostPort(80), Init("3cpu"), Tolerate("dedicated=infra:NoSchedule"), NodeSelector("zone", "a"), RequireNode("n0"),
	}
	return options[r.upTo(len(options)-1, "option")]
}

func (r *randomCluster) change(c *Scenario) {
	pod := func() string { return r.oneOf("pod", c.Pods()...) }
	if len(c.Pods()) == 0 {
		return
	}
	switch r.oneOf("change", "confirm", "confirm one", "refuse", "refuse one", "start", "succeed", "fail",
		"release", "delete", "recreate", "delete group", "delete node", "delete queue", "group", "other", "node", "ungate", "relabel", "wait") {
	case "wait": // until starvation reservations
		c.Wait(6 * time.Minute)
	case "confirm":
		c.ConfirmBinds()
	case "confirm one":
		if binds := c.InFlight(); len(binds) > 0 {
			c.ConfirmBinds(r.oneOf("bind", binds...))
		}
	case "refuse":
		c.FailBinds()
	case "refuse one":
		if binds := c.InFlight(); len(binds) > 0 {
			c.FailBinds(r.oneOf("bind", binds...))
		}
	case "start":
		c.Start()
	case "succeed":
		c.Succeed()
	case "fail":
		c.Fail()
	case "release":
		c.Release(pod())
	case "delete":
		c.Delete(pod())
	case "recreate":
		c.Recreate(pod())
	case "delete group":
		if groups := c.Groups(); len(groups) > 0 {
			c.DeleteGroup(r.oneOf("group", groups...))
		}
	case "delete node":
		if nodes := c.Nodes(); len(nodes) > 1 {
			c.DeleteNode(r.oneOf("node", nodes...))
			r.nodes = c.Nodes()
		}
	case "delete queue":
		if queues := c.Queues(); len(queues) > 1 {
			c.DeleteQueue(r.oneOf("queue", queues...))
			r.queues = c.Queues()
		}
	case "group":
		c.Add(r.group())
	case "other":
		if slices.Contains(c.Queues(), "default") {
			c.Add(r.other())
		}
	case "node":
		c.Add(r.addedNode())
	case "ungate":
		c.Ungate(pod())
	case "relabel":
		c.Relabel(pod(), r.oneOf("label", "app", "role", "replica"), r.oneOf("value", "", "x", "y"))
	}
}

func (r *randomCluster) addedNode() Row {
	r.added++
	name := fmt.Sprintf("m%d", r.added)
	r.nodes = append(r.nodes, name)
	return Node(name, "2cpu 4Gi", Label("zone", "a"))
}
