// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

func TestSortObjects(t *testing.T) {
	t.Parallel()
	queue := func(name string, weight int32, cpu string, minutes int) v1alpha1.Queue {
		q := v1alpha1.Queue{
			ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(anHourAgo().Add(-time.Duration(minutes) * time.Minute))},
			Spec:       v1alpha1.QueueSpec{Weight: weight},
		}
		if cpu != "" {
			q.Spec.Capability = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
		}
		return q
	}
	for name, test := range map[string]struct{ field, want string }{
		"a number":           {".spec.weight", "b d a c"},
		"without a dot":      {"spec.weight", "b d a c"},
		"with braces":        {"{.spec.weight}", "b d a c"},
		"a text":             {".metadata.name", "a b c d"},
		"a time":             {".metadata.creationTimestamp", "d b c a"},
		"a quantity, if any": {".spec.capability.cpu", "b c a d"}, // none, 900m, 2, 10
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			queues := []v1alpha1.Queue{queue("b", 2, "", 30), queue("a", 10, "2", 0), queue("d", 2, "10", 40), queue("c", 100, "900m", 20)}
			if err := sortObjects(queues, test.field); err != nil {
				t.Fatal(err)
			}
			var got []string
			for i := range queues {
				got = append(got, queues[i].Name)
			}
			if got := strings.Join(got, " "); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// TestColumnsOfChanges prints the titles of custom columns once: with --watch each change is one more row.
func TestColumnsOfChanges(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	show, err := lister[v1alpha1.Queue, *v1alpha1.Queue]{kind: "Queue"}.columns(&out, "custom-columns=KIND:.kind,NAME:.metadata.name")
	if err != nil {
		t.Fatal(err)
	}
	named := func(name string) v1alpha1.Queue { return v1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	for _, list := range [][]v1alpha1.Queue{{named("a"), named("b")}, {named("b")}} {
		if err = show(list); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff("KIND    NAME\nQueue   a\nQueue   b\nQueue   b\n", out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
