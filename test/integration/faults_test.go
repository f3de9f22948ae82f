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
func (w *world) newProxy() (*faults.Proxy, []string) {
	w.t.Helper()
	p, err := faults.Start(faults.Options{Target: w.cluster.RESTConfig(), Seed: *seed})
	w.must(err)
	direct, through := filepath.Join(w.dir, "direct.kubeconfig"), filepath.Join(w.dir, "through.kubeconfig")
	w.must(w.cluster.ServiceAccountKubeconfig(w.ctx, scheduler.Namespace, scheduler.Account, direct))
	w.must(p.Kubeconfig(direct, through))
	w.t.Cleanup(func() {
		w.t.Logf("with -seed %d this went wrong:\n%s", *seed, p.Faults())
		if err = p.Close(); err != nil {
			w.t.Error(err)
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

// TestBindsGoWrong is A24: forty gangs have to fill the cluster to the last slot although binds and
// status writes go wrong, before or after they take effect. Then a quarter of them makes room for
// others.
func TestBindsGoWrong(t *testing.T) {
	w := newWorld(t, noControllers)
	w.do(nodes("n", 20, "12cpu")) // 240 slots
	p, args := w.newProxy()
	metrics, more := w.newScraper()
	w.start(append(args, more...)...)
	w.do(gang("small", 1, pods(1, "")))
	w.settle(`small: Running Scheduled; 1 running`, "") // now everything in the scheduler runs
	before, err := w.goroutines(metrics)
	w.must(err)

	wrong(p)
	w.gangsOfAllSizes("first", 40)
	w.settle(`
		first: 40 Running Scheduled; 240 running
		small: Running Scheduled; 1 running`, "")
	w.must(w.view.invariants())
	w.remove(jobLabel+"=first", 10)
	w.gangsOfAllSizes("second", 10)
	w.settle(`
		first: 30 Running Scheduled; 180 running
		second: 10 Running Scheduled; 60 running
		small: Running Scheduled; 1 running`, "")
	w.must(w.view.invariants())
	w.must(p.BoundTwice())

	p.Set()
	w.eventually(func() error {
		after, err := w.goroutines(metrics)
		if err == nil && after > before {
			err = fmt.Errorf("%d goroutines, %d before anything went wrong", after, before)
		}
		return err
	})
}

// gangsOfAllSizes are gangs of four to eight pods, of each size as many: shown as one job.
func (w *world) gangsOfAllSizes(job string, count int) {
	w.t.Helper()
	for i := range count {
		size := 4 + i%5
		w.do(gang(fmt.Sprintf("%s-%02d", job, i), int32(size), pods(size, "1cpu"), labelled(job)))
	}
}

// remove deletes the first gangs of a job with their pods.
func (w *world) remove(selector string, count int) {
	w.t.Helper()
	groups, err := w.batch.SchedulingV1alpha1().PodGroups(namespace).List(w.ctx, metav1.ListOptions{LabelSelector: selector})
	w.must(err)
	now := metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}
	for _, g := range groups.Items[:count] {
		w.must(w.client.CoreV1().Pods(namespace).DeleteCollection(w.ctx, now, metav1.ListOptions{LabelSelector: groupLabel(g.Name)}))
		w.must(w.batch.SchedulingV1alpha1().PodGroups(namespace).Delete(w.ctx, g.Name, metav1.DeleteOptions{}))
	}
}

// TestEvictionsGoWrong is A24 with preemption: each of ten urgent gangs needs the room of exactly one
// of the forty that run. So ten have to go, whole, and the others stay, whatever goes wrong.
func TestEvictionsGoWrong(t *testing.T) {
	w := newWorld(t, noControllers)
	w.do(nodes("n", 20, "8cpu"), priorityClass("low", 1), priorityClass("high", 100)) // 160 slots
	p, args := w.newProxy()
	w.start(append(args, "--scheduler-conf="+w.file("policy.yaml", evictingPolicy))...)
	for i := range 40 {
		w.do(gang(fmt.Sprintf("low-%02d", i), 4, pods(4, "1cpu", priority("low"), annotated(annotation.TerminateAfter, "300ms")), labelled("low")))
	}
	w.settle(`low: 40 Running Scheduled; 160 running`, "")

	wrong(p)
	for i := range 10 {
		w.do(gang(fmt.Sprintf("high-%02d", i), 4, pods(4, "1cpu", priority("high")), labelled("high")))
	}
	w.settle(`
		high: 10 Running Scheduled; 40 running
		low: 10 Pending NotEnoughPods, 30 Running Scheduled; 120 running`, "")
	w.must(w.view.invariants())
	w.must(p.BoundTwice())
}

// TestWatchesCut cuts all watches every second, and has half of the new ones begin too far in the past,
// while gangs come and go. Nothing may be lost.
func TestWatchesCut(t *testing.T) {
	w := newWorld(t, noControllers)
	w.do(nodes("n", 10, "6cpu")) // 60 slots
	p, args := w.newProxy()
	w.start(args...)
	p.Set(faults.Rule{Kinds: []faults.Kind{faults.Watch}, Percent: 50, Faults: []faults.Fault{{Code: 410}, {Code: 410, Done: true}}})
	cut := 0
	for turn := range 5 {
		job := fmt.Sprint("turn-", turn)
		w.gangsOfAllSizes(job, 5)
		w.pass(500 * time.Millisecond)
		cut += p.CutWatches()
		w.pass(500 * time.Millisecond)
		w.remove(jobLabel+"="+job, 5)
	}
	t.Logf("cut %d watches", cut)
	w.gangsOfAllSizes("last", 10)
	w.settle(`last: 10 Running Scheduled; 60 running`, "")
	w.must(w.view.invariants())
	w.must(p.BoundTwice())
}

// TestOutage has the API server go away in the middle of binding a gang: so that connections are
// cut and refused, so that it does not answer, and so that it is killed and started again.
func TestOutage(t *testing.T) {
	o := noControllers
	o.Restartable = true
	w := newWorld(t, o)
	w.do(nodes("n", 5, "10cpu"))
	p, args := w.newProxy()
	w.start(args...)
	w.do(gang("a", 10, pods(10, "1cpu")))
	w.settle(`a: Running Scheduled; 10 running`, "")

	down := make(chan error, 1)
	p.OnBind(func(n int) {
		if n == 5 {
			down <- p.Down()
		}
	})
	w.do(gang("b", 10, pods(10, "1cpu")))
	w.must(<-down)
	t.Logf("%d pods were bound when connections were cut", w.view.bound())
	w.do(gang("c", 20, pods(20, "1cpu"))) // comes, and the other goes, while nobody can see it
	w.remove(jobLabel+"=a", 1)
	w.pass(*outage)
	w.must(p.Up())
	w.view.note()
	back := time.Now()
	w.settle(`
		b: Running Scheduled; 10 running
		c: Running Scheduled; 20 running`, "")
	w.must(w.view.invariants())
	t.Logf("all was well %s after the API server was back", time.Since(back).Round(time.Second/10))

	frozen := make(chan error, 1)
	p.OnBind(func(n int) {
		if n == 5 {
			frozen <- syscall.Kill(w.cluster.PID(), syscall.SIGSTOP)
		}
	})
	w.do(gang("d", 10, pods(10, "1cpu")))
	w.must(<-frozen)
	w.pass(*outage)
	w.must(syscall.Kill(w.cluster.PID(), syscall.SIGCONT))
	w.view.note()
	w.settle(`
		b: Running Scheduled; 10 running
		c: Running Scheduled; 20 running
		d: Running Scheduled; 10 running`, "")
	w.must(w.view.invariants())

	w.restartsIn(p, gang("e", 10, pods(10, "1cpu")))
	w.settle(`
		b: Running Scheduled; 10 running
		c: Running Scheduled; 20 running
		d: Running Scheduled; 10 running
		e: Running Scheduled; 10 running`, "")
	w.must(w.view.invariants())
	w.must(p.BoundTwice())
}

// restartsIn has the API server and etcd killed while a gang is being bound, and started again.
func (w *world) restartsIn(p *faults.Proxy, gang row) {
	w.t.Helper()
	killed := make(chan struct{})
	p.OnBind(func(n int) {
		if n == 1 { // the others are on their way
			w.cluster.Kill()
			close(killed)
		}
	})
	before := w.view.bound()
	w.do(gang)
	<-killed
	w.t.Logf("%d pods of the gang are known to be bound when the API server is killed", w.view.bound()-before)
	w.pass(*outage)
	w.restarted = true
	w.must(w.cluster.Restart(w.ctx))
	w.view.note()
}

// pass lets time pass, in which the scheduler must not end.
func (w *world) pass(d time.Duration) {
	w.t.Helper()
	select {
	case <-time.After(d):
	case <-w.scheduler.Done():
		w.t.Fatal("the scheduler has ended")
	}
}

// goroutines is how many the scheduler has.
func (w *world) goroutines(metrics scraper) (int, error) {
	all, err := metrics.read(w)
	if err != nil {
		return 0, err
	}
	return int(all["go_goroutines"].GetMetric()[0].GetGauge().GetValue()), nil
}

func groupLabel(name string) string {
	return labels.Set{v1alpha1.LabelPodGroup: name}.String()
}
