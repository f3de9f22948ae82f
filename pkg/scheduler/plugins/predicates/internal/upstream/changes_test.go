// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	schedulerframework "k8s.io/kubernetes/pkg/scheduler/framework"
)

// since returns all later changes, or reports that some of them are no longer recorded.
func TestChangesSince(t *testing.T) {
	infos := func(node *v1.Node) *nodeInfos {
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
		"one change":            {func(c *changes) { c.add(infos(one), infos(one)) }, 1, true},
		"invalidated":           {func(c *changes) { c.forget() }, 0, false},
		"a node was added":      {func(c *changes) { c.add(nil, infos(one)) }, 0, false},
		"a node was deleted":    {func(c *changes) { c.add(infos(one), nil) }, 0, false},
		"a node object changed": {func(c *changes) { c.add(infos(one), infos(other)) }, 0, false},
		"as many as are recorded": {func(c *changes) {
			for range changesLimit - 1 {
				c.add(infos(one), infos(one))
			}
		}, changesLimit - 1, true},
		"more than are recorded": {func(c *changes) {
			for range changesLimit {
				c.add(infos(one), infos(one))
			}
		}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := &changes{}
			c.add(infos(one), infos(one))
			before := c.count()
			tc.add(c)
			list, known := c.since(before)
			if len(list) != tc.want || known != tc.known {
				t.Errorf("got %d changes, known: %v; want %d, %v", len(list), known, tc.want, tc.known)
			}
			if list, known := c.since(c.count()); len(list) != 0 || !known {
				t.Errorf("since(count()) returns %d changes, known: %v", len(list), known)
			}
		})
	}
}
