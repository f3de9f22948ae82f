// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package evict

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/metrics"
)

// reports records what the owners of victims and of the preemptor can see.
type reports struct{ lines []string }

func (r *reports) note(format string, args ...any) {
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

func (*reports) PodEvicted(v1.ObjectReference, api.EvictionCause, string) {}

func (r *reports) PodsPreempted(g v1.ObjectReference, pods int, action, victims string) {
	r.note("%s preempted %d pods by %s: %s", g.Name, pods, action, victims)
}

func (r *reports) PodGroupEvicted(g v1.ObjectReference, c metav1.Condition) {
	r.note("%s %s=%s %s: %s", g.Name, c.Type, c.Status, c.Reason, c.Message)
}

func (*reports) MarkDisruption(context.Context, v1.ObjectReference, string) error { return nil }

func (r *reports) JobEnded(job v1.ObjectReference, preemptor, reason string) {
	r.note("%s %s/%s ends for %s: %s", job.Kind, job.Namespace, job.Name, preemptor, reason)
}

func (r *reports) EvictionRefused(g v1.ObjectReference, err error) {
	r.note("%s stays: %v", g.Name, err)
}

func (*reports) Eviction(string, metrics.EvictionResult) {}

// counted records what the metrics count.
type counted struct{ *reports }

func (c counted) PodGroupEvicted(queue, cause string, gang bool) {
	c.note("counted queue=%s cause=%s gang=%t", queue, cause, gang)
}

// TestReports executes plans for ns/g of queue q: two pods of PodGroup a with the cause Reclaimed, which Job train
// controls, then one of b without a PodGroup.
func TestReports(t *testing.T) {
	budget := apierrors.NewTooManyRequests("budget", 0)
	budget.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause}}
	refuse := func(name string, inDryRun bool) func(string, bool, int) error {
		return func(pod string, dryRun bool, _ int) error {
			if pod == name && dryRun == inDryRun {
				return budget
			}
			return nil
		}
	}
	const by = "evicted by reclaim at 2000-01-01T00:00:00Z for ns/g (queue q, priority 7)"
	for name, test := range map[string]struct {
		missing int32              // of the gang after the plan
		job     func(*batchv1.Job) // changes Job train, whose backoffLimit is 2; nil: there is no such Job
		respond func(string, bool, int) error
		want    []string
	}{
		"the Job of a gang counts its evictions as failures": {
			missing: 2, job: func(job *batchv1.Job) { job.Status.Failed = 1 },
			want: []string{
				"counted queue=v cause=reclaimed gang=true",
				"a Evicted=True Reclaimed: the gang (2 pods) was " + by,
				"Job ns/train ends for ns/g: evicted pods count as failures, these would be 2 after 1 earlier, and its backoffLimit is 2",
				"g preempted 3 pods by reclaim: 2 of ns/a, 1 of ns/b",
			},
		},
		"the Job of a gang creates other pods": {
			missing: 2, job: func(job *batchv1.Job) {},
			want: []string{
				"counted queue=v cause=reclaimed gang=true",
				"a Evicted=True Reclaimed: the gang (2 pods) was " + by,
				"g preempted 3 pods by reclaim: 2 of ns/a, 1 of ns/b",
			},
		},
		"no pod of a Job that would fail is evicted": {
			missing: 2, job: func(job *batchv1.Job) { job.Status.Failed = 1 }, respond: refuse("a-0", false),
		},
		"a gang is evicted": {
			missing: 2,
			want: []string{
				"counted queue=v cause=reclaimed gang=true",
				"a Evicted=True Reclaimed: the gang (2 pods) was " + by,
				"g preempted 3 pods by reclaim: 2 of ns/a, 1 of ns/b",
			},
		},
		"surplus pods are evicted": {
			want: []string{
				"counted queue=v cause=reclaimed gang=false",
				"a Evicted=False Reclaimed: 2 surplus pods were " + by + "; the gang continues to run",
				"g preempted 3 pods by reclaim: 2 of ns/a, 1 of ns/b",
			},
		},
		"the dry run is refused":        {missing: 2, respond: refuse("b-0", true)},
		"the first eviction is refused": {missing: 2, respond: refuse("a-0", false)},
		"the second eviction is refused, and the gang lacks a pod": {
			missing: 2, respond: refuse("a-1", false),
			want: []string{
				"counted queue=v cause=reclaimed gang=true",
				"a Evicted=True Reclaimed: the gang (1 pod) was " + by,
			},
		},
		"the second eviction is refused, and the gang still has enough pods": {
			missing: 1, respond: refuse("a-1", false),
			want: []string{
				"counted queue=v cause=reclaimed gang=false",
				"a Evicted=False Reclaimed: 1 surplus pod was " + by + "; the gang continues to run",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if test.respond == nil {
					test.respond = func(string, bool, int) error { return nil }
				}
				h, got, status := newHarness(t, test.respond), &reports{}, &reports{}
				h.Events, h.Status, h.Metrics = got, status, counted{got}
				if test.job != nil {
					job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "train"}, Spec: batchv1.JobSpec{BackoffLimit: ptr.To[int32](2)}}
					test.job(job)
					if err := h.kube.Tracker().Add(job); err != nil {
						t.Fatal(err)
					}
				}
				ctx, stop := context.WithCancel(t.Context())
				var running sync.WaitGroup
				running.Go(func() { h.Run(ctx) })
				h.Enqueue(reportedPlan(test.missing))
				time.Sleep(time.Minute)
				stop()
				running.Wait()
				if diff := cmp.Diff(test.want, got.lines); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				conditions := slices.DeleteFunc(test.want, func(line string) bool { return !strings.Contains(line, "Evicted=") })
				if diff := cmp.Diff(conditions, status.lines, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("conditions for the status (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func reportedPlan(missing int32) *Plan {
	p := threeVictims()
	p.Queue, p.Priority = "q", 7
	p.PodGroup = &v1.ObjectReference{Namespace: "ns", Name: "g"}
	a := p.Jobs["a"]
	a.PodGroup = &v1.ObjectReference{Namespace: "ns", Name: "a"}
	a.Queue, a.Missing, a.Frees = "v", missing, "2 cpu"
	for _, v := range p.Victims {
		v.Cause = api.Reclaimed
		if v.Job == "a" {
			v.BatchJob = "train"
		}
	}
	return p
}

// TestEvictionsAreLogged: an administrator who reads the log at the default verbosity knows what was evicted, for which
// job, and what that frees.
func TestEvictionsAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, func(string, bool, int) error { return nil })
		var access sync.Mutex // jobs are evicted in parallel
		var got []string
		h.Log = funcr.New(func(_, args string) {
			access.Lock()
			defer access.Unlock()
			got = append(got, args)
		}, funcr.Options{})
		h.execute(t.Context(), reportedPlan(2))
		slices.Sort(got)
		const by = `"action"="reclaim" "preemptor"="ns/g" "preemptorQueue"={"name"="q"} "preemptorPriority"=7`
		want := []string{
			`"level"=0 "msg"="Pods evicted" "job"={"name"="a" "namespace"="ns"} "queue"={"name"="v"} "priority"=0 "pods"=2 "gang"=true "frees"="2 cpu" ` + by,
			`"level"=0 "msg"="Pods evicted" "job"={"name"="b" "namespace"="ns"} "queue"={"name"=""} "priority"=0 "pods"=1 "gang"=false "frees"="" ` + by,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestVictimJobs: the preemptor in namespace ns learns how many pods of which jobs of its namespace are evicted.
func TestVictimJobs(t *testing.T) {
	for name, test := range map[string]struct {
		jobs []string // of one victim each
		want string
	}{
		"of the same namespace":          {[]string{"ns/a", "ns/a", "ns/b"}, "2 of ns/a, 1 of ns/b"},
		"of another namespace":           {[]string{"secret/a", "secret/a"}, "all in other namespaces"},
		"of both":                        {[]string{"ns/a", "secret/a", "secret/b"}, "1 of ns/a and 2 more"},
		"of many jobs of that namespace": {[]string{"ns/a", "ns/b", "ns/c", "ns/d", "ns/d"}, "1 of ns/a, 1 of ns/b, 1 of ns/c and 2 more"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &Plan{PodGroup: &v1.ObjectReference{Namespace: "ns"}, Jobs: map[string]*Job{}}
			for _, key := range test.jobs {
				namespace, name, _ := strings.Cut(key, "/")
				p.Jobs[key] = &Job{Namespace: namespace, Name: name}
				p.Victims = append(p.Victims, &Victim{Job: key})
			}
			if got := p.victimJobs(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
