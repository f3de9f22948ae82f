// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/replay"
)

// gpuJob is a line that submits a job of pods with GPUs; without a limit if declares is false.
func gpuJob(at int, name string, pods, gpus, minutes int, declares bool, more string) string {
	limit := ""
	if declares {
		limit = fmt.Sprintf(`, "limit": %d`, minutes*60)
	}
	return fmt.Sprintf(`{"t": %d, "submit": {"name": %q, "min": %d, "request": {"nvidia.com/gpu": "%d"}, "duration": %d%s%s}}`+"\n",
		at, name, pods, gpus, minutes*60, limit, more)
}

// onEachNode is a job of one pod for each of eight nodes.
func onEachNode(name string, gpus, minutes int, declares bool) string {
	var lines strings.Builder
	for i := range 8 {
		lines.WriteString(gpuJob(0, fmt.Sprintf("%s-%d", name, i), 1, gpus, minutes, declares,
			fmt.Sprintf(`, "selector": {"kubernetes.io/hostname": ["node-%05d"]}`, i)))
	}
	return lines.String()
}

// startsByName counts the starts of the jobs whose names begin like this, by minute.
func startsByName(r *replay.Result, begin string) map[int]int {
	counts := map[int]int{}
	for _, j := range r.Jobs {
		if strings.HasPrefix(j.ID, begin) && j.Runs > 0 {
			counts[int(j.Start/time.Minute)]++
		}
	}
	return counts
}

// TestBackfillOnSharedNodes are TI3, TI4 and TI19: nodes with 8 GPUs are shared by several jobs, and a gang waits for all of
// them.
func TestBackfillOnSharedNodes(t *testing.T) {
	t.Parallel()
	var short, long, two strings.Builder
	for i := range 20 {
		short.WriteString(gpuJob(2, fmt.Sprintf("short-%02d", i), 1, 2, 30, true, ""))
		long.WriteString(gpuJob(3, fmt.Sprintf("long-%02d", i), 1, 2, 90, true, ""))
	}
	for i := range 16 {
		two.WriteString(gpuJob(2, fmt.Sprintf("two-%02d", i), 1, 2, 240, true, ""))
	}
	const until = 59 * time.Minute
	for name, tc := range map[string]struct {
		given string
		until time.Duration
		want  map[string]string // counts of starts by minute
	}{
		"TI3: jobs that end before the gang starts use its GPUs": {
			onEachNode("old", 4, 60, true) + gpuJob(1, "gang", 8, 8, 60, true, "") + short.String() + long.String(),
			0,
			map[string]string{"gang": "map[60:1]", "short": "map[0:16 120:4]", "long": "map[120:20]"},
		},
		"TI4: the ends of running pods are not known, so no job uses what is reserved": {
			onEachNode("old", 4, 60, false) + gpuJob(1, "gang", 8, 8, 60, true, "") + short.String() + long.String(),
			until,
			map[string]string{"gang": "map[]", "short": "map[]", "long": "map[]"},
		},
		"TI19: other jobs use what the gang does not need of a node": {
			onEachNode("old", 6, 60, true) + gpuJob(1, "gang", 8, 4, 60, true, "") + two.String(),
			until,
			map[string]string{"gang": "map[]", "two": "map[0:8]"},
		},
		"TI19: the gang starts in time": {
			onEachNode("old", 6, 60, true) + gpuJob(1, "gang", 8, 4, 60, true, "") + two.String(),
			0,
			map[string]string{"gang": "map[60:1]", "two": "map[0:8 60:8]"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options()
			o.Until = tc.until
			policy := "reservations: {depth: 1}\n"
			r, err := replay.Run(t.Context(), inputOf(t, read(t, tc.given), "count=8,cpu=100,nvidia.com/gpu=8", policy), o)
			if err != nil {
				t.Fatal(err)
			}
			for begin, want := range tc.want {
				if got := fmt.Sprint(startsByName(r, begin)); got != want {
					t.Errorf("%s starts by minute: got %s, want %s", begin, got, want)
				}
			}
		})
	}
}

// TestReservationsKeepShares is TI16: two queues with weights 3 and 1 always have more jobs than fit, all with limits, and the
// small queue has gangs that hardly ever fit at once. Over the run, both hold what they hold without planned starts, within 2 %
// of the cluster, and more of these gangs start.
func TestReservationsKeepShares(t *testing.T) {
	t.Parallel()
	const cpus, length = 64, 2 * time.Hour
	var given strings.Builder
	random := rand.New(rand.NewPCG(1, 2))
	for _, q := range []string{"large", "small"} {
		for i := range 400 {
			seconds := 60 + random.IntN(1140)
			name, pods := q, 1+random.IntN(4)
			if q == "small" && i%10 == 0 {
				name, pods = "small-gang", 6
			}
			fmt.Fprintf(&given, `{"t": %d, "submit": {"name": "%s-%d", "queue": "%s", "min": %d, "request": {"cpu": "1"}, "duration": %d, "limit": %d}}`+"\n",
				0, name, i, q, pods, seconds, seconds+random.IntN(300))
		}
	}
	replayed := func(policy string) (shares map[string]float64, gangs int) {
		in := inputOf(t, read(t, given.String()), fmt.Sprintf("count=%d,cpu=4", cpus/4), policy)
		for name, weight := range map[string]int32{"large": 3, "small": 1} {
			in.Queues = append(in.Queues, &v1alpha1.Queue{
				ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Spec: v1alpha1.QueueSpec{Weight: weight},
			})
		}
		o := recorded()
		o.Until = length
		r, err := replay.Run(t.Context(), in, o)
		if err != nil {
			t.Fatal(err)
		}
		shares = map[string]float64{}
		for _, q := range r.Summary.Queues {
			shares[q.Name] = q.HeldHours / (cpus * length.Hours())
		}
		for _, j := range r.Jobs {
			if j.Runs > 0 && strings.HasPrefix(j.ID, "small-gang") {
				gangs++
			}
		}
		return shares, gangs
	}
	without, few := replayed(noReservation)
	with, more := replayed(noReservation + "reservations: {depth: 1}\n")
	for name, share := range without {
		if math.Abs(with[name]-share) > 0.02 {
			t.Errorf("queue %s holds %.3f of the cluster with planned starts, and %.3f without", name, with[name], share)
		}
	}
	if more <= few {
		t.Errorf("%d gangs start with planned starts, and %d without", more, few)
	}
}
