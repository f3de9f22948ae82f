// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

const planning = `
actions: "probe, allocate"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: drf}, {name: proportion}, {name: predicates}, {name: nodeorder}]
starvationAfter: 0s
reservations: {depth: -1, margin: 0s}
`

// TestNothingChangesWhileGangsWait is TI17: three gangs have a planned start, and a job waits because it would delay them. While
// nothing changes, no session runs, and nothing is written, and sessions for other pods write nothing about them. When a job
// has exceeded its expected run time, a session runs at each of its corrections.
func TestNothingChangesWhileGangsWait(t *testing.T) {
	for name, tc := range map[string]struct {
		expected *int32 // run time of the job that runs
		others   bool   // a pod that cannot start is created each minute
		sessions int32  // in ten minutes
		writes   map[string]int
	}{
		"limits alone":         {nil, false, 0, map[string]int{}},
		"an expected run time": {ptr.To[int32](1800), false, 0, map[string]int{}},
		"other pods arrive":    {nil, true, 10, map[string]int{}},
		"an expected run time, corrected after 10 and 11 minutes": {
			ptr.To[int32](600), false, 2, map[string]int{"w-0": 2, "w-1": 2, "w-2": 2, "long": 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var sessions atomic.Int32
			run(t, planning, func(context.Context, *framework.Session) error {
				sessions.Add(1)
				return nil
			}, func(h *harness) {
				h.submit("old", 3, 7200, tc.expected)
				time.Sleep(5 * time.Second)
				h.start("old")
				for i := range 3 {
					h.submit(fmt.Sprintf("w-%d", i), 4, 600, nil)
				}
				time.Sleep(5 * time.Second)
				h.submit("long", 1, 9000, nil)
				time.Sleep(3 * time.Minute)
				for i := range 3 {
					if g := h.group(fmt.Sprintf("w-%d", i)); g.Status.LatestStartTime == nil {
						t.Fatalf("PodGroup %s has no planned start: %+v", g.Name, g.Status)
					}
				}
				h.kube.ClearActions()
				h.batch.ClearActions()
				before := sessions.Load()
				for i := range 10 {
					if tc.others {
						other := pod(fmt.Sprint("other-", i))
						other.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "some"}}
						h.create(other)
					}
					time.Sleep(time.Minute)
				}
				if got := sessions.Load() - before; got != tc.sessions {
					t.Errorf("%d sessions, want %d", got, tc.sessions)
				}
				writes := map[string]int{}
				for _, a := range append(h.kube.Actions(), h.batch.Actions()...) {
					if p, ok := a.(clienttesting.PatchAction); ok && !strings.HasPrefix(p.GetName(), "other") {
						writes[p.GetName()]++
					}
				}
				if diff := cmp.Diff(tc.writes, writes); diff != "" {
					t.Errorf("writes (-want +got):\n%s", diff)
				}
			}, node("n"))
		})
	}
}

// submit creates a PodGroup of one pod.
func (h *harness) submit(name string, cpus int64, limit int32, expected *int32) {
	h.t.Helper()
	g := &v1alpha1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("group-" + name), CreationTimestamp: metav1.Now()},
		Spec:       v1alpha1.PodGroupSpec{MinMember: 1, MaximumExecutionTimeSeconds: &limit, ExpectedExecutionTimeSeconds: expected},
	}
	if err := h.batch.Tracker().Add(g); err != nil {
		h.t.Fatal(err)
	}
	p := pod(name)
	p.CreationTimestamp = metav1.Now()
	p.Labels = map[string]string{v1alpha1.LabelPodGroup: name}
	p.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = *resource.NewQuantity(cpus, resource.DecimalSI)
	h.create(p)
}

// start lets a pod run, as its kubelet does.
func (h *harness) start(name string) {
	h.t.Helper()
	p, err := h.kube.CoreV1().Pods("ns").Get(h.ctx, name, metav1.GetOptions{})
	if err != nil {
		h.t.Fatal(err)
	}
	p.Status.Phase, p.Status.StartTime = v1.PodRunning, ptr.To(metav1.Now())
	if _, err = h.kube.CoreV1().Pods("ns").UpdateStatus(h.ctx, p, metav1.UpdateOptions{}); err != nil {
		h.t.Fatal(err)
	}
}

func (h *harness) group(name string) *v1alpha1.PodGroup {
	h.t.Helper()
	g, err := h.batch.SchedulingV1alpha1().PodGroups("ns").Get(h.ctx, name, metav1.GetOptions{})
	if err != nil {
		h.t.Fatal(err)
	}
	return g
}
