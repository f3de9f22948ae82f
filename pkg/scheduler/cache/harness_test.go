// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/testr"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest/fakecluster"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The objects of these tests.
var (
	node    = fakecluster.Node
	group   = fakecluster.PodGroup
	queue   = fakecluster.Queue
	member  = fakecluster.Member
	with    = fakecluster.With
	gang    = fakecluster.Gang
	objects = fakecluster.Objects
)

type fault = fakecluster.Fault

// harness is a running cache on a fake API server. It lives in a synctest bubble, so its time is
// virtual: converge waits for everything that needs no time.
type harness struct {
	*Cache
	*fakecluster.APIServer
	t     *testing.T
	stop  func() // cancels the context of Run
	ended chan struct{}

	external      map[string][]api.ExternalReservation // of the next placements, by pod
	externalCalls externalCalls
}

// run runs a test in a bubble of its own. The objects exist before the informers start.
func run(t *testing.T, workers int, objects []runtime.Object, test func(*harness)) {
	t.Helper()
	runWith(t, Options{BindWorkers: workers}, objects, test)
}

func runWith(t *testing.T, o Options, objects []runtime.Object, test func(*harness)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := newHarness(t, o, objects)
		ctx, cancel := context.WithCancel(t.Context())
		if err := f.Start(ctx); err != nil {
			t.Fatal(err)
		}
		running, stop := context.WithCancel(ctx)
		f.stop, f.ended = stop, make(chan struct{})
		go func() {
			f.Run(running)
			close(f.ended)
		}()
		f.converge()
		test(f)
		stop()
		<-f.ended
		cancel()
		f.options.Informers.Shutdown()
		f.groupInformers.Shutdown()
	})
}

func newHarness(t *testing.T, o Options, objects []runtime.Object) *harness {
	f := &harness{t: t, APIServer: fakecluster.New(t, objects...), external: map[string][]api.ExternalReservation{}}
	f.externalCalls.start = time.Now()
	o.SchedulerNames, o.DefaultQueue = []string{fakecluster.SchedulerName}, "default"
	o.Kube, o.Batch, o.Informers = f.Kube, f.Batch, informers.NewSharedInformerFactory(f.Kube, 0)
	o.Log = testr.NewWithOptions(t, testr.Options{Verbosity: 1})
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	f.Cache = c
	return f
}

// converge waits until nothing can happen without time, and applies all events.
func (f *harness) converge() {
	f.t.Helper()
	synctest.Wait()
	f.Apply()
	f.Model().Events().Recompute()
	inFlight := 0
	for _, task := range f.tasks() {
		if task.InFlight() {
			inFlight++
		}
	}
	if recorded := len(f.Model().InFlight().Binds()); inFlight != recorded {
		f.t.Errorf("%d tasks are in flight, and %d binds are recorded", inFlight, recorded)
	}
}

func (f *harness) wait(d time.Duration) {
	time.Sleep(d)
	f.converge()
}

// woken reports whether there is a signal in Wake, and takes it.
func (f *harness) woken() bool {
	select {
	case <-f.Wake():
		return true
	default:
		return false
	}
}

// place commits all waiting pods of a PodGroup (of no PodGroup if it is "") to a node, as a statement
// does.
func (f *harness) place(group, node string) {
	f.t.Helper()
	var decisions []api.Decision
	for _, task := range f.tasks() {
		if task.Waiting() && task.Job != nil && strings.HasSuffix(task.Job.GroupName, group) {
			n := f.Model().Node(node)
			f.Model().Ledger().Place(task, api.Allocated, n)
			decisions = append(decisions, api.Decision{Kind: api.Allocate, Task: task, Node: n, External: f.external[task.Pod.Name]})
			delete(f.external, task.Pod.Name)
		}
	}
	f.Commit(decisions)
	for _, d := range decisions {
		f.Model().Ledger().AssumePod(d.Task, time.Unix(0, 0))
	}
}

func (f *harness) tasks() []*api.TaskInfo { return tasksOf(f.Model()) }

func tasksOf(model *model.Cluster) []*api.TaskInfo {
	var tasks []*api.TaskInfo
	for _, task := range model.Tasks() {
		tasks = append(tasks, task)
	}
	slices.SortFunc(tasks, func(a, b *api.TaskInfo) int { return strings.Compare(a.Key, b.Key) })
	return tasks
}

// describe returns the tasks of the model, one a line.
func (f *harness) describe() []string {
	lines := []string{}
	for _, task := range f.tasks() {
		line := task.Pod.Name + " " + task.Status.String()
		if task.Node != nil {
			line += " " + task.Node.Name
		}
		if task.InFlight() {
			line += " in flight"
		}
		lines = append(lines, line)
	}
	return lines
}
