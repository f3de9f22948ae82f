// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package schedtest

import (
	"strings"
	"testing"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

// reader is a plugin with a score and a predicate.
type reader struct {
	score     framework.ScoreFn
	predicate framework.PredicateFn
}

func (reader) Name() string { return "reader" }

func (r reader) OnSessionOpen(ssn *framework.Session) {
	if r.score != nil {
		ssn.AddNodeOrderFn("reader", r.score)
	}
	if r.predicate != nil {
		ssn.AddPredicateFn("reader", r.predicate)
	}
}

func (reader) OnSessionClose(*framework.Session) {}

// TestAnswersOfEquivalenceClasses asserts that a plugin that reads more of a pod than its signature fails each scenario in
// which that matters.
func TestAnswersOfEquivalenceClasses(t *testing.T) {
	fast := func(task *api.TaskInfo) bool { return task.Pod.Annotations["speed"] == "high" }
	byAnnotation := reader{score: func(task *api.TaskInfo, _ *api.NodeInfo) api.Score {
		if fast(task) {
			return api.OneScore
		}
		return 0
	}}
	unlessAnnotated := reader{predicate: func(task *api.TaskInfo, _ *api.NodeInfo, _ api.When) *api.Unfit {
		if fast(task) {
			return &api.Unfit{Reason: api.OtherUnfit, Detail: "fast"}
		}
		return nil
	}}
	byPort := reader{score: func(task *api.TaskInfo, _ *api.NodeInfo) api.Score {
		return api.Score(len(task.Signature.Ports)) * api.OneScore
	}}
	const differ = "plugins answer differently"
	for name, tc := range map[string]struct {
		plugin reader
		given  []Row
		want   string
	}{
		"a score by an annotation": {
			plugin: byAnnotation, given: Given(Group("q/a", 2, Pending(1, "1cpu"), Pending(1, "1cpu", Annotation("speed", "high")))),
			want: differ,
		},
		"a score by an annotation, pods of two jobs": {
			plugin: byAnnotation, want: differ,
			given: Given(Group("q/a", 1, Pending(1, "1cpu")), Group("q/b", 1, Pending(1, "1cpu", Annotation("speed", "high")))),
		},
		"a score by an annotation that pods have in common": {
			plugin: byAnnotation, given: Given(Group("q/a", 2, Pending(2, "1cpu", Annotation("speed", "high")))),
		},
		"a predicate by an annotation": {
			plugin: unlessAnnotated, given: Given(Group("q/a", 2, Pending(1, "1cpu"), Pending(1, "1cpu", Annotation("speed", "high")))),
			want: differ,
		},
		"a score by a field of the signature": {
			plugin: byPort, given: Given(Group("q/a", 2, Pending(1, "1cpu"), Pending(1, "1cpu", HostPort(80)))),
		},
	} {
		t.Run(name, func(t *testing.T) {
			registry := registryOf(t, func(*framework.Session) {})
			err := registry.AddPlugin("reader", framework.PluginSpec{New: func(*conf.Decoder, framework.Handle) (framework.Plugin, error) {
				return tc.plugin, nil
			}})
			if err != nil {
				t.Fatal(err)
			}
			got := failure(func(t T) {
				Run(t, registry, append(Given(Node("n1", "4cpu"), Queue("q", 1)), tc.given...),
					WithConfig("actions: act\ntiers: [{plugins: [{name: reader}]}]\n"))
			})
			if !strings.Contains(got, tc.want) || tc.want == "" && got != "" {
				t.Errorf("the runner reports %q, want %q", got, tc.want)
			}
		})
	}
}
