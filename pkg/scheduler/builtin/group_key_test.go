// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"strings"
	"testing"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// TestGroupKeys runs pods of two controllers, which are one gang by their group key.
func TestGroupKeys(t *testing.T) {
	key, size := Annotation(v1alpha1.AnnotationGroupKey, "k"), func(n string) PodOption { return Annotation(v1alpha1.AnnotationMinMember, n) }
	for name, tc := range map[string]struct {
		rows []Row
		want string // the cycle
		wait string // part of why pods wait
	}{
		"all fit": {
			Given(Node("n", "3cpu"), ReplicaSet("a", Pending(1, "1cpu", key, size("3"))), ReplicaSet("b", Pending(2, "1cpu", key, size("3")))),
			"bind a-0 n\nbind b-0 n\nbind b-1 n", "",
		},
		"some fit": {
			Given(Node("n", "2cpu"), ReplicaSet("a", Pending(1, "1cpu", key, size("3"))), ReplicaSet("b", Pending(2, "1cpu", key, size("3")))),
			"", "waits k ExceedsClusterCapacity: needs 3 more pods",
		},
		"surplus starts alone": {
			Given(Node("n", "2cpu"), ReplicaSet("a", Pending(1, "1cpu", key, size("2"))), ReplicaSet("b", Pending(2, "1cpu", key, size("2")))),
			"bind a-0 n\nbind b-0 n", "",
		},
		"other keys, queues and namespaces are other gangs": {
			Given(Node("n", "9cpu"), Queue("q", 1), ReplicaSet("a", Pending(1, "1cpu", key, size("2"))),
				ReplicaSet("b", OfQueue("q"), Pending(1, "1cpu", key, size("2"))), ReplicaSet("c", In("other"), Pending(1, "1cpu", key, size("2"))),
				ReplicaSet("d", Pending(1, "1cpu", Annotation(v1alpha1.AnnotationGroupKey, "l"), size("2")))),
			"", "NotEnoughPods",
		},
		"pods that have ended do not count for the size": {
			Given(Node("n", "2cpu"), ReplicaSet("a", Succeeded(1, "1cpu", "n", key, size("5"))), ReplicaSet("b", Pending(2, "1cpu", key, size("3")))),
			"bind b-0 n\nbind b-1 n", "",
		},
		"different sizes": {
			Given(Node("n", "9cpu"), ReplicaSet("a", Pending(1, "1cpu", key, size("1"))), ReplicaSet("b", Pending(2, "1cpu", key, size("2")))),
			"", "name different sizes in scheduling.batch-scheduler.dev/min-member: 1 and 2",
		},
		"no size": {
			Given(Node("n", "9cpu"), ReplicaSet("a", Pending(2, "1cpu", key)), ReplicaSet("b", Pending(2, "1cpu", key, size("2")))),
			"", "pod ns/a-0 has the annotation scheduling.batch-scheduler.dev/group-key, so it needs a positive number in scheduling.batch-scheduler.dev/min-member",
		},
		"a size that is no number": {
			Given(Node("n", "9cpu"), ReplicaSet("a", Pending(1, "1cpu", key, size("one")))), "", "pod ns/a-0 has the annotation",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := New(t, BuiltIn(t), append(Given(Queue("default", 1)), tc.rows...))
			got := c.Cycle()
			if tc.want == "" && strings.Contains(got, "bind") || !strings.HasPrefix(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if waits := c.Waits(); !strings.Contains(waits, tc.wait) {
				t.Errorf("got %q, want %q", waits, tc.wait)
			}
		})
	}
}
