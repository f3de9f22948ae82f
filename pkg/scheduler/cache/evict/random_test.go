// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package evict

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"pgregory.net/rapid"
)

// TestAnyRefusals executes random plans at the same time, under shared budgets, while the API server refuses evictions
// at any point, responses are lost, other clients evict and delete pods, preemptors find other nodes, and the evictor
// stops.
func TestAnyRefusals(t *testing.T) {
	counts := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		s := drawScene(rt)
		var faults []string
		synctest.Test(t, func(t *testing.T) { faults = s.execute(t, counts) })
		if len(faults) > 0 {
			rt.Fatalf("%s\n%s", s, strings.Join(faults, "\n"))
		}
	})
	t.Logf("plans and jobs: %v", counts)
	if testing.Short() {
		return // too few cases for the generator's coverage
	}
	for _, outcome := range []string{"plan evicted", "plan refused", "plan evicted in part", "job evicted", "job evicted in part"} {
		if !t.Failed() && counts[outcome] == 0 {
			t.Errorf("no %s: the generator does not cover it", outcome)
		}
	}
}

// scene is random plans and what happens to them.
type scene struct {
	workers int
	plans   []scenePlan
	allowed map[string]int             // by budget
	latency map[string]time.Duration   // by kind and pod
	faults  map[string][]string        // by pod, one for each attempt; the last one repeats
	denied  map[string]bool            // pods whose dry run is refused
	deleted map[string]time.Duration   // pods and preemptors, by another client
	taken   map[string][]time.Duration // by budget: when another client uses one of its evictions
	stop    time.Duration
}

type scenePlan struct {
	at      time.Duration
	victims []string // as planOf takes them
}

// never is after everything.
const never = 10 * time.Minute

func drawScene(t *rapid.T) *scene {
	s := &scene{
		workers: rapid.SampledFrom([]int{1, 2, 3, 8, 100}).Draw(t, "workers"),
		allowed: map[string]int{}, latency: map[string]time.Duration{}, faults: map[string][]string{}, denied: map[string]bool{},
		deleted: map[string]time.Duration{}, taken: map[string][]time.Duration{}, stop: never,
	}
	rarely := func(what string) bool { return rapid.IntRange(0, 19).Draw(t, what) == 0 }
	moment := func(what string) time.Duration {
		return time.Duration(rapid.IntRange(0, 40).Draw(t, what))*25*time.Millisecond + time.Millisecond
	}
	if rarely("stops") {
		s.stop = moment("stop")
	}
	troubled := rapid.Bool().Draw(t, "troubled")
	for i := range rapid.IntRange(1, 4).Draw(t, "plans") {
		p := scenePlan{at: moment("enqueued") / 4}
		if rarely("preemptor is gone") {
			s.deleted[fmt.Sprintf("p%d", i)] = moment("gone")
		}
		for j := range rapid.IntRange(1, 4).Draw(t, "jobs") {
			for v := range rapid.IntRange(1, 4).Draw(t, "victims") {
				name := fmt.Sprintf("p%dj%d-%d", i, j, v)
				for _, k := range []kind{dryRun, annotate, evictPod, readPod} {
					s.latency[string(k)+name] = time.Duration(rapid.IntRange(0, 4).Draw(t, "latency")) * 25 * time.Millisecond
				}
				if rarely("deleted") {
					s.deleted[name] = moment("deleted")
				}
				if troubled && rarely("denied in dry run") && rarely("really") {
					s.denied[name] = true
				}
				if troubled && rapid.IntRange(0, 6).Draw(t, "faulty") == 0 {
					s.faults[name] = rapid.SliceOfN(rapid.SampledFrom([]string{"", "conflict", "internal", "lost", "lost conflict", "forbidden"}), 1, 3).Draw(t, "faults")
				}
				if budget := rapid.SampledFrom([]string{"", "", "x", "y", "z"}).Draw(t, "budget"); budget != "" {
					s.allowed[budget]++
					name += ":" + budget
				}
				p.victims = append(p.victims, name)
			}
		}
		s.plans = append(s.plans, p)
	}
	for _, budget := range []string{"x", "y", "z"} {
		for troubled && s.allowed[budget] > 0 && rarely("taken") {
			s.taken[budget] = append(s.taken[budget], moment("taken at"))
		}
	}
	return s
}

func (s *scene) String() string {
	return fmt.Sprintf("workers %d, plans %v, faults %v, denied %v, deleted %v, taken %v, stop %v", s.workers, s.plans, s.faults, s.denied, s.deleted, s.taken, s.stop)
}

