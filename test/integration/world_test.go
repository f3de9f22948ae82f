package integration

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/client/clientset/versioned"
	"github.com/batch-scheduler/batch-scheduler/test/cluster"
	"github.com/batch-scheduler/batch-scheduler/test/scheduler"
)

const (
	// namespace is where the objects of all cases are.
	namespace = "default"

	// period is the schedule period, short to make the cases so; calm is for how long nothing
	// must change before a state counts as settled.
	period = 500 * time.Millisecond
	calm   = 3 * period

	// patience bounds every wait; hopeless is how long a wrong state may stand still.
	patience = 90 * time.Second
	hopeless = 40 * time.Second
)

// world is a cluster of its own for one case, with at most one scheduler at a time. Clients
// are an administrator's; the scheduler has only its own account.
type world struct {
	t       *testing.T
	ctx     context.Context // ends with the test
	cluster *cluster.Cluster
	client  kubernetes.Interface
	batch   versioned.Interface
	view    *view
	dir     string

	scheduler *scheduler.Scheduler // nil while none runs
	restarted bool                 // the API server: one that has just been started has not read all roles yet
}

// newWorld starts a cluster and installs config/ there. The test runs beside others.
func newWorld(t *testing.T, o cluster.Options) *world {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	t.Parallel()
	w := &world{t: t, ctx: t.Context(), dir: t.TempDir()}
	var err error
	w.cluster, err = cluster.Start(w.ctx, o)
	w.must(err)
	t.Cleanup(func() {
		if err = w.cluster.Stop(); err != nil {
			t.Errorf("stopping the cluster: %v", err)
		}
	})
	w.client, err = kubernetes.NewForConfig(w.cluster.RESTConfig())
	w.must(err)
	w.batch, err = versioned.NewForConfig(w.cluster.RESTConfig())
	w.must(err)
	w.must(scheduler.Install(w.ctx, w.cluster))
	w.view, err = newView(w.ctx, w.client, w.batch)
	w.must(err)
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// do carries out rows in order.
func (w *world) do(list ...row) {
	w.t.Helper()
	for _, r := range list {
		r(w)
	}
}

// start starts the scheduler, and has it stopped and its log looked through when the test ends.
func (w *world) start(args ...string) {
	w.t.Helper()
	w.scheduler = w.launch(args...)
	w.view.note() // from here on something can be expected of it
	w.t.Cleanup(func() {
		if w.scheduler != nil {
			w.stop()
		}
	})
}

// launch starts a scheduler that the case stops by itself, and has its log looked through when the
// test ends.
func (w *world) launch(args ...string) *scheduler.Scheduler {
	w.t.Helper()
	args = append([]string{"--schedule-period=" + period.String(), "--v=2"}, args...)
	s, err := scheduler.Start(w.ctx, w.cluster, scheduler.Options{Dir: w.dir, Race: true, Args: args})
	w.must(err)
	w.t.Cleanup(func() { w.judge(s) })
	return s
}

// stop asks the scheduler to stop, which must end with code 0.
func (w *world) stop() {
	w.t.Helper()
	s := w.scheduler
	w.scheduler = nil
	if err := s.Stop(patience); err != nil {
		w.t.Errorf("stopping the scheduler: %v", err)
	}
}

// judge fails the test if the log tells of a fault, and shows it if the test has failed.
func (w *world) judge(s *scheduler.Scheduler) {
	faults, err := s.Faults()
	if err != nil {
		w.t.Error(err)
	}
	if w.restarted {
		faults = slices.DeleteFunc(faults, func(line string) bool { return strings.Contains(line, "forbidden: User") })
	}
	if len(faults) > 0 {
		w.t.Errorf("the scheduler's log tells of %d faults, the first are:\n%s", len(faults), strings.Join(faults[:min(10, len(faults))], "\n"))
	}
	if !w.t.Failed() {
		return
	}
	log, err := os.ReadFile(s.Log)
	if err != nil {
		w.t.Error(err)
	}
	const most = 20_000
	if at := strings.Index(string(log), "DATA RACE"); at >= 0 {
		w.t.Logf("the scheduler's log, from the first data race on:\n%s", log[at:min(len(log), at+most)])
	}
	w.t.Logf("the scheduler's log, its last part:\n%s", log[max(0, len(log)-most):])
}

// settle waits until the cluster is as wanted, one line a job as picture draws it, and then
// for three periods without any change. by is the node label that places are told by; empty
// tells none.
func (w *world) settle(want, by string) {
	w.t.Helper()
	want = canonical(want)
	err := w.await(func() error { return differs(want, w.view.picture(by)) })
	if err != nil {
		w.t.Fatal(err)
	}
}

// await waits until what has nothing to object to any more and nothing has changed for three
// periods. It gives up when time is over or a wrong state stands still, with the last
// objection, and when the scheduler ends.
func (w *world) await(what func() error) error {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	var ended <-chan struct{}
	if w.scheduler != nil {
		ended = w.scheduler.Done()
	}
	for {
		objection := what()
		quiet := w.view.quiet()
		if objection == nil && quiet >= calm {
			return nil
		}
		if objection != nil && quiet >= hopeless {
			return errors.Join(errors.New("nothing changes any more"), objection)
		}
		look := time.NewTimer(calm / 10)
		select {
		case <-w.view.changed:
		case <-look.C:
		case <-ended:
			_, err := w.scheduler.Wait()
			return errors.Join(errors.New("the scheduler has ended"), err)
		case <-deadline.C:
			return errors.Join(errors.New("not settled after "+patience.String()), objection)
		}
		look.Stop()
	}
}

// eventually waits until there is no objection, settled or not.
func (w *world) eventually(what func() error) {
	w.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for objection := what(); objection != nil; objection = what() {
		select {
		case <-w.view.changed:
		case <-ticker.C:
		case <-deadline.C:
			w.t.Fatal(objection)
		}
	}
}

// apply applies an object of the scheduler's own kinds: unlike a create, the API server does
// not hold it back when the kind is new.
func (w *world) apply(object metav1.Object, kind schema.GroupVersionKind) {
	w.t.Helper()
	data, err := json.Marshal(object)
	w.must(err)
	var fields map[string]any
	w.must(json.Unmarshal(data, &fields))
	fields["apiVersion"], fields["kind"] = kind.GroupVersion().String(), kind.Kind
	delete(fields, "status")
	data, err = json.Marshal(fields)
	w.must(err)
	options := metav1.PatchOptions{FieldManager: "test"}
	switch object.(type) {
	case *v1alpha1.Queue:
		_, err = w.batch.SchedulingV1alpha1().Queues().Patch(w.ctx, object.GetName(), types.ApplyPatchType, data, options)
	default:
		_, err = w.batch.SchedulingV1alpha1().PodGroups(object.GetNamespace()).Patch(w.ctx, object.GetName(), types.ApplyPatchType, data, options)
	}
	w.must(err)
}
