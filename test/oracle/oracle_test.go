// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package oracle compares the scheduler's filters with those of kube-scheduler: on random clusters, for every pending
// pod and every node, the plugin predicates and the node accounts must admit the pod exactly where kube-scheduler's
// default filters do.
package oracle

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/plugins/predicates"
)

func TestVerdictsEqualKubeScheduler(t *testing.T) {
	counts := map[string]int{}
	theirs := newPeer(t)
	pairs := 0
	for pairs < *pairsAtLeast && !t.Failed() {
		rapid.Check(t, func(t *rapid.T) {
			for range fixturesPerCheck {
				compareFixture(t, drawFixture(t), theirs, counts)
			}
		})
		pairs = 0
		for _, n := range counts {
			pairs += n
		}
		if testing.Short() {
			break
		}
	}
	t.Logf("%d pairs of pod and node: %v", pairs, counts)
	for _, verdict := range []string{"fits", "resources", "selector", "taint", "port", "affinity", "spread"} {
		if !t.Failed() && counts[verdict]*200 < pairs {
			t.Errorf("only %d of %d pairs end in %q: the generator does not cover it", counts[verdict], pairs, verdict)
		}
	}
}

// pairsAtLeast is the minimum number of pairs; the test repeats its checks until it is reached.
var pairsAtLeast = flag.Int("pairs", 200_000, "how many pairs of pod and node are compared at least, but with -short")

// fixturesPerCheck is the number of clusters of each of rapid's checks (100 by default).
const fixturesPerCheck = 3

func compareFixture(t *rapid.T, w *fixture, theirs *peer, counts map[string]int) {
	m := newModel(t, w)
	defer m.ssn.Close()
	compare(t, w, m, theirs, api.Now, counts)
	compare(t, w, m, theirs, api.Future, counts)
	// Placements within the session must be visible at once, and undone placements must not.
	waited, ran := slices.Clone(w.waiting), slices.Clone(w.running)
	for i := range w.waiting {
		if m.placeSomewhere(w, i) {
			compare(t, w, m, theirs, api.Now, counts)
		}
	}
	for i := range w.running {
		if m.evict(w, i) {
			compare(t, w, m, theirs, when(t), counts)
		}
	}
	m.stmt.RollbackTo(0)
	w.waiting, w.running = waited, ran
	compare(t, w, m, theirs, when(t), counts)
}

func when(t *rapid.T) api.When { return api.When(rapid.Bool().Draw(t, "future")) }

// compare compares the verdicts of both schedulers for every pending pod without a node and every node.
func compare(t *rapid.T, w *fixture, m *openSession, p *peer, when api.When, counts map[string]int) {
	p.show(t, w, w.podsOnNodes(when))
	for _, pod := range w.waiting {
		if pod.Spec.NodeName != "" {
			continue
		}
		theirs := p.verdicts(t, pod)
		task := m.cluster.Tasks()[api.TaskID(pod.UID)]
		for _, node := range w.nodes {
			n := m.cluster.Node(node.Name)
			if when == api.Future && !n.Ready() {
				continue // the scheduler does not use resources released there, on purpose
			}
			kind, ours := m.verdict(task, n, when)
			counts[kind]++
			if (ours == "") != (theirs[node.Name] == "") {
				t.Fatalf("%s", explain(w, pod, node, when, ours, theirs[node.Name]))
			}
		}
	}
}

// openSession is our scheduler: a session over the fixture.
type openSession struct {
	cluster *model.Cluster
	ssn     *framework.Session
	stmt    *framework.Statement
}

const schedulerName = "batch-scheduler"

func newModel(t *rapid.T, w *fixture) *openSession {
	registry := framework.NewRegistry()
	if err := registry.AddPlugin(predicates.Name, predicates.Spec()); err != nil {
		t.Fatal(err)
	}
	return newModelOf(t, w, registry, conf.Plugin{Name: predicates.Name}, framework.Handle{})
}

