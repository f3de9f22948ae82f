// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/cache/bind"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/cache/evict"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest/fakecluster"
)

// TestResultsForALeftOutPod reports the results of operations while their pods are left out of the model, and
// shows the pods again.
func TestResultsForALeftOutPod(t *testing.T) {
	c, h := newCache(t)
	pods := []*v1.Pod{member("", "binds"), bound(member("", "leaves"), "n1"), member("", "backs-off")}
	h.queues.OnAdd(queue("default"), true)
	h.nodes.OnAdd(node("n1"), true)
	for _, pod := range pods {
		h.pods.OnAdd(pod, true)
	}
	c.Apply()
	want := state(c.Model())

	tasks, ledger := c.Model().Tasks(), c.Model().Ledger()
	ledger.Place(tasks["pod-binds"], api.Allocated, c.Model().Node("n1"))
	ledger.AssumePod(tasks["pod-binds"], time.Unix(0, 0))
	ledger.MarkEvicting(tasks["pod-leaves"])
	job := tasks["pod-backs-off"].Job.ID
	ledger.SetBackoff(job, "claim data: no space left")

	kind := podKind(c.options.SchedulerNames)
	kind.set = func(*Cache, *v1.Pod) { panic("cannot do that") }
	broken := handler(c, kind)
	for _, pod := range pods {
		broken.OnUpdate(pod, pod)
	}
	c.Apply()
	results{c}.BindFailed(&bind.Request{Name: "binds", UID: "pod-binds", Node: "n1"}, fakecluster.ErrInternal)
	results{c}.EvictionFailed(&evict.Victim{Name: "leaves", UID: "pod-leaves"}, false)
	results{c}.JobRequeued(job)
	c.Apply()
	if diff := cmp.Diff([]string{"n1 idle 8000"}, state(c.Model())); diff != "" {
		t.Errorf("model without the pods (-want +got):\n%s", diff)
	}

	for _, pod := range pods {
		h.pods.OnUpdate(pod, pod)
	}
	c.Apply()
	if diff := cmp.Diff(want, state(c.Model())); diff != "" {
		t.Errorf("model (-want +got):\n%s", diff)
	}
	if verdict := c.Model().Admissible(c.Model().Jobs()[job]); verdict != nil {
		t.Errorf("the job is not admissible: %s", verdict.Reason)
	}
}
