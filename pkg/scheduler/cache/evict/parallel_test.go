// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package evict

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/metrics"
)

// outcomes records everything that an evictor reports: by pod, by job and by preemptor.
type outcomes struct {
	mu sync.Mutex
	of map[string][]string
}

func (o *outcomes) note(of, text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.of == nil {
		o.of = map[string][]string{}
	}
	o.of[of] = append(o.of[of], text)
}

func (o *outcomes) EvictionFailed(v *Victim, refused bool) {
	if refused {
		o.note(v.Name, "refused")
	} else {
		o.note(v.Name, "stays")
	}
}

func (o *outcomes) EvictionAllowed(uid types.UID) { o.note(string(uid), "allowed") }

func (o *outcomes) PodEvicted(pod v1.ObjectReference, _ api.EvictionCause, _ string) {
	o.note(pod.Name, "evicted")
}

func (o *outcomes) PodGroupEvicted(g v1.ObjectReference, c metav1.Condition) {
	pods, _, _ := strings.Cut(c.Message, " by")
	o.note(g.Name, pods)
}

func (o *outcomes) PodsPreempted(g v1.ObjectReference, pods int, _, _ string) {
	o.note(g.Name, fmt.Sprintf("preempted %d", pods))
}

func (*outcomes) JobEnded(v1.ObjectReference, string, string) {}
func (*outcomes) EvictionRefused(v1.ObjectReference, error)   {}

func (*outcomes) Eviction(string, metrics.EvictionResult) {}

// parallel is an evictor on an apiServer.
type parallel struct {
	*Evictor
	*apiServer
	*outcomes
}

// noStatus ignores conditions, which equal the events.
type noStatus struct{}

func (noStatus) PodGroupEvicted(v1.ObjectReference, metav1.Condition) {}
func (noStatus) MarkDisruption(context.Context, v1.ObjectReference, string) error {
	return nil
}

func newParallel(workers int) *parallel {
	p := &parallel{apiServer: newAPIServer(), outcomes: &outcomes{}}
	p.Evictor = New(Options{
		Kube: p.apiServer, Workers: workers, Handler: p.outcomes, Events: p.outcomes, Status: noStatus{}, Metrics: noMetrics{},
		Clock: clock.RealClock{}, Log: logr.Discard(),
	})
	return p
}

// run executes plans, each with a pod of the preemptor that waits, and stops the evictor after a time.
func (p *parallel) run(t *testing.T, d time.Duration, plans ...*Plan) {
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { p.Run(ctx) })
	for _, plan := range plans {
		p.Enqueue(plan)
	}
	time.Sleep(d)
	stop()
	running.Wait()
}

// planOf returns a plan from the names of victims, which begin with their job; a budget follows after a colon.
func (p *parallel) planOf(preemptor string, victims ...string) *Plan {
	plan := &Plan{
		Preemptor: "ns/" + preemptor, PodGroup: &v1.ObjectReference{Namespace: "ns", Name: preemptor}, Jobs: map[string]*Job{},
		PreemptorPod: &v1.ObjectReference{Namespace: "ns", Name: preemptor, UID: types.UID(preemptor)},
	}
	for _, text := range victims {
		name, budget, _ := strings.Cut(text, ":")
		job, _, _ := strings.Cut(name, "-")
		plan.Jobs[job] = &Job{Namespace: "ns", Name: job, PodGroup: &v1.ObjectReference{Namespace: "ns", Name: job}, Missing: 100}
		plan.Victims = append(plan.Victims, &Victim{Namespace: "ns", Name: name, UID: types.UID(name), Job: job, Budget: budget})
		p.budgetOf[name] = budget
		if budget != "" && p.allowed[budget] == 0 {
			p.allowed[budget] = 100
		}
	}
	return plan
}

// evictionsSent lists the evictions by time, in ms; those of one moment are sorted.
func (p *parallel) evictionsSent() string {
	byTime := map[time.Duration][]string{}
	for _, r := range p.log {
		if r.kind == evictPod {
			byTime[r.sent] = append(byTime[r.sent], r.name)
		}
	}
	var lines []string
	for _, at := range slices.Sorted(maps.Keys(byTime)) {
		slices.Sort(byTime[at])
		lines = append(lines, fmt.Sprintf("%d: %s", at.Milliseconds(), strings.Join(byTime[at], " ")))
	}
	return strings.Join(lines, "\n")
}

