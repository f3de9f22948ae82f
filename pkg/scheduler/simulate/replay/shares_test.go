// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/replay"
)

// demand is a queue that always requests more than it gets, or a limited amount all the time.
type demand struct {
	weight          int64
	pods            int // of one CPU, all the time
	guarantee, caps int // CPUs; 0: none
	want            float64
}

// TestShares is Q5: over time, queues with endless demand hold what the weights, guarantees and caps give them, within one
// gang. Every 100 seconds, jobs arrive that request the amounts for 100 seconds.
func TestShares(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		cpus   int
		queues []demand
	}{
		"one queue requests less than its part": {100, []demand{{weight: 1, pods: 20, want: 20}, {weight: 1, pods: 50, want: 40}, {weight: 1, pods: 80, want: 40}}},
		"weights":                               {100, []demand{{weight: 3, pods: 90, want: 67.5}, {weight: 1, pods: 10, want: 10}, {weight: 1, pods: 40, want: 22.5}}},
		"a guarantee":                           {100, []demand{{weight: 60, pods: 20, guarantee: 15, want: 20}, {weight: 50, pods: 100, want: 30.769}, {weight: 80, pods: 100, want: 49.231}}},
		"caps":                                  {100, []demand{{weight: 1, pods: 100, caps: 10, want: 10}, {weight: 1, pods: 100, want: 30}, {weight: 2, pods: 100, caps: 60, want: 60}}},
		"guarantees, and one of more than it requests": {64, []demand{{weight: 1, pods: 40, guarantee: 8, want: 26}, {weight: 1, pods: 40, guarantee: 16, want: 34}, {weight: 1, pods: 4, guarantee: 8, want: 4}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const rounds, length = 30, 100
			var given strings.Builder
			for round := range rounds {
				for i, q := range tc.queues {
					for k := range q.pods {
						fmt.Fprintf(&given, `{"t": %d, "submit": {"name": "%d-%d-%d", "queue": "q%d", "request": {"cpu": "1"}, "duration": %d}}`+"\n", round*length, round, i, k, i, length)
					}
				}
			}
			in := inputOf(t, read(t, given.String()), fmt.Sprintf("count=1,cpu=%d,pods=1000", tc.cpus), noReservation)
			for i, q := range tc.queues {
				queue := &v1alpha1.Queue{
					ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("q%d", i), UID: types.UID(fmt.Sprintf("q%d", i))}, Spec: v1alpha1.QueueSpec{Weight: int32(q.weight)},
				}
				cpus := func(n int) v1.ResourceList {
					if n == 0 {
						return nil
					}
					return v1.ResourceList{v1.ResourceCPU: *resource.NewQuantity(int64(n), resource.DecimalSI)}
				}
				queue.Spec.Guarantee, queue.Spec.Capability = cpus(q.guarantee), cpus(q.caps)
				in.Queues = append(in.Queues, queue)
			}
			o := recorded()
			o.Until = rounds * length * time.Second
			r, err := replay.Run(t.Context(), in, o)
			if err != nil {
				t.Fatal(err)
			}
			for i, q := range tc.queues {
				at := slices.IndexFunc(r.Summary.Queues, func(s replay.QueueSummary) bool { return s.Name == fmt.Sprintf("q%d", i) })
				got := r.Summary.Queues[at].HeldHours / o.Until.Hours()
				if math.Abs(got-q.want) > 1 {
					t.Errorf("queue %d holds %.3f CPUs over time, want %v", i, got, q.want)
				}
				t.Logf("queue %d holds %.3f CPUs over time, want %v", i, got, q.want)
			}
		})
	}
}

// TestOwed compares the measures of fairness with those of a calculation by hand: a job of another queue holds both CPUs for
// 100 seconds, while q0 deserves one of them and waits.
func TestOwed(t *testing.T) {
	t.Parallel()
	const given = `{"t": 0, "submit": {"name": "a", "queue": "q1", "min": 2, "request": {"cpu": "1"}, "duration": 3600}}
{"t": 900, "submit": {"name": "b", "queue": "q0", "min": 2, "request": {"cpu": "1"}, "duration": 900}}
`
	r, err := replay.Run(t.Context(), inputOf(t, read(t, given), "2", ""), recorded())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][3]float64{}
	for _, q := range r.Summary.Queues {
		got[q.Name] = [3]float64{q.HeldHours, q.DeservedHours, q.OwedHours}
	}
	// q1 deserves 2 CPUs for 900 s and then 1 for 2700 s; q0 deserves 1 for 2700 s and then 2 for 900 s.
	for name, want := range map[string][3]float64{"q0": {.5, 1.25, .75}, "q1": {2, 1.25, 0}} {
		if got[name] != want {
			t.Errorf("queue %s has held, deserved and owed hours %v, want %v", name, got[name], want)
		}
	}
	x, y := .5/1.25, 2/1.25
	if want := (x + y) * (x + y) / 2 / (x*x + y*y); math.Abs(r.Summary.Jain-want) > 1e-6 {
		t.Errorf("the index of Jain is %v, want %v", r.Summary.Jain, want)
	}
}
