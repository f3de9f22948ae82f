package upstream

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	schedulerframework "k8s.io/kubernetes/pkg/scheduler/framework"
)

// Whoever asks gets all that came after, or is told that not all of it is known.
func TestChangesAreCompleteOrUnknown(t *testing.T) {
	shown := func(node *v1.Node) *nodeInfos {
		info := schedulerframework.NewNodeInfo()
		info.SetNode(node)
		return &nodeInfos{now: info, future: info}
	}
	one, other := &v1.Node{}, &v1.Node{}
	for name, tc := range map[string]struct {
		add   func(*changes)
		want  int
		known bool
	}{
		"nothing":               {func(*changes) {}, 0, true},
		"one change":            {func(c *changes) { c.add(shown(one), shown(one)) }, 1, true},
		"forgotten":             {func(c *changes) { c.forget() }, 0, false},
		"a node came":           {func(c *changes) { c.add(nil, shown(one)) }, 0, false},
		"a node went":           {func(c *changes) { c.add(shown(one), nil) }, 0, false},
		"a node object changed": {func(c *changes) { c.add(shown(one), shown(other)) }, 0, false},
		"as many as are kept": {func(c *changes) {
			for range changesLimit - 1 {
				c.add(shown(one), shown(one))
			}
		}, changesLimit - 1, true},
		"more than are kept": {func(c *changes) {
			for range changesLimit {
				c.add(shown(one), shown(one))
			}
		}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := &changes{}
			c.add(shown(one), shown(one))
			before := c.count()
			tc.add(c)
			list, known := c.since(before)
			if len(list) != tc.want || known != tc.known {
				t.Errorf("got %d changes, known: %v; want %d, %v", len(list), known, tc.want, tc.known)
			}
			if list, known := c.since(c.count()); len(list) != 0 || !known {
				t.Errorf("who is up to date is told of %d changes, known: %v", len(list), known)
			}
		})
	}
}