// staying lists the victims that the evictor reported as not evicted.
func (p *parallel) staying(plans []*Plan) string {
	var list []string
	for _, plan := range plans {
		for _, v := range plan.Victims {
			switch got := p.of[v.Name]; {
			case slices.Contains(got, "refused"):
				list = append(list, v.Name+" refused")
			case slices.Contains(got, "stays"):
				list = append(list, v.Name)
			}
		}
	}
	return strings.Join(list, ", ")
}

// quick lets only evictions take time, 100 ms each.
func quick(k kind, _ string) time.Duration {
	if k == evictPod {
		return 100 * time.Millisecond
	}
	return 0
}

func refuses(names ...string) func(kind, string, int) (error, bool) {
	return func(k kind, name string, _ int) (error, bool) {
		if k == evictPod && slices.Contains(names, name) {
			return refusedByBudget(), false
		}
		return nil, false
	}
}

// TestOrderOfRequests: a plan is validated as a whole, then the pods under budgets are evicted, those of one budget one
// after the other, and then the others: one of each job, and the rest of the job when that is certain.
func TestOrderOfRequests(t *testing.T) {
	for name, test := range map[string]struct {
		workers int
		given   func(*parallel)
		plans   [][]string
		want    string // evictions by time
		or      string // the other possible order of two plans
		staying string // pods that stay
	}{
		"jobs are evicted at the same time, after one pod of each": {
			plans: [][]string{{"a-0", "a-1", "a-2", "b-0", "b-1", "c-0"}},
			want:  "0: a-0 b-0 c-0\n100: a-1 a-2 b-1",
		},
		"one request at a time: a job is completed before the next begins": {
			workers: 1,
			plans:   [][]string{{"a-0", "a-1", "a-2", "b-0", "b-1"}},
			want:    "0: a-0\n100: a-1\n200: a-2\n300: b-0\n400: b-1",
		},
		"pods under budgets precede, one after the other for each budget": {
			plans: [][]string{{"a-0:x", "a-1", "b-0:x", "b-1:y", "c-0", "c-1"}},
			want:  "0: a-0 b-1\n100: b-0\n200: a-1 c-0\n300: c-1",
		},
		"plans are executed at the same time": {
			plans: [][]string{{"a-0", "a-1"}, {"b-0", "b-1"}},
			want:  "0: a-0 b-0\n100: a-1 b-1",
		},
		"a budget is shared by plans": {
			plans: [][]string{{"a-0:x"}, {"b-0:x"}, {"c-0:y"}},
			want:  "0: a-0 c-0\n100: b-0",
			or:    "0: b-0 c-0\n100: a-0",
		},
		"a budget refuses: jobs that have lost a pod are completed, no other begins": {
			given:   func(p *parallel) { p.fault = refuses("b-0") },
			plans:   [][]string{{"a-0:x", "a-1", "b-0:x", "b-1", "c-0", "d-0:x"}},
			want:    "0: a-0\n100: b-0\n200: a-1",
			staying: "b-0 refused, b-1, c-0, d-0",
		},
		"a budget refuses the first eviction: nothing is evicted": {
			given:   func(p *parallel) { p.fault = refuses("a-0") },
			plans:   [][]string{{"a-0:x", "a-1", "b-0:x", "c-0"}},
			want:    "0: a-0",
			staying: "a-0 refused, a-1, b-0, c-0",
		},
		"the first pod of a job is refused: the job stays, the others are evicted as a whole": {
			given:   func(p *parallel) { p.fault = refuses("b-0") },
			plans:   [][]string{{"a-0", "a-1", "b-0", "b-1"}},
			want:    "0: a-0 b-0\n100: a-1",
			staying: "b-0 refused, b-1",
		},
		"a budget that is too small for the plan: nothing is evicted": {
			given:   func(p *parallel) { p.allowed["x"] = 1 },
			plans:   [][]string{{"a-0:x", "b-0:x", "c-0:y"}},
			staying: "a-0 refused, b-0 refused, c-0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if test.workers == 0 {
					test.workers = 100
				}
				p := newParallel(test.workers)
				p.latency = quick
				if test.given != nil {
					test.given(p)
				}
				var plans []*Plan
				for i, victims := range test.plans {
					plans = append(plans, p.planOf(fmt.Sprintf("p%d", i), victims...))
				}
				p.run(t, time.Second, plans...)
				if diff := cmp.Diff(test.want, p.evictionsSent()); diff != "" && p.evictionsSent() != test.or {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(test.staying, p.staying(plans)); diff != "" {
					t.Errorf("staying (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestRequestsInFlight: no more requests of all plans are in flight than there are workers, and so many are.
func TestRequestsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParallel(7)
		var plans []*Plan
		for _, job := range []string{"a", "b", "c"} {
			var victims []string
			for i := range 20 {
				victims = append(victims, fmt.Sprintf("%s-%d", job, i))
			}
			plans = append(plans, p.planOf("for"+job, victims...))
		}
		p.run(t, time.Minute, plans...)
		most := 0
		for _, r := range p.log {
			now := 0
			for _, other := range p.log {
				if other.sent <= r.sent && r.sent < other.end {
					now++
				}
			}
			most = max(most, now)
		}
		if most != 7 {
			t.Errorf("%d requests were in flight, want 7", most)
		}
		if got := strings.Count(p.evictionsSent(), "-"); got != 60 {
			t.Errorf("%d pods were evicted, want 60", got)
		}
	})
}

// TestStop: jobs that have lost a pod when the evictor stops are completed, and no other begins. Six jobs of three pods
// need three rounds at two requests at a time, if nothing stops them.
func TestStop(t *testing.T) {
	for name, test := range map[string]struct {
		after time.Duration
		want  string
	}{
		"before the first eviction is certain": {50 * time.Millisecond, "0: a-0 b-0\n100: a-1 b-1\n200: a-2 b-2"},
		"between two jobs":                     {350 * time.Millisecond, "0: a-0 b-0\n100: a-1 b-1\n200: a-2 b-2\n300: c-0 d-0\n400: c-1 d-1\n500: c-2 d-2"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newParallel(2)
				p.latency = quick
				var victims []string
				for _, job := range []string{"a", "b", "c", "d", "e", "f"} {
					victims = append(victims, job+"-0", job+"-1", job+"-2")
				}
				plan := p.planOf("p", victims...)
				p.run(t, test.after, plan)
				if diff := cmp.Diff(test.want, p.evictionsSent()); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				for _, v := range plan.Victims {
					want := []string{"stays"}
					if strings.Contains(test.want, v.Name) {
						want = []string{"evicted"}
					}
					if diff := cmp.Diff(want, p.of[v.Name]); diff != "" {
						t.Errorf("%s (-want +got):\n%s", v.Name, diff)
					}
				}
			})
		})
	}
}

