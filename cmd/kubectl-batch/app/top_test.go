// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// TestTopScreen draws after each change, as top queues --watch does.
func TestTopScreen(t *testing.T) {
	t.Parallel()
	queue := func(name string, weight int32) *v1alpha1.Queue {
		return &v1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.QueueSpec{Weight: weight}}
	}
	const head = "QUEUE  WEIGHT  RESOURCE  GUAR  DESERVED  ALLOC  CAP  SHARE\n"
	const b2, b3 = "b           2  -            -         -      -    -      -\n", "b           3  -            -         -      -    -      -\n"
	const a1 = "a           1  -            -         -      -    -      -\n"
	for name, test := range map[string]struct {
		terminal bool
		changes  []watch.Event
		want     string
	}{
		"a change":             {changes: []watch.Event{{Type: watch.Modified, Object: queue("b", 3)}}, want: head + b2 + "\n" + head + b3},
		"one more":             {changes: []watch.Event{{Type: watch.Added, Object: queue("a", 1)}}, want: head + b2 + "\n" + head + a1 + b2},
		"one less":             {changes: []watch.Event{{Type: watch.Added, Object: queue("a", 1)}, {Type: watch.Deleted, Object: queue("b", 2)}}, want: head + b2 + "\n" + head + a1 + b2 + "\n" + head + a1},
		"nothing that differs": {changes: []watch.Event{{Type: watch.Modified, Object: queue("b", 2)}}, want: head + b2},
		"on a terminal":        {terminal: true, changes: []watch.Event{{Type: watch.Modified, Object: queue("b", 3)}}, want: head + b2 + "\x1b[H\x1b[2J" + head + b3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			s := newTopScreen(&out, []v1alpha1.Queue{*queue("b", 2)})
			s.terminal = test.terminal
			s.draw()
			for _, change := range test.changes {
				s.apply(change)
				s.draw()
			}
			if diff := cmp.Diff(test.want, out.String()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
