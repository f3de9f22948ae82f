// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/builtin"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/replay"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/trace"
)

// The workload of TestReplayOfACluster. Times of the trace have no counterpart in real time: the cluster goes from event to
// event, as the replay does.
const (
	replayedJobs  = 200
	fewestWaiting = 60 // jobs that do not start when they arrive; with fewer, the order of starts would mean little
	mostDifferent = replayedJobs / 100
)

// pool are nodes of 16 CPUs, and the jobs that run there.
type pool struct {
	name  string
	nodes int
	size  int     // of its gangs
	cpus  []int64 // that a pod requests
	often int     // percentage of the jobs
}

// pools are such that partly ended gangs let no other job start: the pods of a gang end at once in the replay, and one after
// the other on an API server. Jobs are single pods, or all jobs of a pool are alike, and together they fill it.
func pools() []pool {
	return []pool{
		{"a", 8, 1, []int64{1, 2, 4, 8}, 74},
		{"b", 6, 4, []int64{4}, 13},
		{"c", 6, 8, []int64{2}, 13},
	}
}

// replayPolicy is the built-in one without starvation reservations, which depend on real time.
func replayPolicy() string { return conf.DefaultYAML() + "\nstarvationAfter: 0\n" }

// TestReplayOfACluster is SI3: it replays a trace, and has the same jobs arrive and end on a cluster in the same order. After
// each event, the test waits for the starts that the replay has then, and notes those that it does not have. Each job must start
// after the same event and on the same nodes.
func TestReplayOfACluster(t *testing.T) {
	h := newHarness(t, noControllers)
	tr := workload()
	starts, ends := foretell(h, tr)

	for _, pool := range pools() {
		h.do(nodes(pool.name, pool.nodes, "16cpu", inPool(pool.name)))
	}
	h.do(queue("a", 2), queue("b", 1))
	h.start("--scheduler-conf=" + h.file("policy.yaml", replayPolicy()))
	p := &played{harness: h, trace: tr, starts: map[string]start{}, left: map[string]bool{}}
	var times []time.Duration
	arrivals := map[time.Duration][]int{}
	for i := range tr.Jobs {
		arrivals[tr.Jobs[i].Submit] = append(arrivals[tr.Jobs[i].Submit], i)
		times = append(times, tr.Jobs[i].Submit)
	}
	for at := range ends {
		times = append(times, at)
	}
	slices.Sort(times)
	for _, at := range slices.Compact(times) {
		p.step(at, ends[at], arrivals[at], starts)
	}

	differences := compareStarts(tr, starts, p.starts)
	t.Logf("%d of %d jobs have another start: %s", len(differences), len(tr.Jobs), strings.Join(differences, "; "))
	if len(differences) > mostDifferent {
		t.Errorf("more than %d jobs have another start", mostDifferent)
	}
	waited := 0
	for i := range tr.Jobs {
		if p.starts[tr.Jobs[i].ID].at > tr.Jobs[i].Submit {
			waited++
		}
	}
	if waited < fewestWaiting {
		t.Errorf("%d jobs had to wait, want at least %d", waited, fewestWaiting)
	}
}

// start is when and on which nodes a job started, sorted.
type start struct {
	at    time.Duration
	nodes string
}

func inPool(name string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels["pool"] = name }
}

// workload returns more jobs than the nodes can run at a time.
func workload() *trace.Trace {
	random := rand.New(rand.NewSource(1))
	tr := &trace.Trace{}
	at := time.Duration(0)
	for i := range replayedJobs {
		at += time.Duration(1+random.Intn(6)) * time.Second
		kind := random.Intn(100)
		list := pools()
		for kind >= list[0].often {
			kind -= list[0].often
			list = list[1:]
		}
		tr.Jobs = append(tr.Jobs, trace.Job{
			ID: fmt.Sprintf("job-%03d", i), Queue: []string{"a", "b"}[random.Intn(2)], Submit: at, Min: list[0].size, Replicas: list[0].size,
			Run:      time.Duration(40+random.Intn(360))*time.Second + time.Duration(i+1)*time.Millisecond, // no two ends at the same time
			Request:  corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(list[0].cpus[random.Intn(len(list[0].cpus))], resource.DecimalSI)},
			Selector: map[string][]string{"pool": {list[0].name}},
		})
	}
	return tr
}

