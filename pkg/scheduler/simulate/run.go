// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/utils/clock"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/groupapi"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/internal/devices"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/ownerapi"
)

// Policy is a configuration to simulate.
type Policy struct {
	Name string // for output
	*conf.Configuration
	// Registry has the plugins and actions of the configuration. It must not be shared with another simulation.
	Registry *framework.Registry
	Warnings []conf.Warning
}

// Options configure a simulation.
type Options struct {
	SchedulerNames []string      // pods with one of these in spec.schedulerName are scheduled
	DefaultQueue   string        // the queue of pods and groups without one
	GangGrace      time.Duration // see framework.Handle
	Cycles         int           // maximum number of sessions; at least one runs
	// Progress is called after each session with the decisions so far. It may be nil.
	Progress func(cycle, bound, evicted int)
}

// Run runs sessions until one decides nothing. After each session, bound pods run, and pods that are evicted or were
// terminating are deleted; evicted pods with a controller are created again, unless the eviction makes their Job fail. The
// clock does not advance.
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
		decided = r.applyDecisions()
		if o.Progress != nil {
			o.Progress(r.result.Cycles, len(r.result.Bound), len(r.result.Evicted))
		}
		if decided && r.result.Cycles >= o.Cycles {
			r.result.Warnings = append(r.result.Warnings, fmt.Sprintf("stopped after %d cycles, and not because nothing was left to decide; --cycles allows more", r.result.Cycles))
			break
		}
	}
	r.warnUnknown()
	r.measureAfter()
	return r.result, nil
}

// run is one simulation. It implements Effects for its sessions.
type run struct {
	snapshot *Snapshot
	cluster  *model.Cluster
	sources  api.GroupSources
	owners   owners
	profile  *framework.Profile
	last     *framework.Session
	result   *Result

	binds   []placement // decided in this cycle
	victims []*v1.Pod   // decided in this cycle

	held    map[types.UID][]api.ExternalReservation // volumes and devices of bound pods
	again   map[types.UID]bool                      // pods that were created again
	lost    map[string]*v1.Pod                      // evicted and not running again, by namespace and name
	budgets map[*policyv1.PodDisruptionBudget]int32

	failures jobFailures
	claims   claims
}

// placement is a pod to bind and the content of its Binding.
type placement struct {
	pod      *v1.Pod
	node     string
	queue    string
	groupUID string
}

func (s *Snapshot) newRun(p Policy, o Options) (*run, error) {
	factory := staticInformers(s.objects)
	profile, err := p.Registry.NewProfile(p.Configuration, framework.Handle{
		Informers: factory, Clock: fixedClock{s.now}, GangGrace: o.GangGrace,
	})
	if err != nil {
		return nil, err
	}
	options := model.Options{
		SchedulerNames: o.SchedulerNames, DefaultQueue: api.QueueID(o.DefaultQueue), GroupSources: p.GroupSources, KueueGroups: p.Grouping.Kinds.Has(api.KindKueue),
	}
	rules := ownerapi.RulesOf(p.Grouping)
	if rules != nil {
		options.OwnerRules = rules
	}
	r := &run{
		snapshot: s, profile: profile, cluster: model.NewCluster(options),
		sources: p.GroupSources,

		held: map[types.UID][]api.ExternalReservation{}, again: map[types.UID]bool{}, lost: map[string]*v1.Pod{},
		budgets: map[*policyv1.PodDisruptionBudget]int32{}, failures: newJobFailures(s.rules),
		result: &Result{
			Configuration: p.Name, Totals: []Total{}, Queues: []Queue{}, Bound: []Binding{}, Evicted: []Eviction{}, Waiting: []Waiting{}, Warnings: []string{},
		},
	}
	r.owners = owners{rules, r.cluster, map[api.OwnerRef]bool{}}
	for _, warning := range p.Warnings {
		r.result.Warnings = append(r.result.Warnings, warning.String())
	}
	r.result.Warnings = append(append(r.result.Warnings, s.warnings...), s.checkForeign(o.SchedulerNames)...)
	for _, obj := range s.objects {
		r.notify(obj)
	}
	r.countDevices(factory)
	r.result.Warnings = append(r.result.Warnings, r.owners.dropMissing()...)
	r.cluster.Events().Recompute()
	return r, nil
}

// notify delivers an object to the model. Kinds that are not in the model are read by plugins.
func (r *run) notify(obj Object) {
	switch obj := obj.(type) {
	case *v1.Namespace:
		r.cluster.Events().SetNamespace(obj)
	case *schedulingv1.PriorityClass:
		r.cluster.Events().SetPriorityClass(obj)
	case *v1alpha1.Queue:
		r.cluster.Events().SetQueue(obj)
	case *v1alpha1.Topology:
		model.TopologiesOf(r.cluster).Set(obj)
	case *v1alpha1.PodGroup:
		r.cluster.Events().SetPodGroup(obj)
	case *groupapi.Object:
		if r.sources.Has(obj.Source) {
			r.cluster.Events().SetGroup(obj.Group)
		}
	case *owner:
		r.owners.set(obj.Unstructured)
	case *batchv1.Job:
		r.owners.setJob(obj)
	case *v1.Node:
		r.cluster.Events().SetNode(obj)
	case *policyv1.PodDisruptionBudget:
		r.cluster.Events().SetBudget(obj)
	case *v1.Pod:
		r.cluster.Events().SetPod(obj)
	}
}

// countDevices delivers the devices that device classes provide as extended resources, and those that claims request.
func (r *run) countDevices(factory informers.SharedInformerFactory) {
	r.claims = newClaims(factory, r.cluster.Events())
	inventory := devices.NewInventory(factory, r.cluster.Events())
	for i := range r.cluster.Dims().Len() {
		if name := r.cluster.Dims().Name(i); devices.Implicit(name) {
			inventory.Request(name)
		}
	}
	inventory.ClassesChanged()
}

func (r *run) session(ctx context.Context) error {
	r.result.Cycles++
	var err error
	r.last, _, err = r.profile.Run(ctx, r.cluster, r, logr.Discard(), framework.Hooks{
		AfterAction: func(_ *framework.Session, action framework.Action, err error) error {
			if err != nil {
				return fmt.Errorf("action %s: %w", action.Name(), err)
			}
			return nil
		},
	})
	if err != nil {
		return err
	}
	return ctx.Err()
}

// fixedClock is a clock that does not advance.
type fixedClock struct{ now time.Time }

var _ clock.PassiveClock = fixedClock{}

// Now implements clock.PassiveClock.
func (s fixedClock) Now() time.Time { return s.now }

// Since implements clock.PassiveClock.
func (s fixedClock) Since(t time.Time) time.Duration { return s.now.Sub(t) }
