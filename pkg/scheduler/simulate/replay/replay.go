// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/trace"
)

// Input is what a replay starts from. It is not modified, so replays may share it.
type Input struct {
	Trace *trace.Trace
	// Nodes are there besides those that the trace defines. What it defines is ignored for nodes of the same name, but not
	// when they are up, down or cordoned.
	Nodes []*v1.Node
	// Queues are those of the cluster; the trace does not change them. Queues that only jobs name have weight 1.
	Queues          []*v1alpha1.Queue
	PriorityClasses []*schedulingv1.PriorityClass
	// Topologies are those that jobs of the trace name.
	Topologies []*v1alpha1.Topology

	Config *conf.Configuration
	// Registry has the plugins and actions of the configuration. It must not be shared with another replay.
	Registry *framework.Registry
}

// Options configure a replay.
type Options struct {
	DefaultQueue string        // the queue of jobs without one
	GangGrace    time.Duration // see framework.Handle
	// EvictionGrace is how long an evicted pod holds its resources.
	EvictionGrace time.Duration
	// StartDelay is how long the containers of a gang start before its run begins.
	StartDelay time.Duration
	// Checkpoint is after how much of its run time a job saves its work; 0: never. A run that begins again continues there.
	Checkpoint time.Duration
	// Record collects samples, evictions and the reasons of waits, for the result files and for comparisons.
	Record bool
	// Until ends the replay at this time of the trace; 0 is without limit.
	Until time.Duration
	// Bound is called for each pod that a session binds, in the order of the decisions. It may be nil.
	Bound func(Bind)
	// Progress is called after the sessions of each time. It may be nil.
	Progress func(Progress)
}

// Bind is a pod that starts.
type Bind struct {
	At   time.Duration
	Job  string // its ID
	Pod  int    // from 0
	Node string
}

// Progress is how far a replay is.
type Progress struct {
	At         time.Duration // of the trace
	Done, Jobs int
}

// mostIdleWakes is how many sessions without a decision run one after the other when nothing else is going to happen. A
// plugin that asks for sessions again and again does not prolong the replay.
const mostIdleWakes = 1000

// schedulerName is the name of the scheduler in the pods of a trace.
const schedulerName = "batch-scheduler"

// namespace is the namespace of all jobs.
const namespace = "default"

// Run replays a trace. If ctx ends, it returns the result until then, and the error of ctx.
func Run(ctx context.Context, in Input, o Options) (*Result, error) {
	r, err := newReplay(in, o)
	if err != nil {
		return nil, err
	}
	if err := r.play(ctx); err != nil {
		return nil, err
	}
	return r.result(), ctx.Err()
}

// play advances the clock from event to event until nothing is left to happen, or ctx ends.
func (r *replay) play(ctx context.Context) error {
	idle := 0
	for ctx.Err() == nil {
		at, due, more := r.next()
		if !more || idle > mostIdleWakes {
			if r.done < len(r.jobs) {
				r.advance(max(r.clock.at, r.Until)) // what runs holds its nodes until then
			}
			break
		}
		if r.Until > 0 && at > r.Until {
			r.advance(r.Until)
			break
		}
		r.advance(at)
		r.applyEvents()
		decided, err := r.sessions(ctx, due)
		if err != nil {
			return err
		}
		r.recorder.sample(r)
		if idle++; decided || len(r.agenda.queue) > 0 {
			idle = 0
		}
		if r.Progress != nil {
			r.Progress(Progress{At: at, Done: r.done, Jobs: len(r.jobs)})
		}
	}
	return nil
}

// replay is one run over a trace. It implements Effects for its sessions.
type replay struct {
	Input
	Options
	clock   *virtual
	cluster *model.Cluster
	profile *framework.Profile
	agenda  agenda
	usage   *usage
	domains *domains // nil without topologies

	jobs  []*job
	byID  map[string]*job
	pods  map[types.UID]*pod
	nodes map[string]*v1.Node
	done  int // jobs that have ended
	// around is what the trace changes besides jobs.
	around *surroundings
	// usedUntilEnd is the usage until the last end of a job.
	usedUntilEnd used
	recorder     *recorder // nil unless results are recorded

	decided uint64        // generation of the model after the last session
	wake    time.Duration // when a session is due; 0: none
	binds   []bind        // of the last session
	victims []victim      // of the last session
	last    *framework.Session

	sessionCount, evicted int
}

// bind is a bind that a session decided.
type bind struct {
	pod   *pod
	node  string
	queue string
	group string // its UID
}

// victim is an eviction that a session decided.
type victim struct {
	pod   *pod
	by    *job // that it is evicted for; nil if there is none
	cause string
}

func newReplay(in Input, o Options) (*replay, error) {
	r := &replay{
		Input: in, Options: o, clock: &virtual{},
		cluster: model.NewCluster(model.Options{SchedulerNames: []string{schedulerName}, DefaultQueue: api.QueueID(o.DefaultQueue)}),
		byID:    map[string]*job{}, pods: map[types.UID]*pod{}, nodes: map[string]*v1.Node{},
	}
	r.around = newSurroundings(r, in.Nodes)
	r.Nodes = slices.Concat(in.Nodes, r.around.nodesAtBeginning())
	var err error
	r.profile, err = in.Registry.NewProfile(in.Config, framework.Handle{
		Informers: informers.NewSharedInformerFactory(nil, 0), Clock: r.clock, GangGrace: o.GangGrace,
	})
	if err != nil {
		return nil, err
	}
	r.usage = newUsage(r.Nodes, in.Trace)
	if o.Record {
		r.recorder = newRecorder(r)
	}
	r.addObjects()
	return r, r.addTrace()
}

