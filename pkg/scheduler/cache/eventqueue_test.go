// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
)

// TestCompaction adds very many events about few objects and applies none of them, as in a scheduler
// that is not the leader.
func TestCompaction(t *testing.T) {
	const rounds = 3 * compactFrom
	churn := func(h handlers) {
		stays := []*v1.Pod{member("", "p"), bound(member("", "p"), "n1")}
		for i := range rounds / 3 {
			h.pods.OnUpdate(stays[i%2], stays[(i+1)%2])
			comes := member("", fmt.Sprintf("job-%d", i))
			h.pods.OnAdd(comes, false)
			h.pods.OnDelete(comes)
		}
	}
	tests := map[string]struct {
		given func(*Cache, handlers)
		// most is how many events may be queued in the end.
		most int
		want []string
	}{
		"no event of a deleted object is kept": {
			given: func(_ *Cache, h handlers) {
				h.nodes.OnAdd(node("n1"), true)
				h.pods.OnAdd(member("", "p"), true)
				churn(h)
			},
			most: compactFrom,
			want: []string{"pod-p Pending in shadow/default/pod-p/default of default, priority 0", "n1 idle 8000"},
		},
		"deletions are kept if the model may know the object": {
			given: func(c *Cache, h handlers) {
				h.nodes.OnAdd(node("n1"), true)
				h.nodes.OnAdd(node("n2"), true)
				h.pods.OnAdd(member("", "p"), true)
				h.pods.OnAdd(bound(member("", "q"), "n1"), true)
				c.Apply()
				h.pods.OnDelete(bound(member("", "q"), "n1"))
				h.nodes.OnDelete(node("n2"))
				churn(h)
			},
			most: rounds, // the model may know each deleted object
			want: []string{"pod-p Pending in shadow/default/pod-p/default of default, priority 0", "n1 idle 8000"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c, h := newCache(t)
			test.given(c, h)
			if n := len(c.queue.list); n > test.most {
				t.Errorf("%d events are queued, want at most %d", n, test.most)
			}
			c.Apply()
			if diff := cmp.Diff(test.want, state(c.Model())); diff != "" {
				t.Errorf("model (-want +got):\n%s", diff)
			}
		})
	}
}