// TestPreemptorIsCheckedAgain: the preemptor is gone while the first victims are evicted. Only the jobs of one check
// lose pods.
func TestPreemptorIsCheckedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParallel(4)
		p.latency = quick
		p.fault = func(k kind, name string, _ int) (error, bool) {
			if k == evictPod {
				p.gone["p"] = true
			}
			return nil, false
		}
		var victims []string
		for i := range 3 * checkedVictims {
			victims = append(victims, fmt.Sprintf("j%d-0", i))
		}
		plan := p.planOf("p", victims...)
		p.run(t, time.Minute, plan)
		if got := strings.Count(p.evictionsSent(), "-"); got != checkedVictims {
			t.Errorf("%d pods were evicted, want %d", got, checkedVictims)
		}
	})
}

// TestYield: writers of statuses wait while a plan is executed, but not for longer than they say.
func TestYield(t *testing.T) {
	for name, test := range map[string]struct {
		after, atMost, want time.Duration
	}{
		"before the plan":                {0, time.Second, 0},
		"until the plan is executed":     {150 * time.Millisecond, time.Second, 150 * time.Millisecond},
		"at most for the given time":     {150 * time.Millisecond, 20 * time.Millisecond, 20 * time.Millisecond},
		"not after the plan is executed": {time.Second, time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newParallel(1)
				p.latency = quick
				var running sync.WaitGroup
				var waited time.Duration
				running.Go(func() {
					time.Sleep(test.after)
					began := time.Now()
					p.Yield(t.Context(), test.atMost)
					waited = time.Since(began)
				})
				synctest.Wait()
				p.run(t, 2*time.Second, p.planOf("p", "a-0", "a-1", "a-2"))
				running.Wait()
				if waited != test.want {
					t.Errorf("waited %v, want %v", waited, test.want)
				}
			})
		})
	}
}
