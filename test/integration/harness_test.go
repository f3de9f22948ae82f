// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

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

	// period is the schedule period, short to make the cases short. A state counts as stable if nothing has
	// changed for idleCycles.
	period     = 500 * time.Millisecond
	idleCycles = 3 * period

	// waitTimeout bounds every wait; infeasible is for how long a wrong state may stay unchanged.
	waitTimeout = 90 * time.Second
	infeasible  = 40 * time.Second
)

// harness is a cluster for one case, with at most one scheduler at a time. Clients
// are an administrator's; the scheduler has only its own account.
type harness struct {
	t       *testing.T
	ctx     context.Context // ends with the test
	cluster *cluster.Cluster
	client  kubernetes.Interface
	batch   versioned.Interface
	view    *observer
	dir     string

	scheduler *scheduler.Scheduler // nil while none runs
	restarted bool                 // the API server: one that has just been started has not read all roles yet
}

// newHarness returns a cluster with nothing but config/. The test runs beside others.
func newHarness(t *testing.T, o cluster.Options) *harness {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	t.Parallel()
	h := &harness{t: t, ctx: t.Context(), dir: t.TempDir()}
	c, err := takeCluster(h.ctx, o)
	h.must(err)
	h.cluster = c.Cluster
	t.Cleanup(func() { c.release(t) })
	h.client, err = kubernetes.NewForConfig(h.cluster.RESTConfig())
	h.must(err)
	h.batch, err = versioned.NewForConfig(h.cluster.RESTConfig())
	h.must(err)
	h.view, err = newObserver(h.ctx, h.client, h.batch)
	h.must(err)
	return h
}

func (h *harness) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// do carries out rows in order.
func (h *harness) do(list ...row) {
	h.t.Helper()
	for _, r := range list {
		r(h)
	}
}

// start starts the scheduler, and has it stopped and its log looked through when the test ends.
func (h *harness) start(args ...string) {
	h.t.Helper()
	h.scheduler = h.startScheduler(args...)
	h.view.note() // from here on something can be expected of it
	h.t.Cleanup(func() {
		if h.scheduler != nil {
			h.stop()
		}
	})
}

// startScheduler starts a scheduler that the case stops by itself. Its log is checked when the test
// ends.
func (h *harness) startScheduler(args ...string) *scheduler.Scheduler {
	h.t.Helper()
	args = append([]string{"--schedule-period=" + period.String(), "--v=2"}, args...)
	s, err := scheduler.Start(h.ctx, h.cluster, scheduler.Options{Dir: h.dir, Race: true, Args: args})
	h.must(err)
	h.t.Cleanup(func() { h.verify(s) })
	return s
}

// stop asks the scheduler to stop, which must end with code 0.
func (h *harness) stop() {
	h.t.Helper()
	s := h.scheduler
	h.scheduler = nil
	if err := s.Stop(waitTimeout); err != nil {
		h.t.Errorf("stopping the scheduler: %v", err)
	}
}

// verify fails the test if the log contains an error, and shows it if the test has failed.
func (h *harness) verify(s *scheduler.Scheduler) {
	faults, err := s.Faults()
	if err != nil {
		h.t.Error(err)
	}
	if h.restarted {
		faults = slices.DeleteFunc(faults, func(line string) bool { return strings.Contains(line, "forbidden: User") })
	}
	if len(faults) > 0 {
		h.t.Errorf("the scheduler's log contains %d errors, the first are:\n%s", len(faults), strings.Join(faults[:min(10, len(faults))], "\n"))
	}
	if !h.t.Failed() {
		return
	}
	log, err := os.ReadFile(s.Log)
	if err != nil {
		h.t.Error(err)
	}
	const most = 20_000
	if at := strings.Index(string(log), "DATA RACE"); at >= 0 {
		h.t.Logf("the scheduler's log, from the first data race on:\n%s", log[at:min(len(log), at+most)])
	}
	h.t.Logf("the scheduler's log, its last part:\n%s", log[max(0, len(log)-most):])
}

// awaitStable waits until the cluster is in the desired state, one line a job as observer.snapshot prints it,
// and then for three periods without any change. by is the node label whose values the lines show, or empty.
func (h *harness) awaitStable(want, by string) {
	h.t.Helper()
	want = canonical(want)
	err := h.await(func() error { return differs(want, h.view.snapshot(by)) })
	if err != nil {
		h.t.Fatal(err)
	}
}

// await waits until what has nothing to object to any more and nothing has changed for three
// periods. It gives up when time is over or a wrong state stands still, with the last
// objection, and when the scheduler ends.
func (h *harness) await(what func() error) error {
	deadline := time.NewTimer(waitTimeout)
	defer deadline.Stop()
	var ended <-chan struct{}
	if h.scheduler != nil {
		ended = h.scheduler.Done()
	}
	for {
		objection := what()
		unchanged := h.view.unchanged()
		if objection == nil && unchanged >= idleCycles {
			return nil
		}
		if objection != nil && unchanged >= infeasible {
			return errors.Join(errors.New("nothing changes any more"), objection)
		}
		look := time.NewTimer(idleCycles / 10)
		select {
		case <-h.view.changed:
		case <-look.C:
		case <-ended:
			_, err := h.scheduler.Wait()
			return errors.Join(errors.New("the scheduler has ended"), err)
		case <-deadline.C:
			return errors.Join(errors.New("not stable after "+waitTimeout.String()), objection)
		}
		look.Stop()
	}
}

// eventually waits until there is no objection, without waiting for a stable state.
func (h *harness) eventually(what func() error) {
	h.t.Helper()
	deadline := time.NewTimer(waitTimeout)
	defer deadline.Stop()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for objection := what(); objection != nil; objection = what() {
		select {
		case <-h.view.changed:
		case <-ticker.C:
		case <-deadline.C:
			h.t.Fatal(objection)
		}
	}
}

// apply applies an object of the scheduler's own kinds: unlike a create, the API server does
// not hold it back when the kind is new.
func (h *harness) apply(object metav1.Object, kind schema.GroupVersionKind) {
	h.t.Helper()
	data, err := json.Marshal(object)
	h.must(err)
	var fields map[string]any
	h.must(json.Unmarshal(data, &fields))
	fields["apiVersion"], fields["kind"] = kind.GroupVersion().String(), kind.Kind
	delete(fields, "status")
	data, err = json.Marshal(fields)
	h.must(err)
	options := metav1.PatchOptions{FieldManager: "test"}
	switch object.(type) {
	case *v1alpha1.Queue:
		_, err = h.batch.SchedulingV1alpha1().Queues().Patch(h.ctx, object.GetName(), types.ApplyPatchType, data, options)
	default:
		_, err = h.batch.SchedulingV1alpha1().PodGroups(object.GetNamespace()).Patch(h.ctx, object.GetName(), types.ApplyPatchType, data, options)
	}
	h.must(err)
}
