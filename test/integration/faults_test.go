// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"flag"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/cmd/localcluster/annotation"
	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/test/faults"
	"github.com/batch-scheduler/batch-scheduler/test/scheduler"
)

// percent is how much of what the scheduler writes goes wrong.
const percent = 10

// outage is how long the API server is away in TestOutage. A long one is 30s; the default keeps the
// tests short.
var outage = flag.Duration("outage", 5*time.Second, "how long TestOutage keeps the API server away, each time")

// newProxy puts a proxy between the API server and schedulers with the arguments that it returns.
func (h *harness) newProxy() (*faults.Proxy, []string) {
	h.t.Helper()
	p, err := faults.Start(faults.Options{Target: h.cluster.RESTConfig(), Seed: *seed})
	h.must(err)
	direct, through := filepath.Join(h.dir, "direct.kubeconfig"), filepath.Join(h.dir, "through.kubeconfig")
	h.must(h.cluster.ServiceAccountKubeconfig(h.ctx, scheduler.Namespace, scheduler.Account, direct))
	h.must(p.Kubeconfig(direct, through))
	h.t.Cleanup(func() {
		h.t.Logf("with -seed %d this went wrong:\n%s", *seed, p.Faults())
		if err = p.Close(); err != nil {
			h.t.Error(err)
		}
	})
	return p, []string{"--kubeconfig=" + through}
}

// wrong has a part of all that the scheduler writes go wrong, and of what it asks for to find out
// about that.
func wrong(p *faults.Proxy) {
	p.Set(faults.Rule{
		Kinds:   []faults.Kind{faults.Bind, faults.Evict, faults.Status, faults.Event},
		Percent: percent, Faults: faults.All,
	}, faults.Rule{
		Kinds:   []faults.Kind{faults.Get},
		Percent: percent, Faults: []faults.Fault{{Code: 500}, {Code: 429}, {Code: 0}},
	})
}

// TestBindsGoWrong is A24: forty gangs fill the cluster completely although binds and status writes
// fail, before or after they take effect. Then a quarter of them is deleted, and others start.
func TestBindsGoWrong(t *testing.T) {
	h := newHarness(t, noControllers)
	h.do(nodes("n", 20, "12cpu")) // 240 pods of 1 cpu
	p, args := h.newProxy()
	metrics, more := h.newScraper()
	h.start(append(args, more...)...)
	h.do(gang("small", 1, pods(1, "")))
	h.awaitStable(`small: Running Scheduled; 1 running`, "") // now everything in the scheduler runs
	before, err := h.goroutines(metrics)
	h.must(err)

	wrong(p)
	h.gangsOfAllSizes("first", 40)
	h.awaitStable(`
		first: 40 Running Scheduled; 240 running
		small: Running Scheduled; 1 running`, "")
	h.must(h.view.invariants())
	h.remove(jobLabel+"=first", 10)
	h.gangsOfAllSizes("second", 10)
	h.awaitStable(`
		first: 30 Running Scheduled; 180 running
		second: 10 Running Scheduled; 60 running
		small: Running Scheduled; 1 running`, "")
	h.must(h.view.invariants())
	h.must(p.BoundTwice())

	p.Set()
	h.eventually(func() error {
		after, err := h.goroutines(metrics)
		if err == nil && after > before {
			err = fmt.Errorf("%d goroutines, %d before anything went wrong", after, before)
		}
		return err
	})
}

// gangsOfAllSizes are gangs of four to eight pods, of each size as many: shown as one job.
func (h *harness) gangsOfAllSizes(job string, count int) {
	h.t.Helper()
	for i := range count {
		size := 4 + i%5
		h.do(gang(fmt.Sprintf("%s-%02d", job, i), int32(size), pods(size, "1cpu"), labelled(job)))
	}
}

// remove deletes the first gangs of a job with their pods.
func (h *harness) remove(selector string, count int) {
	h.t.Helper()
	groups, err := h.batch.SchedulingV1alpha1().PodGroups(namespace).List(h.ctx, metav1.ListOptions{LabelSelector: selector})
	h.must(err)
	now := metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}
	for _, g := range groups.Items[:count] {
		h.must(h.client.CoreV1().Pods(namespace).DeleteCollection(h.ctx, now, metav1.ListOptions{LabelSelector: groupLabel(g.Name)}))
		h.must(h.batch.SchedulingV1alpha1().PodGroups(namespace).Delete(h.ctx, g.Name, metav1.DeleteOptions{}))
	}
}

// TestEvictionsGoWrong is A24 with preemption: each of ten urgent gangs needs the resources of exactly
// one of the forty that run. The scheduler evicts ten whole gangs and no pod of the others, although requests fail.
func TestEvictionsGoWrong(t *testing.T) {
	h := newHarness(t, noControllers)
	h.do(nodes("n", 20, "8cpu"), priorityClass("low", 1), priorityClass("high", 100)) // 160 pods of 1 cpu
	p, args := h.newProxy()
	h.start(append(args, "--scheduler-conf="+h.file("policy.yaml", evictingPolicy))...)
	for i := range 40 {
		h.do(gang(fmt.Sprintf("low-%02d", i), 4, pods(4, "1cpu", priority("low"), annotated(annotation.TerminateAfter, "300ms")), labelled("low")))
	}
	h.awaitStable(`low: 40 Running Scheduled; 160 running`, "")

	wrong(p)
	for i := range 10 {
		h.do(gang(fmt.Sprintf("high-%02d", i), 4, pods(4, "1cpu", priority("high")), labelled("high")))
	}
	h.awaitStable(`
		high: 10 Running Scheduled; 40 running
		low: 10 Pending NotEnoughPods, 30 Running Scheduled; 120 running`, "")
	h.must(h.view.invariants())
	h.must(p.BoundTwice())
}