// addObjects applies the objects that exist before the trace begins.
func (r *replay) addObjects() {
	e := r.cluster.Events()
	e.SetNamespace(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	for _, class := range r.PriorityClasses {
		e.SetPriorityClass(class)
	}
	for _, t := range r.Topologies {
		model.TopologiesOf(r.cluster).Set(t)
	}
	r.domains = newDomains(r.cluster.JobTable().Topologies())
	known := map[string]bool{}
	for _, q := range r.Queues {
		known[q.Name] = true
		e.SetQueue(q)
	}
	for i := range r.Trace.Record.Queues {
		known[r.Trace.Record.Queues[i].Queue] = true
	}
	names := []string{r.DefaultQueue}
	for i := range r.Trace.Jobs {
		names = append(names, r.Trace.Jobs[i].Queue)
	}
	for _, name := range names {
		if name != "" && !known[name] {
			known[name] = true
			e.SetQueue(newQueue(name, v1alpha1.QueueSpec{Weight: 1}))
		}
	}
	for _, n := range r.Nodes {
		r.nodes[n.Name] = n
		r.usage.setNode(n)
		r.domains.setNode(n)
		e.SetNode(n)
	}
}

// addTrace puts the events of the trace on the agenda.
func (r *replay) addTrace() error {
	if err := checkConstraints(r.cluster, r.Trace); err != nil {
		return err
	}
	for i := range r.Trace.Jobs {
		j := &job{Job: &r.Trace.Jobs[i], index: i, queue: cmp.Or(r.Trace.Jobs[i].Queue, r.DefaultQueue)}
		r.jobs = append(r.jobs, j)
		r.byID[j.ID] = j
		r.agenda.add(j.Submit, submitted, func() { r.submit(j) })
	}
	for _, c := range r.Trace.Cancels {
		j := r.byID[c.Job]
		if j == nil {
			return fmt.Errorf("the trace cancels a job %q, which it does not submit", c.Job)
		}
		r.agenda.add(c.At, cancelled, func() { r.end(j, Cancelled) })
	}
	return r.around.schedule()
}

// next returns the time of the next event or due session, whether a session is due then, and whether there is any.
func (r *replay) next() (at time.Duration, due, more bool) {
	at, more = r.agenda.next()
	if r.wake > 0 && (!more || r.wake <= at) {
		return r.wake, true, true
	}
	return at, false, more
}

// advance sets the clock.
func (r *replay) advance(to time.Duration) {
	r.usage.advance(to - r.clock.at)
	if r.usage.counts {
		r.domains.advance(to - r.clock.at)
	}
	r.clock.at = to
}

// applyEvents applies the events of the current time.
func (r *replay) applyEvents() {
	for {
		at, more := r.agenda.next()
		if !more || at > r.clock.at {
			return
		}
		r.agenda.pop().apply()
	}
}

// sessions runs sessions until the model does not change any more, and reports whether any has decided something. As in
// scheduler.RunOnce, there is none if nothing has changed and none is due.
func (r *replay) sessions(ctx context.Context, due bool) (decided bool, err error) {
	for due || r.cluster.Generations().Model != r.decided {
		due = false
		r.cluster.Events().Recompute()
		r.sessionCount++
		ssn, _, err := r.profile.Run(ctx, r.cluster, r, logr.Discard(), framework.Hooks{AfterAction: failed})
		if err != nil && ctx.Err() == nil {
			return decided, err
		}
		r.last = ssn
		r.decided, r.wake = r.cluster.Generations().Model, 0
		if wake := ssn.Wake(); !wake.IsZero() && wake.After(r.clock.Now()) {
			r.wake = wake.Sub(epoch)
		}
		if len(r.binds)+len(r.victims) > 0 {
			decided = true
		}
		r.applyDecisions()
	}
	return decided, nil
}

func failed(_ *framework.Session, action framework.Action, err error) error {
	if err != nil {
		return fmt.Errorf("action %s: %w", action.Name(), err)
	}
	return nil
}

// Commit records decisions. It implements framework.Effects.
func (r *replay) Commit(decisions []api.Decision) {
	for _, d := range decisions {
		p := r.pods[d.Task.Pod.UID]
		switch d.Kind {
		case api.Allocate:
			r.binds = append(r.binds, bind{p, d.Node.Name, string(d.Task.Job.QueueName), string(d.Task.Job.GroupUID())})
		case api.Evict:
			v := victim{pod: p, cause: d.Cause.String()}
			if d.For != nil {
				v.by = r.jobOf(d.For)
			}
			r.victims = append(r.victims, v)
		}
	}
}

// applyDecisions applies the results of the decisions of a session to the model.
func (r *replay) applyDecisions() {
	for _, b := range r.binds {
		r.run(b)
		if r.Bound != nil {
			r.Bound(Bind{r.clock.at, b.pod.job.ID, b.pod.number, b.node})
		}
	}
	for _, v := range r.victims {
		r.evict(v)
	}
	r.binds, r.victims = r.binds[:0], r.victims[:0]
}
