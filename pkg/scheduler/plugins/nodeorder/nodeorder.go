// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package nodeorder is the plugin that scores nodes for a task.
//
// A score is a sum of scorers, each with a weight. A scorer returns a value from zero to api.OneScore that depends on
// the task and the node only, never on the set of feasible nodes; only the scorers for pod affinity and topology
// spread (podaffinity, podtopologyspread) read other pods. Scorers use the requests of pods. kube-scheduler's default
// requests for pods without requests are not used: such pods count as zero.
//
// A scorer that does not apply to a task (no preference, no constraint) is not called for it, and a scorer of weight
// zero is never called.
package nodeorder

import (
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/features"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

// Name of the plugin in configurations.
const Name = "nodeorder"

// MaxWeight is the largest weight of a scorer.
const MaxWeight = 100

// Arguments are the weights of the scorers, from 0 (never called) to MaxWeight.
type Arguments struct {
	// LeastRequested prefers nodes with the largest fraction of free resources, MostRequested those with the
	// smallest, BalancedResource those whose resources are used in equal fractions.
	LeastRequested, MostRequested, BalancedResource int64
	// NodeAffinity and PodAffinity use the preferred terms of the pod.
	NodeAffinity, PodAffinity int64
	// TaintToleration avoids taints of effect PreferNoSchedule that the pod does not tolerate.
	TaintToleration int64
	// PodTopologySpread uses constraints whose whenUnsatisfiable is ScheduleAnyway.
	PodTopologySpread int64
	// ImageLocality prefers nodes that have the pod's images.
	ImageLocality int64
}

// SetDefaults sets the weights of the built-in configuration.
func (a *Arguments) SetDefaults() {
	*a = Arguments{
		LeastRequested:    1,
		BalancedResource:  1,
		NodeAffinity:      1,
		PodAffinity:       1,
		TaintToleration:   1,
		PodTopologySpread: 1,
	}
}

// weight is one argument with its name in files and its scorer.
type weight struct {
	key   string
	value *int64
	about string
}

func (a *Arguments) weights() []weight {
	return []weight{
		{"leastrequested.weight", &a.LeastRequested, "prefers nodes with more free resources"},
		{"mostrequested.weight", &a.MostRequested, "prefers nodes with fewer free resources"},
		{"balancedresource.weight", &a.BalancedResource, "prefers nodes whose resources are used evenly"},
		{"nodeaffinity.weight", &a.NodeAffinity, "prefers nodes by preferred node affinity (the built-in policy says 2)"},
		{"podaffinity.weight", &a.PodAffinity, "prefers nodes by preferred affinity between pods"},
		{"tainttoleration.weight", &a.TaintToleration, "prefers nodes without taints of effect `PreferNoSchedule`"},
		{"podtopologyspread.weight", &a.PodTopologySpread, "prefers an even spread, by constraints with `ScheduleAnyway`"},
		{"imagelocality.weight", &a.ImageLocality, "prefers nodes that have the images"},
	}
}

// decode reads arguments over the defaults.
func decode(d *conf.Decoder) Arguments {
	var a Arguments
	a.SetDefaults()
	for _, w := range a.weights() {
		*w.value = d.Int(w.key, *w.value, 0, MaxWeight, w.about)
	}
	return a
}

// Spec registers the plugin.
func Spec() framework.PluginSpec {
	return framework.PluginSpec{
		New: func(d *conf.Decoder, _ framework.Handle) (framework.Plugin, error) {
			return newPlugin(decode(d)), nil
		},
		Check:        func(d *conf.Decoder) { decode(d) },
		NeverPermits: []conf.Point{conf.Preemptable, conf.Reclaimable},
	}
}

// plugin exists as long as the configuration.
type plugin struct {
	scorers []scorer // scorers with a positive weight
	counted *counts
}

// scorer is one aspect of a node.
type scorer struct {
	weight int64
	// applies reports whether the scorer applies to tasks with a signature.
	applies func(*api.Signature) bool
	// score returns a value from 0 to api.OneScore.
	score func(*scoreState, *api.NodeInfo) api.Score
}

func newPlugin(a Arguments) *plugin {
	comparison := utilfeature.DefaultFeatureGate.Enabled(features.TaintTolerationComparisonOperators)
	p := &plugin{counted: &counts{comparison: comparison}}
	for _, s := range []scorer{
		{a.LeastRequested, always, leastRequested},
		{a.MostRequested, always, mostRequested},
		{a.BalancedResource, requestsResources, balancedResource},
		{a.NodeAffinity, prefersNodes, nodeAffinity},
		{a.TaintToleration, always, softTaints(comparison)},
		{a.PodAffinity, prefersPods, podAffinity},
		{a.PodTopologySpread, prefersSpread, topologySpread},
		{a.ImageLocality, always, imageLocality},
	} {
		if s.weight > 0 {
			p.scorers = append(p.scorers, s)
		}
	}
	return p
}

func always(*api.Signature) bool { return true }

func (p *plugin) Name() string { return Name }

func (p *plugin) OnSessionOpen(ssn *framework.Session) {
	p.counted.open(ssn.Cluster())
	q := &scoreState{scorers: p.scorers, cluster: ssn.Cluster(), counted: p.counted}
	ssn.AddNodeOrderFn(Name, q.score)
}

func (p *plugin) OnSessionClose(*framework.Session) { p.counted.close() }

// scoreState is the scoring state of one session. Callers usually score many nodes in a row for one signature, so
// what depends on the signature only is computed once.
type scoreState struct {
	scorers []scorer
	cluster api.ClusterView
	counted *counts

	signature  *api.Signature
	active     []scorer // scorers that apply to the signature
	dimensions []int    // dimensions that the resource scorers use
	neighbours *neighbours
	free       []api.Score // of the current node; see computeFree
}

// score returns the sum of the weighted scores. It does not allocate for tasks without pod preferences.
func (q *scoreState) score(t *api.TaskInfo, n *api.NodeInfo) api.Score {
	if t.Signature != q.signature {
		q.setSignature(t.Signature)
	}
	q.computeFree(n)
	var sum api.Score
	for i := range q.active {
		sum += api.Score(q.active[i].weight) * q.active[i].score(q, n)
	}
	return sum
}

func (q *scoreState) setSignature(signature *api.Signature) {
	q.signature, q.neighbours = signature, nil
	q.active = q.active[:0]
	for i := range q.scorers {
		if q.scorers[i].applies(signature) {
			q.active = append(q.active, q.scorers[i])
		}
	}
	q.dimensions = append(q.dimensions[:0], api.CPU, api.Memory)
	for i := api.Pods + 1; i < len(signature.Request); i++ {
		if signature.Request[i] > 0 && q.cluster.Dims().Shared(i) {
			q.dimensions = append(q.dimensions, i)
		}
	}
	if prefersPods(signature) || prefersSpread(signature) {
		q.neighbours = q.counted.of(signature)
	}
}
