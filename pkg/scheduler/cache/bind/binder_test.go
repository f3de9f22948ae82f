// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package bind

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/metrics"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest/fakecluster"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// results is a handler and an event sink that records all calls.
type results struct {
	mu    sync.Mutex
	lines []string
	bound map[v1.ObjectReference]int // pods bound, by PodGroup
}

func (r *results) BindFailed(b *Request, _ error) { r.add("BindFailed " + b.Name) }
func (r *results) PodVanished(b *Request)         { r.add("PodVanished " + b.Name) }
func (r *results) JobRequeued(job api.JobID)      { r.add("JobRequeued " + string(job)) }

func (r *results) JobBackoff(job api.JobID, _ []*Request, reason string) {
	r.add("JobBackoff " + string(job) + ": " + reason)
}

func (r *results) add(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, line)
}

func (r *results) PodBound(_ v1.ObjectReference, podGroup *v1.ObjectReference, _ string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bound[*podGroup]++
}

func (r *results) PrepareFailed(v1.ObjectReference, *v1.ObjectReference, error) {}

type noMetrics struct{}

func (noMetrics) Bind(metrics.BindResult, time.Duration)  {}
func (noMetrics) PodBound(time.Duration)                  {}
func (noMetrics) PodGroupScheduled(string, time.Duration) {}

// TestResultOfBind sends one bind and compares what the binder reports, whether it counts the pod as
// bound by this scheduler, and whether the back-off of the pod is dropped in the end.
func TestResultOfBind(t *testing.T) {
	type result struct {
		Handler   []string
		Bound     int
		Forgotten bool
	}
	type cluster = fakecluster.APIServer
	tests := map[string]struct {
		given func(*cluster)
		want  result
	}{
		"bound": {func(*cluster) {}, result{Bound: 1, Forgotten: true}},
		"bound, the response was lost": {
			given: func(c *cluster) { c.Faults.Bind["p"] = []fakecluster.Fault{{Err: fakecluster.ErrNetwork, Done: true}} },
			want:  result{Bound: 1, Forgotten: true},
		},
		"bound by another client": {
			given: func(c *cluster) { c.Update("p", func(p *v1.Pod) { p.Spec.NodeName = "n2" }) },
			want:  result{Forgotten: true},
		},
		"refused": {
			given: func(c *cluster) { c.Faults.Bind["p"] = []fakecluster.Fault{{Err: fakecluster.ErrDenied}} },
			want:  result{Handler: []string{"BindFailed p"}},
		},
		"deleted": {
			given: func(c *cluster) { c.DeletePod("p") },
			want:  result{Handler: []string{"PodVanished p"}, Forgotten: true},
		},
		"deleted, its name is used again": {
			given: func(c *cluster) { c.Update("p", func(p *v1.Pod) { p.UID = "second" }) },
			want:  result{Handler: []string{"PodVanished p"}, Forgotten: true},
		},
		"bound, but three reads fail": {
			given: func(c *cluster) {
				c.Faults.Bind["p"] = []fakecluster.Fault{{Err: fakecluster.ErrNetwork, Done: true}}
				c.Faults.Get["p"] = 3
			},
			want: result{Bound: 1, Forgotten: true},
		},
		"deleted, and three reads fail": {
			given: func(c *cluster) {
				c.Faults.Get["p"] = 3
				c.DeletePod("p")
			},
			want: result{Handler: []string{"PodVanished p"}, Forgotten: true},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := fakecluster.New(t, fakecluster.Member("g", "p"))
				test.given(c)
				handler := &results{bound: map[v1.ObjectReference]int{}}
				b := New(Options{
					Kube: c.Kube, Workers: 1, Handler: handler, Events: handler, Metrics: noMetrics{},
					Clock: clock.RealClock{}, Log: testr.New(t),
				})
				group := v1.ObjectReference{Kind: "PodGroup", Namespace: "default", Name: "g"}
				u := &Unit{PodGroup: &group}
				u.Add(&Request{Namespace: "default", Name: "p", UID: "pod-p", Node: "n1"})
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() {
					b.Run(ctx)
					close(done)
				}()
				b.Enqueue(u)
				time.Sleep(time.Minute)
				synctest.Wait()
				got := result{Handler: handler.lines, Bound: handler.bound[group], Forgotten: b.backoff.NumRequeues("pod-p") == 0}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				b.Forget("pod-p")
				if b.backoff.NumRequeues("pod-p") != 0 {
					t.Error("Forget keeps the back-off")
				}
				stop()
				<-done
			})
		})
	}
}