// fault is the error of an attempt, and whether the eviction takes effect nevertheless.
func (s *scene) fault(k kind, name string, attempt int) (error, bool) {
	list := s.faults[name]
	switch {
	case k == dryRun && s.denied[name]:
		return apierrors.NewForbidden(v1.Resource("pods"), name, errors.New("a webhook denied it")), false
	case k != evictPod || len(list) == 0:
		return nil, false
	}
	switch list[min(attempt, len(list))-1] {
	case "conflict":
		return apierrors.NewConflict(v1.Resource("pods"), name, errors.New("another client was faster")), false
	case "internal":
		return apierrors.NewInternalError(errors.New("busy")), false
	case "lost":
		return apierrors.NewTimeoutError("no answer", 0), true
	case "lost conflict":
		return apierrors.NewConflict(v1.Resource("pods"), name, errors.New("another client was faster")), true
	case "forbidden":
		return apierrors.NewForbidden(v1.Resource("pods"), name, errors.New("a webhook denied it")), false
	}
	return nil, false
}

// execute runs the scene in a bubble, and returns what is wrong.
func (s *scene) execute(t *testing.T, counts map[string]int) []string {
	p := newParallel(s.workers)
	p.latency = func(k kind, name string) time.Duration { return s.latency[string(k)+name] }
	p.fault = s.fault
	var plans []*Plan
	for i, drawn := range s.plans {
		plans = append(plans, p.planOf(fmt.Sprintf("p%d", i), drawn.victims...))
	}
	for budget, n := range s.allowed {
		p.allowed[budget] = n
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { p.Run(ctx) })
	after := func(d time.Duration, do func()) {
		running.Go(func() {
			time.Sleep(d)
			p.apiServer.mu.Lock()
			defer p.apiServer.mu.Unlock()
			do()
		})
	}
	for i, plan := range plans {
		running.Go(func() {
			time.Sleep(s.plans[i].at)
			p.Enqueue(plan)
		})
	}
	for name, at := range s.deleted {
		after(at, func() { p.gone[name] = true })
	}
	for budget, times := range s.taken {
		for _, at := range times {
			after(at, func() { p.allowed[budget] = max(0, p.allowed[budget]-1) })
		}
	}
	time.Sleep(s.stop)
	stop()
	running.Wait()
	faults := p.commonFaults(s.workers)
	for _, plan := range plans {
		faults = append(faults, p.planFaults(s, plan, counts)...)
	}
	return faults
}

// received returns the requests of a kind for a pod or a budget, by time.
func (s *apiServer) received(k kind, name string) []*request {
	return slices.DeleteFunc(slices.Clone(s.log), func(r *request) bool { return r.kind != k || r.name != name })
}

// commonFaults checks what holds over all plans.
func (p *parallel) commonFaults(workers int) (faults []string) {
	byBudget := map[string][]*request{}
	for i, r := range p.log {
		inFlight := 0
		for _, other := range p.log {
			if other.sent <= r.sent && r.sent < other.end {
				inFlight++
			}
		}
		if inFlight > workers {
			faults = append(faults, fmt.Sprintf("%d requests are in flight at %v", inFlight, r.sent))
		}
		if r.kind != evictPod {
			continue
		}
		for _, earlier := range p.log[:i] {
			if earlier.kind == evictPod && earlier.name == r.name && earlier.effective {
				faults = append(faults, r.name+" is evicted twice")
			}
		}
		if budget := p.budgetOf[r.name]; budget != "" {
			for _, other := range byBudget[budget] {
				if r.sent < other.end {
					faults = append(faults, fmt.Sprintf("%s and %s of budget %s are evicted at the same time", other.name, r.name, budget))
				}
			}
			byBudget[budget] = append(byBudget[budget], r)
		}
	}
	return faults
}

// planFaults checks one plan.
func (p *parallel) planFaults(s *scene, plan *Plan, counts map[string]int) (faults []string) {
	o := outcomeOf(p, plan)
	fault := func(format string, args ...any) {
		faults = append(faults, plan.Preemptor+": "+fmt.Sprintf(format, args...))
	}
	if o.evictions > 0 && (o.validated < 0 || o.first < o.validated) {
		fault("an eviction is sent at %v, but the dry runs end at %v", o.first, o.validated)
	}
	if gone, ok := s.deleted[plan.PreemptorPod.Name]; ok && o.evictions > 0 && gone < o.first && gone < o.validated {
		fault("pods are evicted although the preemptor is gone at %v", gone)
	}
	if o.unprotected < o.protected {
		fault("a pod without a budget is evicted at %v, one with a budget until %v", o.unprotected, o.protected)
	}
	evicted := 0
	for begin := 0; begin < len(plan.Victims); {
		victims := plan.nextJob(begin)
		begin += len(victims)
		n, wrong := p.jobFaults(s, o, victims, counts)
		evicted += n
		for _, text := range wrong {
			fault("job %s: %s", victims[0].Job, text)
		}
	}
	var want []string
	switch {
	case evicted == len(plan.Victims):
		want = []string{fmt.Sprintf("preempted %d", evicted)}
		counts["plan evicted"]++
	case evicted > 0:
		counts["plan evicted in part"]++
	default:
		counts["plan refused"]++
	}
	if diff := cmp.Diff(want, p.of[plan.PreemptorPod.Name]); diff != "" {
		fault("events of the preemptor (-want +got):\n%s", diff)
	}
	return faults
}