// foretell replays a trace, and returns the starts by job and the jobs that end, by time.
func foretell(h *harness, tr *trace.Trace) (starts map[string]start, ends map[time.Duration][]string) {
	h.t.Helper()
	registry, err := builtin.NewRegistry()
	h.must(err)
	config, _, err := conf.Parse("the policy of the test", []byte(replayPolicy()), registry.Catalog())
	h.must(err)
	in := replay.Input{Trace: tr, Config: config, Registry: registry}
	for _, pool := range pools() {
		for i := range pool.nodes {
			in.Nodes = append(in.Nodes, newNode(fmt.Sprint(pool.name, i+1), "16cpu", inPool(pool.name)))
		}
	}
	for name, weight := range map[string]int32{"a": 2, "b": 1} {
		in.Queues = append(in.Queues, &v1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.QueueSpec{Weight: weight}})
	}
	bound := map[string][]string{}
	result, err := replay.Run(h.ctx, in, replay.Options{DefaultQueue: "default", Bound: func(b replay.Bind) {
		bound[b.Job] = append(bound[b.Job], b.Node)
	}})
	h.must(err)
	starts, ends = map[string]start{}, map[time.Duration][]string{}
	for i := range result.Jobs {
		j := &result.Jobs[i]
		starts[j.ID] = start{j.Start, sorted(bound[j.ID])}
		ends[j.End] = append(ends[j.End], j.ID)
	}
	return starts, ends
}

func sorted(nodes []string) string {
	slices.Sort(nodes)
	return strings.Join(nodes, " ")
}

// played is a trace that is played on a cluster.
type played struct {
	*harness
	trace  *trace.Trace
	starts map[string]start
	left   map[string]bool // jobs that have ended
}

// step makes the events of one time, and waits for the starts that are foretold then.
func (p *played) step(at time.Duration, ends []string, arrivals []int, foretold map[string]start) {
	p.t.Helper()
	for _, job := range ends {
		p.remove(job)
	}
	for _, i := range arrivals {
		p.submit(&p.trace.Jobs[i])
	}
	deadline := time.NewTimer(waitTimeout / 3)
	defer deadline.Stop()
	for {
		p.look(at)
		missing := false
		for job, s := range foretold {
			if _, started := p.starts[job]; s.at == at && !started {
				missing = true
			}
		}
		if !missing {
			return
		}
		select {
		case <-p.view.changed:
		case <-deadline.C:
			return // the comparison will say so
		}
	}
}

// submit creates the pods of a job and then its group, so that it is complete at once.
func (p *played) submit(j *trace.Job) {
	p.t.Helper()
	for i := range j.Replicas {
		pod := newPod(fmt.Sprintf("%s-%d", j.ID, i), "")
		pod.Labels[v1alpha1.LabelPodGroup] = j.ID
		pod.Spec.Containers[0].Resources.Requests, pod.Spec.Affinity = j.Request, trace.Affinity(j.Selector)
		_, err := p.client.CoreV1().Pods(namespace).Create(p.ctx, pod, metav1.CreateOptions{})
		p.must(err)
	}
	p.apply(&v1alpha1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Name: j.ID, Namespace: namespace}, Spec: v1alpha1.PodGroupSpec{MinMember: int32(j.Min), Queue: j.Queue},
	}, v1alpha1.SchemeGroupVersion.WithKind("PodGroup"))
}

// remove deletes a job at once.
func (p *played) remove(job string) {
	p.t.Helper()
	p.left[job] = true
	now := metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}
	for i := range p.job(job).Replicas {
		p.must(p.client.CoreV1().Pods(namespace).Delete(p.ctx, fmt.Sprintf("%s-%d", job, i), now))
	}
	p.must(p.batch.SchedulingV1alpha1().PodGroups(namespace).Delete(p.ctx, job, now))
}

func (p *played) job(id string) *trace.Job {
	return &p.trace.Jobs[slices.IndexFunc(p.trace.Jobs, func(j trace.Job) bool { return j.ID == id })]
}

// look notes which jobs have started.
func (p *played) look(at time.Duration) {
	bound := map[string][]string{}
	list, _ := p.view.pods.List(labels.Everything())
	for _, pod := range list {
		if job := pod.Labels[v1alpha1.LabelPodGroup]; pod.Spec.NodeName != "" && !p.left[job] {
			bound[job] = append(bound[job], pod.Spec.NodeName)
		}
		if pod.Status.Phase == corev1.PodFailed {
			p.t.Errorf("pod %s has failed: %s", pod.Name, pod.Status.Reason)
		}
	}
	for job, nodes := range bound {
		if _, known := p.starts[job]; !known && len(nodes) == p.job(job).Replicas {
			p.starts[job] = start{at, sorted(nodes)}
		}
	}
}

// compareStarts returns a text for each job that starts elsewhere or at another time than foretold.
func compareStarts(tr *trace.Trace, foretold, starts map[string]start) []string {
	var differences []string
	for i := range tr.Jobs {
		job := tr.Jobs[i].ID
		switch got, started := starts[job]; {
		case !started:
			differences = append(differences, fmt.Sprintf("%s does not start, foretold at %v", job, foretold[job].at))
		case got != foretold[job]:
			differences = append(differences, fmt.Sprintf("%s starts at %v on %s, foretold at %v on %s", job, got.at, got.nodes, foretold[job].at, foretold[job].nodes))
		}
	}
	for _, job := range slices.Sorted(maps.Keys(starts)) {
		if _, known := foretold[job]; !known {
			differences = append(differences, job+" starts, and is not foretold")
		}
	}
	return differences
}
