// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/cache/internal/apicall"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/groupapi"
)

// evictions are the Evicted conditions of PodGroups that this process has evicted pods of. What an earlier process has
// written is in the PodGroup only.
type evictions struct {
	mu    sync.Mutex
	known map[types.UID]*eviction
}

// eviction is the last eviction of a PodGroup.
//
// A gang does not run from the cycle on that decides to evict it, and runs again when a later cycle reports it as
// scheduled. The evictor may be faster than the report of the first of these cycles, so a report says that the gang
// runs again only if an earlier one has said that it does not run.
type eviction struct {
	podGroup   v1.ObjectReference
	condition  metav1.Condition
	notRunning bool // a report has said so
}

// PodGroupEvicted sets the condition Evicted of a PodGroup. The latest eviction counts.
func (w *Writers) PodGroupEvicted(podGroup v1.ObjectReference, condition metav1.Condition) {
	if shown, err := w.PodGroups.PodGroups(podGroup.Namespace).Get(podGroup.Name); err != nil || shown.UID != podGroup.UID {
		return // it was deleted meanwhile
	}
	last, ok := w.podGroups.get(podGroup.UID)
	w.evicted.mu.Lock()
	w.evicted.known[podGroup.UID] = &eviction{podGroup: podGroup, condition: condition, notRunning: ok && !last.value.Scheduled}
	w.evicted.mu.Unlock()
	w.podGroups.enqueue(podGroup.UID)
}

// MarkDisruption sets the condition of a PodGroup of another API whose pods are about to be evicted, if its API has such a
// condition, and returns when it is written.
func (w *Writers) MarkDisruption(ctx context.Context, podGroup v1.ObjectReference, message string) error {
	of := groupapi.OfKind(podGroup.GroupVersionKind())
	if of == nil {
		return nil
	}
	patch, err := of.Disruption(podGroup.UID, message, metav1.NewTime(w.Clock.Now().Truncate(time.Second)))
	if err != nil || patch == nil {
		return err
	}
	call, cancel := context.WithTimeout(ctx, apicall.Timeout)
	defer cancel()
	_, err = w.Dynamic.Resource(of.Resource).Namespace(podGroup.Namespace).
		Patch(call, podGroup.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// observe takes the report of a cycle into account.
func (e *evictions) observe(reports []api.PodGroupReport, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.known) == 0 {
		return
	}
	for i := range reports {
		known := e.known[reports[i].UID]
		switch {
		case known == nil:
		case !reports[i].Scheduled:
			known.notRunning = true
		case known.notRunning && known.condition.Status == metav1.ConditionTrue:
			known.condition = runsAgain(known.condition, now)
		}
	}
}

func (e *evictions) get(uid types.UID) *metav1.Condition {
	e.mu.Lock()
	defer e.mu.Unlock()
	if known := e.known[uid]; known != nil {
		condition := known.condition
		return &condition
	}
	return nil
}

func (e *evictions) forget(uid types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.known, uid)
}

// apply sets the condition Evicted in the next status of a PodGroup. A condition of an earlier process stays; it becomes
// False if the gang runs again.
func (e *evictions) apply(next *v1alpha1.PodGroupStatus, want *api.PodGroupReport, now time.Time) {
	shown := meta.FindStatusCondition(next.Conditions, v1alpha1.ConditionEvicted)
	switch condition := e.get(want.UID); {
	case condition != nil:
		setCondition(next, *condition)
	case shown != nil && shown.Status == metav1.ConditionTrue && want.Scheduled:
		*shown = runsAgain(*shown, now)
	}
}

// runsAgain returns the condition of a gang that runs again. Reason and message still describe the last eviction.
func runsAgain(c metav1.Condition, now time.Time) metav1.Condition {
	c.Status, c.LastTransitionTime = metav1.ConditionFalse, metav1.NewTime(now.Truncate(time.Second))
	return c
}

// Flush writes the Evicted conditions that are not written yet. It is called after Run, when no eviction can follow: the
// next process does not know of these evictions.
func (w *Writers) Flush(ctx context.Context) {
	call, cancel := context.WithTimeout(ctx, apicall.Timeout)
	defer cancel()
	for _, e := range w.evicted.list() {
		shown, err := w.PodGroups.PodGroups(e.podGroup.Namespace).Get(e.podGroup.Name)
		if err != nil || shown.UID != e.podGroup.UID || showsEviction(shown, &e.condition) {
			continue
		}
		if err := retry.RetryOnConflict(retry.DefaultRetry, func() error { return w.writeEviction(call, &e) }); err != nil {
			w.Log.V(2).Info("Status update failed", "resource", "podgroups/status", "object", klog.KRef(e.podGroup.Namespace, e.podGroup.Name), "err", err)
		}
	}
}

func (w *Writers) writeEviction(ctx context.Context, e *eviction) error {
	groups := w.Batch.SchedulingV1alpha1().PodGroups(e.podGroup.Namespace)
	shown, err := groups.Get(ctx, e.podGroup.Name, metav1.GetOptions{})
	if err != nil || shown.UID != e.podGroup.UID {
		return err
	}
	setCondition(&shown.Status, e.condition)
	_, err = groups.UpdateStatus(ctx, shown, metav1.UpdateOptions{})
	return err
}

func showsEviction(g *v1alpha1.PodGroup, want *metav1.Condition) bool {
	shown := meta.FindStatusCondition(g.Status.Conditions, want.Type)
	return shown != nil && shown.Message == want.Message
}

// list returns all evictions, by PodGroup.
func (e *evictions) list() []eviction {
	e.mu.Lock()
	defer e.mu.Unlock()
	var list []eviction
	for _, uid := range slices.Sorted(maps.Keys(e.known)) {
		list = append(list, *e.known[uid])
	}
	return list
}

func setCondition(s *v1alpha1.PodGroupStatus, c metav1.Condition) {
	if shown := meta.FindStatusCondition(s.Conditions, c.Type); shown != nil {
		*shown = c
		return
	}
	s.Conditions = append(s.Conditions, c)
}