// failer is a test, random or not.
type failer interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// newModelOf opens a session with one plugin.
func newModelOf(t failer, w *fixture, registry *framework.Registry, plugin conf.Plugin, handle framework.Handle) *openSession {
	t.Helper()
	profile, err := registry.NewProfile(&conf.Configuration{Tiers: []conf.Tier{{Plugins: []conf.Plugin{plugin}}}}, handle)
	if err != nil {
		t.Fatal(err)
	}
	cluster := model.NewCluster(model.Options{SchedulerNames: []string{schedulerName}, DefaultQueue: "default"})
	for _, ns := range w.namespaces {
		cluster.Events().SetNamespace(ns)
	}
	for _, node := range w.nodes {
		cluster.Events().SetNode(node)
	}
	for _, pod := range slices.Concat(w.running, w.waiting) {
		cluster.Events().SetPod(pod)
	}
	cluster.Events().Recompute()
	ssn := profile.Open(cluster, nil, logr.Discard())
	return &openSession{cluster: cluster, ssn: ssn, stmt: ssn.Statement()}
}

// verdict returns the kind of the reason why the task does not fit on the node, and the reason; empty if it fits.
func (m *openSession) verdict(t *api.TaskInfo, n *api.NodeInfo, when api.When) (kind, reason string) {
	unfit := m.ssn.Filter(t.Signature, n)
	if unfit == nil {
		if short := n.InsufficientDimension(t, when); short >= 0 {
			return "resources", "Insufficient " + string(m.cluster.Dims().Name(short))
		}
		unfit = m.ssn.Predicate(t, n, when)
	}
	if unfit == nil {
		return "fits", ""
	}
	kinds := map[api.UnfitReason]string{
		api.NodeSelector: "selector", api.Taint: "taint", api.HostPortTaken: "port", api.PodAffinity: "affinity", api.TopologySpread: "spread",
	}
	if kind = kinds[unfit.Reason]; kind == "" {
		kind = "other"
	}
	return kind, unfit.Message()
}

// placeSomewhere places a pending pod on the first node that fits, in both schedulers, and reports whether there was
// one.
func (m *openSession) placeSomewhere(w *fixture, i int) bool {
	task := m.cluster.Tasks()[api.TaskID(w.waiting[i].UID)]
	for _, node := range w.nodes {
		n := m.cluster.Node(node.Name)
		if _, reason := m.verdict(task, n, api.Now); reason != "" {
			continue
		}
		m.stmt.Allocate(task, n)
		placed := w.waiting[i].DeepCopy()
		placed.Spec.NodeName = node.Name
		w.waiting[i] = placed
		return true
	}
	return false
}

// evict evicts a running pod of our scheduler, in both schedulers, and reports whether that was possible.
func (m *openSession) evict(w *fixture, i int) bool {
	task := m.cluster.Tasks()[api.TaskID(w.running[i].UID)]
	if task == nil || !task.Evictable() {
		return false
	}
	m.stmt.Evict(task, nil, api.Preempted)
	leaving := w.running[i].DeepCopy()
	leaving.DeletionTimestamp = new(metav1.Now())
	w.running[i] = leaving
	return true
}

// explain formats a difference with all objects that are needed to understand it.
func explain(w *fixture, pod *v1.Pod, node *v1.Node, when api.When, ours, theirs string) string {
	var b strings.Builder
	say := func(verdict string) string {
		if verdict == "" {
			return "fits"
		}
		return verdict
	}
	fmt.Fprintf(&b, "pod %s/%s on node %s (future: %v)\n  this scheduler: %s\n  kube-scheduler: %s\n",
		pod.Namespace, pod.Name, node.Name, bool(when), say(ours), say(theirs))
	write := func(what string, object any) { fmt.Fprintf(&b, "--- %s\n%s", what, asYAML(object)) }
	write("the pod", pod)
	for _, n := range w.nodes {
		write("node", n)
	}
	for _, p := range w.podsOnNodes(when) {
		write("podsOnNodes pod", p)
	}
	return b.String()
}

func asYAML(object any) string {
	text, err := yaml.Marshal(object)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
