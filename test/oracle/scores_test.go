// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"context"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	schedulerframework "k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeaffinity"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/tainttoleration"
	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/plugins/nodeorder"
)

// scorer is a scorer that both schedulers have.
type scorer struct {
	make func(context.Context, runtime.Object, fwk.Handle, feature.Features) (fwk.Plugin, error)
	args runtime.Object
	// blur is the tolerance for equal scores: each is a mean of whole percents.
	blur int64
	// less reports that a smaller score is better before normalization.
	less bool
}

func allocated(strategy config.ScoringStrategyType) runtime.Object {
	return &config.NodeResourcesFitArgs{ScoringStrategy: &config.ScoringStrategy{
		Type: strategy, Resources: []config.ResourceSpec{{Name: string(v1.ResourceCPU), Weight: 1}, {Name: string(v1.ResourceMemory), Weight: 1}},
	}}
}

var scorers = map[string]scorer{
	"leastrequested":  {make: noderesources.NewFit, args: allocated(config.LeastAllocated), blur: 1},
	"mostrequested":   {make: noderesources.NewFit, args: allocated(config.MostAllocated), blur: 1},
	"tainttoleration": {make: tainttoleration.New, less: true},
	"nodeaffinity":    {make: nodeaffinity.New, args: &config.NodeAffinityArgs{}},
}

// TestScoresOrderLikeKubeScheduler checks that of two feasible nodes, the one that kube-scheduler prefers has
// the higher score. Scorers that differ on purpose are excluded: kube-scheduler's balance scores what the pod
// changes, its image locality counts other nodes, and its pod affinity includes the preferences of existing pods.
func TestScoresOrderLikeKubeScheduler(t *testing.T) {
	peer := newPeer(t)
	for name, s := range scorers {
		t.Run(name, func(t *testing.T) {
			features := feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
			features.EnableDRAExtendedResource = false // needs a claim manager
			made, err := s.make(t.Context(), s.args, peer.framework, features)
			if err != nil {
				t.Fatal(err)
			}
			differ := 0
			rapid.Check(t, func(t *rapid.T) {
				w := drawFixture(t)
				for _, pod := range append(w.running, w.waiting...) {
					plainRequests(pod)
				}
				for _, pod := range w.waiting {
					drawPreferences(t, pod)
				}
				peer.show(t, w, w.podsOnNodes(api.Now))
				m := newScoringModel(t, w, name)
				defer m.ssn.Close()
				for _, pod := range w.waiting {
					differ += compareScores(t, m, pod, s, theirScores(t, peer, made, pod))
				}
			})
			if !t.Failed() && differ == 0 {
				t.Error("no two nodes differ: the generator does not cover it")
			}
		})
	}
}

// plainRequests sets cpu and memory requests of all containers, for which kube-scheduler has defaults otherwise, and
// removes extended resources, which count only in this scheduler.
func plainRequests(pod *v1.Pod) {
	for _, containers := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			asked := containers[i].Resources.Requests
			delete(asked, gpu)
			delete(asked, huge)
			for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
				if quantity := asked[name]; quantity.IsZero() {
					asked[name] = resource.MustParse("1")
				}
			}
		}
	}
}

// drawPreferences draws preferred node affinity for a pod.
func drawPreferences(t *rapid.T, pod *v1.Pod) {
	if pod.Spec.Affinity == nil {
		pod.Spec.Affinity = &v1.Affinity{}
	}
	if pod.Spec.Affinity.NodeAffinity == nil {
		pod.Spec.Affinity.NodeAffinity = &v1.NodeAffinity{}
	}
	for range one(t, "preferences", 0, 1, 2) {
		preferred := &pod.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution
		*preferred = append(*preferred, v1.PreferredSchedulingTerm{Weight: one[int32](t, "weight", 1, 10, 100), Preference: drawNodeTerm(t)})
	}
}

func newScoringModel(t *rapid.T, w *fixture, scorer string) *openSession {
	arguments := conf.Arguments{}
	for _, other := range []string{
		"leastrequested", "mostrequested", "balancedresource", "nodeaffinity", "podaffinity", "tainttoleration", "podtopologyspread", "imagelocality", "extendedpacking", "extendedavoidance",
	} {
		arguments[other+".weight"] = "0"
	}
	arguments[scorer+".weight"] = "1"
	registry := framework.NewRegistry()
	if err := registry.AddPlugin(nodeorder.Name, nodeorder.Spec()); err != nil {
		t.Fatal(err)
	}
	return newModelOf(t, w, registry, conf.Plugin{Name: nodeorder.Name, Arguments: arguments}, framework.Handle{})
}

// theirScores returns kube-scheduler's scores by node before normalization; empty if the plugin does not apply.
func theirScores(t *rapid.T, p *peer, plugin fwk.Plugin, pod *v1.Pod) map[string]int64 {
	ctx, state := context.Background(), schedulerframework.NewCycleState()
	nodes, err := p.snapshot.NodeInfos().List()
	if err != nil {
		t.Fatal(err)
	}
	if status := plugin.(fwk.PreScorePlugin).PreScore(ctx, state, pod, nodes); status.IsSkip() {
		return nil
	} else if !status.IsSuccess() {
		t.Fatal(status.AsError())
	}
	scores := map[string]int64{}
	for _, n := range nodes {
		score, status := plugin.(fwk.ScorePlugin).Score(ctx, state, pod, n)
		if !status.IsSuccess() {
			t.Fatal(status.AsError())
		}
		scores[n.Node().Name] = score
	}
	return scores
}

// compareScores returns the number of pairs of nodes with different scores in kube-scheduler.
func compareScores(t *rapid.T, m *openSession, pod *v1.Pod, s scorer, theirs map[string]int64) (differ int) {
	task := m.cluster.Tasks()[api.TaskID(pod.UID)]
	roomy := func(name string) *api.NodeInfo {
		if n := m.cluster.Node(name); n.Fits(task, api.Now) {
			return n
		}
		return nil
	}
	for a, first := range theirs {
		for b, second := range theirs {
			n, o, ahead := roomy(a), roomy(b), first-second
			if s.less {
				ahead = -ahead
			}
			if n == nil || o == nil || ahead <= s.blur {
				continue
			}
			differ++
			if ours, other := m.ssn.NodeScore(task, n), m.ssn.NodeScore(task, o); ours <= other {
				t.Fatalf("kube-scheduler prefers %s (%d) to %s (%d), this scheduler scores %d and %d for\n%s", a, theirs[a], b, theirs[b], ours, other, asYAML(pod))
			}
		}
	}
	return differ
}