// TestWatchesCut cuts all watches every second, and has half of the new ones begin too far in the past,
// while gangs come and go. Nothing may be lost.
func TestWatchesCut(t *testing.T) {
	h := newHarness(t, noControllers)
	h.do(nodes("n", 10, "6cpu")) // 60 pods of 1 cpu
	p, args := h.newProxy()
	h.start(args...)
	p.Set(faults.Rule{Kinds: []faults.Kind{faults.Watch}, Percent: 50, Faults: []faults.Fault{{Code: 410}, {Code: 410, Done: true}}})
	cut := 0
	for turn := range 5 {
		job := fmt.Sprint("turn-", turn)
		h.gangsOfAllSizes(job, 5)
		h.pass(500 * time.Millisecond)
		cut += p.CutWatches()
		h.pass(500 * time.Millisecond)
		h.remove(jobLabel+"="+job, 5)
	}
	t.Logf("cut %d watches", cut)
	h.gangsOfAllSizes("last", 10)
	h.awaitStable(`last: 10 Running Scheduled; 60 running`, "")
	h.must(h.view.invariants())
	h.must(p.BoundTwice())
}

// TestOutage has the API server go away in the middle of binding a gang: so that connections are
// cut and refused, so that it does not answer, and so that it is killed and started again.
func TestOutage(t *testing.T) {
	o := noControllers
	o.Restartable = true
	h := newHarness(t, o)
	h.do(nodes("n", 5, "10cpu"))
	p, args := h.newProxy()
	h.start(args...)
	h.do(gang("a", 10, pods(10, "1cpu")))
	h.awaitStable(`a: Running Scheduled; 10 running`, "")

	down := make(chan error, 1)
	p.OnBind(func(n int) {
		if n == 5 {
			down <- p.Down()
		}
	})
	h.do(gang("b", 10, pods(10, "1cpu")))
	h.must(<-down)
	t.Logf("%d pods were bound when connections were cut", h.view.bound())
	h.do(gang("c", 20, pods(20, "1cpu"))) // one is created and the other deleted while the watch is down
	h.remove(jobLabel+"=a", 1)
	h.pass(*outage)
	h.must(p.Up())
	h.view.note()
	back := time.Now()
	h.awaitStable(`
		b: Running Scheduled; 10 running
		c: Running Scheduled; 20 running`, "")
	h.must(h.view.invariants())
	t.Logf("all was well %s after the API server was back", time.Since(back).Round(time.Second/10))

	frozen := make(chan error, 1)
	p.OnBind(func(n int) {
		if n == 5 {
			frozen <- syscall.Kill(h.cluster.PID(), syscall.SIGSTOP)
		}
	})
	h.do(gang("d", 10, pods(10, "1cpu")))
	h.must(<-frozen)
	h.pass(*outage)
	h.must(syscall.Kill(h.cluster.PID(), syscall.SIGCONT))
	h.view.note()
	h.awaitStable(`
		b: Running Scheduled; 10 running
		c: Running Scheduled; 20 running
		d: Running Scheduled; 10 running`, "")
	h.must(h.view.invariants())

	h.restartsIn(p, gang("e", 10, pods(10, "1cpu")))
	h.awaitStable(`
		b: Running Scheduled; 10 running
		c: Running Scheduled; 20 running
		d: Running Scheduled; 10 running
		e: Running Scheduled; 10 running`, "")
	h.must(h.view.invariants())
	h.must(p.BoundTwice())
}

// restartsIn has the API server and etcd killed while a gang is being bound, and started again.
func (h *harness) restartsIn(p *faults.Proxy, gang row) {
	h.t.Helper()
	killed := make(chan struct{})
	p.OnBind(func(n int) {
		if n == 1 { // the others are on their way
			h.cluster.Kill()
			close(killed)
		}
	})
	before := h.view.bound()
	h.do(gang)
	<-killed
	h.t.Logf("%d pods of the gang are known to be bound when the API server is killed", h.view.bound()-before)
	h.pass(*outage)
	h.restarted = true
	h.must(h.cluster.Restart(h.ctx))
	h.view.note()
}

// pass lets time pass, in which the scheduler must not end.
func (h *harness) pass(d time.Duration) {
	h.t.Helper()
	select {
	case <-time.After(d):
	case <-h.scheduler.Done():
		h.t.Fatal("the scheduler has ended")
	}
}

// goroutines is how many the scheduler has.
func (h *harness) goroutines(metrics scraper) (int, error) {
	all, err := metrics.read(h)
	if err != nil {
		return 0, err
	}
	return int(all["go_goroutines"].GetMetric()[0].GetGauge().GetValue()), nil
}

func groupLabel(name string) string {
	return labels.Set{v1alpha1.LabelPodGroup: name}.String()
}
