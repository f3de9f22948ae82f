// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package evict

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
)

// marks records the PodGroups that are marked, each of which takes 50 ms, and how many evictions were sent by then.
type marks struct {
	noStatus
	p     *parallel
	err   error
	lines []string
}

func (m *marks) MarkDisruption(_ context.Context, g v1.ObjectReference, message string) error {
	time.Sleep(50 * time.Millisecond)
	m.p.apiServer.mu.Lock()
	defer m.p.apiServer.mu.Unlock()
	sent := 0
	for _, r := range m.p.apiServer.log {
		if r.kind == evictPod {
			sent++
		}
	}
	m.lines = append(m.lines, fmt.Sprintf("%s after %d evictions: %s", g.Name, sent, message))
	return m.err
}

// TestMarkDisruption: a gang whose API has a condition for it is marked once before its first eviction, and not if it is
// not evicted or continues to run.
func TestMarkDisruption(t *testing.T) {
	const gang = "the gang (2 pods) is being evicted by preempt for ns/g (queue , priority 0)"
	for name, test := range map[string]struct {
		given     func(*parallel, *Plan)
		failed    error
		victims   []string
		want      []string
		evictions string
	}{
		"a gang": {
			victims: []string{"a-0", "a-1"}, want: []string{"a after 0 evictions: " + gang},
			evictions: "50: a-0\n150: a-1",
		},
		"a gang with pods under two budgets": {
			victims: []string{"a-0:x", "a-1:y"}, want: []string{"a after 0 evictions: " + gang},
			evictions: "50: a-0 a-1",
		},
		"the write fails": {
			victims: []string{"a-0", "a-1"}, failed: errors.New("no"), want: []string{"a after 0 evictions: " + gang},
			evictions: "50: a-0\n150: a-1",
		},
		"surplus": {
			given:   func(_ *parallel, plan *Plan) { plan.Jobs["a"].Missing = 0 },
			victims: []string{"a-0", "a-1"}, evictions: "0: a-0\n100: a-1",
		},
		"the API has no condition": {
			given:   func(_ *parallel, plan *Plan) { plan.Jobs["a"].Announced = false },
			victims: []string{"a-0", "a-1"}, evictions: "0: a-0\n100: a-1",
		},
		"the preemptor does not wait any more": {
			given:   func(p *parallel, _ *Plan) { p.gone["g"] = true },
			victims: []string{"a-0", "a-1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newParallel(4)
				p.latency = quick
				recorded := &marks{p: p, err: test.failed}
				p.Status = recorded
				plan := p.planOf("g", test.victims...)
				plan.Jobs["a"].Announced = true
				if test.given != nil {
					test.given(p, plan)
				}
				p.run(t, time.Minute, plan)
				if diff := cmp.Diff(test.want, recorded.lines); diff != "" {
					t.Errorf("marks (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(test.evictions, p.evictionsSent()); diff != "" {
					t.Errorf("evictions (-want +got):\n%s", diff)
				}
			})
		})
	}
}
