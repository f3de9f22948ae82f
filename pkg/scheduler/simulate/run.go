package simulate

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

// Policy is a configuration to simulate.
type Policy struct {
	Name string // for people
	*conf.Configuration
	// Registry has what the configuration names. No other simulation may use it.
	Registry *framework.Registry
	Warnings []conf.Warning
}

// Options say how to simulate.
type Options struct {
	SchedulerName string        // pods with this spec.schedulerName are placed
	DefaultQueue  string        // the queue of those who name none
	GangGrace     time.Duration // see framework.Handle
	Cycles        int           // how many sessions are run at most, but one is
	// Progress hears after each session what has been decided so far. It may be nil.
	Progress func(cycle, bound, evicted int)
}

// Run runs sessions until one decides nothing. After each of them, pods that are bound run, and pods that are evicted or
// were being deleted are gone; those that were evicted are back if they have a controller. The clock stands still.
func (s *Snapshot) Run(ctx context.Context, p Policy, o Options) (*Result, error) {
	r, err := s.newRun(p, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.Name, err)
	}
	r.measureBefore()
	for decided := true; decided; {
		if err := r.session(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", p.Name, err)
		}
		decided = r.carryOut()
		if o.Progress != nil {
			o.Progress(r.result.Cycles, len(r.result.Bound), len(r.result.Evicted))
		}
		if decided && r.result.Cycles >= o.Cycles {
			r.result.Warnings = append(r.result.Warnings, fmt.Sprintf("stopped after %d cycles, and not because nothing was left to decide; --cycles allows more", r.result.Cycles))
			break
		}
	}
	r.measureAfter()
	return r.result, nil
}

// run is one simulation. It is the Effects of its sessions.
type run struct {
	snapshot *Snapshot
	cluster  *model.Cluster
	profile  *framework.Profile
	last     *framework.Session
	result   *Result

	binds   []placement // decided in this cycle
	victims []*v1.Pod   // decided in this cycle

	held    map[types.UID][]api.ExternalReservation // volumes and devices of pods that were bound
	again   map[types.UID]bool                      // pods that have come back
	lost    map[string]*v1.Pod                      // evicted and not running again, by namespace and name
	budgets map[*policyv1.PodDisruptionBudget]int32
}

// placement is a pod that is to be bound, and what its Binding would say.
type placement struct {
	pod      *v1.Pod
	node     string
	queue    string
	groupUID string
}

func (s *Snapshot) newRun(p Policy, o Options) (*run, error) {
	profile, err := p.Registry.NewProfile(p.Configuration, framework.Handle{
		Informers: still(s.objects), Clock: stopped{s.now}, GangGrace: o.GangGrace,
	})
	if err != nil {
		return nil, err
	}
	r := &run{
		snapshot: s, profile: profile,
		cluster: model.NewCluster(model.Options{SchedulerName: o.SchedulerName, DefaultQueue: api.QueueID(o.DefaultQueue)}),
		held:    map[types.UID][]api.ExternalReservation{}, again: map[types.UID]bool{}, lost: map[string]*v1.Pod{},
		budgets: map[*policyv1.PodDisruptionBudget]int32{},
		result: &Result{
			Configuration: p.Name, Totals: []Total{}, Queues: []Queue{}, Bound: []Binding{}, Evicted: []Eviction{}, Waiting: []Waiting{}, Warnings: []string{},
		},
	}
	for _, warning := range p.Warnings {
		r.result.Warnings = append(r.result.Warnings, warning.String())
	}
	r.result.Warnings = append(append(r.result.Warnings, s.warnings...), s.checkForeign(o.SchedulerName)...)
	for _, obj := range s.objects {
		r.notify(obj)
	}
	r.cluster.Events().Recompute()
	return r, nil
}

// notify lets the model hear of an object. What is not in the model is left to the plugins, which look it up.
func (r *run) notify(obj Object) {
	switch obj := obj.(type) {
	case *v1.Namespace:
		r.cluster.Events().SetNamespace(obj)
	case *schedulingv1.PriorityClass:
		r.cluster.Events().SetPriorityClass(obj)
	case *v1alpha1.Queue:
		r.cluster.Events().SetQueue(obj)
	case *v1alpha1.PodGroup:
		r.cluster.Events().SetPodGroup(obj)
	case *v1.Node:
		r.cluster.Events().SetNode(obj)
	case *policyv1.PodDisruptionBudget:
		r.cluster.Events().SetBudget(obj)
	case *v1.Pod:
		r.cluster.Events().SetPod(obj)
	}
}

func (r *run) session(ctx context.Context) error {
	r.result.Cycles++
	r.last = r.profile.Open(r.cluster, r, logr.Discard())
	for _, action := range r.last.Actions() {
		if err := action.Execute(ctx, r.last); err != nil {
			return fmt.Errorf("action %s: %w", action.Name(), err)
		}
	}
	r.last.Close()
	r.cluster.Events().Recompute()
	return ctx.Err()
}

// stopped is a clock that does not move.
type stopped struct{ now time.Time }

var _ clock.PassiveClock = stopped{}

// Now implements clock.PassiveClock.
func (s stopped) Now() time.Time { return s.now }

// Since implements clock.PassiveClock.
func (s stopped) Since(t time.Time) time.Duration { return s.now.Sub(t) }