// outcome is when the requests of a plan were sent.
type outcome struct {
	evictions   int
	validated   time.Duration // when the last dry run ended; negative if one was refused or not sent
	first       time.Duration // the first annotation or eviction
	refused     time.Duration // the first refusal of an eviction
	protected   time.Duration // when the last eviction under a budget ended
	unprotected time.Duration // when the first eviction without a budget was sent
}

func outcomeOf(p *parallel, plan *Plan) outcome {
	o := outcome{first: never, refused: never, unprotected: never}
	for _, v := range plan.Victims {
		dry := p.received(dryRun, v.Name)
		switch {
		case len(dry) != 1 || dry[0].err != nil && !apierrors.IsNotFound(dry[0].err):
			o.validated = -1
		case o.validated >= 0:
			o.validated = max(o.validated, dry[0].end)
		}
		for _, r := range p.received(annotate, v.Name) {
			o.first = min(o.first, r.sent)
		}
		evictions := p.received(evictPod, v.Name)
		o.evictions += len(evictions)
		if len(evictions) == 0 {
			continue
		}
		last := evictions[len(evictions)-1].end
		if v.Budget != "" {
			o.protected = max(o.protected, last)
		} else {
			o.unprotected = min(o.unprotected, evictions[0].sent)
		}
		if slices.Contains(p.of[v.Name], "refused") {
			for _, r := range p.received(readPod, v.Name) { // it was read whether the pod is gone
				last = max(last, r.end)
			}
			o.refused = min(o.refused, last)
		}
	}
	return o
}

// jobFaults checks the victims of one job, and returns how many are evicted.
func (p *parallel) jobFaults(s *scene, o outcome, victims []*Victim, counts map[string]int) (evicted int, faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	begun, refused, protected := never, false, false
	for _, v := range victims {
		protected = protected || v.Budget != ""
		evictions, annotations := p.received(evictPod, v.Name), p.received(annotate, v.Name)
		if len(evictions) > 0 {
			begun = min(begun, annotations[0].sent)
			if len(annotations) != 1 || annotations[0].end > evictions[0].sent || len(evictions) > maxAttempts {
				fault("%s has %d annotations and %d evictions", v.Name, len(annotations), len(evictions))
			}
		}
		effective := slices.ContainsFunc(evictions, func(r *request) bool { return r.effective })
		switch got := strings.Join(p.of[v.Name], " "); got {
		case "evicted":
			evicted++
			if !p.gone[v.Name] {
				fault("%s is reported as evicted, but exists", v.Name)
			}
			continue
		case "stays", "refused allowed":
			refused = refused || got != "stays"
		case "refused":
			refused = true
			if s.stop == never {
				fault("%s is not allowed again", v.Name)
			}
		case "":
			if s.stop == never || len(evictions) > 0 {
				fault("%s has no outcome", v.Name)
			}
		default:
			fault("%s: %s", v.Name, got)
		}
		if effective {
			fault("%s is evicted, but reported as %v", v.Name, p.of[v.Name])
		}
	}
	partial := evicted > 0 && evicted < len(victims)
	switch first := p.of[victims[0].Name]; {
	case partial && !refused:
		fault("is evicted in part although none of its evictions is refused")
	case partial && !protected && first[0] == "refused":
		fault("is evicted in part although its first eviction is refused")
	case begun < never && begun > o.refused:
		fault("begins at %v, after a refusal at %v", begun, o.refused)
	case begun < never && begun > s.stop:
		fault("begins at %v, after the stop at %v", begun, s.stop)
	}
	var want []string
	if evicted > 0 {
		want = []string{fmt.Sprintf("the gang (%s) was evicted", countPods(evicted))}
		counts["job evicted"]++
	}
	if partial {
		counts["job evicted in part"]++
	}
	if diff := cmp.Diff(want, p.of[victims[0].Job]); diff != "" {
		fault("events (-want +got):\n%s", diff)
	}
	return evicted, faults
}
