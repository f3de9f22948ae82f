// Package nodeorder is the plugin that says how good a node is for a task.
//
// It is a sum of scorers, each with a weight. A scorer answers between zero and api.OneScore from
// the task and the node alone, never relative to the nodes that happen to be feasible; only what
// is about other pods (podaffinity, podtopologyspread) reads more than the node. What counts is
// what pods ask for: kube-scheduler's stand-in requests for pods that ask for nothing are not
// used, so such a pod takes no room here.
//
// A scorer that has nothing to say about a task (no preference, no constraint) is not asked for
// any node, and one of weight zero never is.
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

// Arguments are the weights of the scorers, from 0 (never asked) to MaxWeight.
type Arguments struct {
	// LeastRequested prefers nodes with the largest share of free room, MostRequested those with
	// the smallest, BalancedResource those whose resources are used in equal shares.
	LeastRequested, MostRequested, BalancedResource int64
	// NodeAffinity and PodAffinity are about preferred terms of the pod.
	NodeAffinity, PodAffinity int64
	// TaintToleration avoids taints of effect PreferNoSchedule that the pod does not tolerate.
	TaintToleration int64
	// PodTopologySpread is about constraints that say ScheduleAnyway.
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

// weight is one argument with its name in files, and what a node is good for by it.
type weight struct {
	key   string
	value *int64
	about string
}

func (a *Arguments) weights() []weight {
	return []weight{
		{"leastrequested.weight", &a.LeastRequested, "prefers nodes with more room"},
		{"mostrequested.weight", &a.MostRequested, "prefers nodes with less room"},
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

// plugin lives as long as the configuration.
type plugin struct {
	scorers []scorer // those with a weight
	counted *counts
}

// scorer is one aspect of a node.
type scorer struct {
	weight int64
	// applies tells whether the scorer has an opinion about tasks of a shape.
	applies func(*api.Signature) bool
	// score answers between 0 and api.OneScore.
	score func(*question, *api.NodeInfo) api.Score
}

func newPlugin(a Arguments) *plugin {
	comparison := utilfeature.DefaultFeatureGate.Enabled(features.TaintTolerationComparisonOperators)
	p := &plugin{counted: &counts{comparison: comparison}}
	for _, s := range []scorer{
		{a.LeastRequested, always, leastRequested},
		{a.MostRequested, always, mostRequested},
		{a.BalancedResource, asksForSomething, balancedResource},
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
	q := &question{scorers: p.scorers, cluster: ssn.Cluster(), counted: p.counted}
	ssn.AddNodeOrderFn(Name, q.score)
}

func (p *plugin) OnSessionClose(*framework.Session) { p.counted.close() }

// question is what a session asks: how good nodes are for tasks of a shape. One shape is usually
// asked about for many nodes in a row, so what depends on it alone is found once.
type question struct {
	scorers []scorer
	cluster api.ClusterView
	counted *counts

	shape      *api.Signature
	asked      []scorer // those that apply
	dimensions []int    // that the resource scorers look at
	neighbours *neighbours
	free       []api.Score // of the node that is asked about; see weigh
}

// score sums the weighted scores. It allocates nothing for plain tasks.
func (q *question) score(t *api.TaskInfo, n *api.NodeInfo) api.Score {
	if t.Signature != q.shape {
		q.turnTo(t.Signature)
	}
	q.weigh(n)
	var sum api.Score
	for i := range q.asked {
		sum += api.Score(q.asked[i].weight) * q.asked[i].score(q, n)
	}
	return sum
}

func (q *question) turnTo(signature *api.Signature) {
	q.shape, q.neighbours = signature, nil
	q.asked = q.asked[:0]
	for i := range q.scorers {
		if q.scorers[i].applies(signature) {
			q.asked = append(q.asked, q.scorers[i])
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
