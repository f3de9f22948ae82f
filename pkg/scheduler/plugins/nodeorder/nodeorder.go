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
//
// By default extended resources such as GPUs are packed and cpu and memory are spread. A gang of large pods needs whole
// nodes, and a node that one small pod has used is whole for none of them:
//
//	four nodes of 8 GPUs, four pods of 1 GPU      spread 1 1 1 1: no pod of 8 GPUs fits any more
//	                                              packed 4 0 0 0: three of them fit
//
// So extendedpacking prefers the node where most of the requested extended resource is in use, and extendedavoidance
// keeps pods that request none away from nodes that have some, as long as other nodes fit. Their weights outweigh
// leastrequested and balancedresource.
package nodeorder

import (
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/features"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

// Name of the plugin in configurations.
const Name = "nodeorder"

// MaxWeight is the largest weight of a scorer.
const MaxWeight = 100

// Arguments are the weights of the scorers, from 0 (never called) to MaxWeight, and what scorers need besides.
type Arguments struct {
	// LeastRequested prefers nodes with the largest fraction of free resources, MostRequested those with the
	// smallest, BalancedResource those whose resources are used in equal fractions.
	LeastRequested, MostRequested, BalancedResource int64
	// ExtendedPacking prefers nodes with the smallest free fraction of the extended resources that the pod requests.
	// ExtendedAvoidance prefers nodes without extended resources for pods that request none.
	ExtendedPacking, ExtendedAvoidance int64
	// NodeAffinity and PodAffinity use the preferred terms of the pod.
	NodeAffinity, PodAffinity int64
	// TaintToleration avoids taints of effect PreferNoSchedule that the pod does not tolerate.
	TaintToleration int64
	// PodTopologySpread uses constraints whose whenUnsatisfiable is ScheduleAnyway.
	PodTopologySpread int64
	// ImageLocality prefers nodes that have the pod's images.
	ImageLocality int64
	// TopologyPacking prefers nodes in domains of a Topology that are in use, for pods that require no domain. Topology is
	// the name of that Topology; empty: the only one.
	TopologyPacking int64
	Topology        string
	// NodeWeight prefers nodes whose label v1alpha1.LabelNodeWeight is lower.
	NodeWeight int64
}

// SetDefaults sets the weights of the built-in configuration.
func (a *Arguments) SetDefaults() {
	*a = Arguments{
		LeastRequested:    1,
		BalancedResource:  1,
		ExtendedPacking:   5,
		ExtendedAvoidance: 5,
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
		{"extendedpacking.weight", &a.ExtendedPacking, "prefers nodes where more of the requested extended resources is in use"},
		{"extendedavoidance.weight", &a.ExtendedAvoidance, "prefers nodes without extended resources, for pods that request none"},
		{"nodeaffinity.weight", &a.NodeAffinity, "prefers nodes by preferred node affinity (the built-in policy says 2)"},
		{"podaffinity.weight", &a.PodAffinity, "prefers nodes by preferred affinity between pods"},
		{"tainttoleration.weight", &a.TaintToleration, "prefers nodes without taints of effect `PreferNoSchedule`"},
		{"podtopologyspread.weight", &a.PodTopologySpread, "prefers an even spread, by constraints with `ScheduleAnyway`"},
		{"imagelocality.weight", &a.ImageLocality, "prefers nodes that have the images"},
		{"topologypacking.weight", &a.TopologyPacking, "prefers nodes in topology domains that are in use, for pods that require no domain"},
		{"nodeweight.weight", &a.NodeWeight, "prefers nodes whose label `" + v1alpha1.LabelNodeWeight + "` is lower; 100 there is the score 0"},
	}
}

// decode reads arguments over the defaults.
func decode(d *conf.Decoder) Arguments {
	var a Arguments
	a.SetDefaults()
	for _, w := range a.weights() {
		*w.value = d.Int(w.key, *w.value, 0, MaxWeight, w.about)
	}
	a.Topology = d.String("topologypacking.topology", "", "the Topology of topologypacking; may be left out if there is only one")
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
	scorers     []scorer // scorers with a positive weight
	counted     *counts
	packing     *packing     // nil if its weight is 0
	nodeWeights *nodeWeights // nil if its weight is 0
}

// scorer is one aspect of a node.
type scorer struct {
	weight int64
	// applies reports whether the scorer applies to tasks with the signature of the state.
	applies func(*scoreState) bool
	// score returns a value from 0 to api.OneScore.
	score func(*scoreState, *api.NodeInfo) api.Score
}

func newPlugin(a Arguments) *plugin {
	comparison := utilfeature.DefaultFeatureGate.Enabled(features.TaintTolerationComparisonOperators)
	p := &plugin{counted: &counts{comparison: comparison}}
	if a.TopologyPacking > 0 {
		p.packing = &packing{topology: a.Topology}
	}
	if a.NodeWeight > 0 {
		p.nodeWeights = &nodeWeights{}
	}
	for _, s := range []scorer{
		{a.LeastRequested, always, leastRequested},
		{a.MostRequested, always, mostRequested},
		{a.BalancedResource, requestsResources, balancedResource},
		{a.ExtendedPacking, requestsExtended, extendedPacking},
		{a.ExtendedAvoidance, avoidsExtended, extendedAvoidance},
		{a.NodeAffinity, prefersNodes, nodeAffinity},
		{a.TaintToleration, always, softTaints(comparison)},
		{a.PodAffinity, prefersPods, podAffinity},
		{a.PodTopologySpread, prefersSpread, topologySpread},
		{a.ImageLocality, always, imageLocality},
		{a.TopologyPacking, packsDomains, topologyPacking},
		{a.NodeWeight, always, nodeWeight},
	} {
		if s.weight > 0 {
			p.scorers = append(p.scorers, s)
		}
	}
	return p
}

func always(*scoreState) bool { return true }

func (p *plugin) Name() string { return Name }

func (p *plugin) OnSessionOpen(ssn *framework.Session) {
	p.counted.open(ssn.Cluster())
	q := &scoreState{scorers: p.scorers, cluster: ssn.Cluster(), counted: p.counted, packing: p.packing, nodeWeights: p.nodeWeights}
	ssn.AddNodeOrderFn(Name, q.score)
	if p.packing != nil {
		ssn.AddOpenedFn(Name, func() { p.packing.open(ssn) })
	}
	if p.nodeWeights != nil {
		p.nodeWeights.open(ssn)
	}
}

func (p *plugin) OnSessionClose(*framework.Session) { p.counted.close() }

// scoreState is the scoring state of one session. Callers usually score many nodes in a row for one signature, so
// what depends on the signature only is computed once.
type scoreState struct {
	scorers     []scorer
	cluster     api.ClusterView
	counted     *counts
	packing     *packing     // nil if its weight is 0
	nodeWeights *nodeWeights // nil if its weight is 0

	signature  *api.Signature
	pinned     bool     // whether tasks require a domain, if packing is set
	active     []scorer // scorers that apply to the signature
	dimensions []int    // dimensions that the resource scorers use, extended resources last
	extended   int      // index of the first extended resource in dimensions
	neighbours *neighbours
	free       []api.Score // of the current node; see computeFree
	freeOther  int         // number of entries of free that are not of extended resources
}

// score returns the sum of the weighted scores. It does not allocate for tasks without pod preferences.
func (q *scoreState) score(t *api.TaskInfo, n *api.NodeInfo) api.Score {
	if t.Signature != q.signature || q.packing != nil && requiresDomain(t) != q.pinned {
		q.pinned = q.packing != nil && requiresDomain(t)
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
	q.setDimensions()
	q.active = q.active[:0]
	for i := range q.scorers {
		if q.scorers[i].applies(q) {
			q.active = append(q.active, q.scorers[i])
		}
	}
	if prefersPods(q) || prefersSpread(q) {
		q.neighbours = q.counted.of(signature)
	}
}

// setDimensions lists cpu, memory and what else the signature requests of what queues share.
func (q *scoreState) setDimensions() {
	dims, request := q.cluster.Dims(), q.signature.Request
	q.dimensions = append(q.dimensions[:0], api.CPU, api.Memory)
	for _, extended := range [...]bool{false, true} {
		if extended {
			q.extended = len(q.dimensions)
		}
		for i := api.Pods + 1; i < len(request); i++ {
			if request[i] > 0 && dims.Shared(i) && dims.Extended(i) == extended {
				q.dimensions = append(q.dimensions, i)
			}
		}
	}
}
