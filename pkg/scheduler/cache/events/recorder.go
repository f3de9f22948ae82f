// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package events records Kubernetes events about PodGroups and pods.
//
// An event costs the API server about as much as a bind, and no component depends on one. So the
// recorder writes them one at a time, with a pause after each, yields to binds, and drops what
// exceeds its queues. Three rules keep the number small:
//
//   - An event with the same key as one of the last minute is dropped.
//   - Pods of a PodGroup that are bound at about the same time are one event on the PodGroup.
//   - Events on pods come last; the pods themselves show what happened.
package events

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/cache/internal/apicall"
)

const (
	// writeInterval is the pause after each event, and maxYield bounds how long one event yields to
	// binds.
	writeInterval = 20 * time.Millisecond
	maxYield      = time.Second

	// maxPodGroupEvents and maxPodEvents bound the queues; further events are dropped.
	maxPodGroupEvents = 1024
	maxPodEvents      = 256

	// dedupeWindow is how long events with the same key are dropped after the first.
	dedupeWindow = time.Minute
	// maxNote is the longest note that the API server accepts.
	maxNote = 1024
)

// Options are the parts of a Recorder. All are required.
type Options struct {
	SchedulerName string
	Kube          kubernetes.Interface
	// Yield returns when no bind is queued or being sent, or after the given time.
	Yield func(context.Context, time.Duration)
	Clock clock.WithTicker
	Log   logr.Logger
}

// Recorder writes events in the background; see the package comment. Its methods other than Run
// return at once and may be called from any goroutine.
type Recorder struct {
	Options
	instance string

	mu        sync.Mutex
	podGroups []event
	pods      []event
	bound     map[v1.ObjectReference]int // pods bound since the last event about it, by PodGroup
	recent    map[string]time.Time       // when an event with this key was recorded

	wake chan struct{}
}

// event is an event to write.
type event struct {
	regarding v1.ObjectReference
	kind      string // v1.EventTypeNormal or v1.EventTypeWarning
	reason    string
	action    string
	note      string
	key       string // events with the same key say the same; empty for none
}

// New returns a recorder. It writes nothing before Run.
func New(o Options) *Recorder {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	instance := o.SchedulerName + "-" + host
	o.Log = o.Log.WithName("events")
	return &Recorder{
		Options:  o,
		instance: instance[:min(len(instance), 128)],
		bound:    map[v1.ObjectReference]int{}, recent: map[string]time.Time{},
		wake: make(chan struct{}, 1),
	}
}

// addPodGroup queues an event about a PodGroup, or one about a pod that is as important.
func (r *Recorder) addPodGroup(e event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.key != "" {
		now := r.Clock.Now()
		if at, ok := r.recent[e.key]; ok && now.Sub(at) < dedupeWindow {
			return
		}
		r.purge(now)
		r.recent[e.key] = now
	}
	if len(r.podGroups) < maxPodGroupEvents {
		r.podGroups = append(r.podGroups, e)
	}
	r.signal()
}

// addPod queues an event about a pod. The caller holds mu.
func (r *Recorder) addPod(e event) {
	if len(r.pods) < maxPodEvents {
		r.pods = append(r.pods, e)
	}
	r.signal()
}

// purge drops old keys, once there are many.
func (r *Recorder) purge(now time.Time) {
	if len(r.recent) < 2*maxPodGroupEvents {
		return
	}
	for key, at := range r.recent {
		if now.Sub(at) >= dedupeWindow {
			delete(r.recent, key)
		}
	}
}

func (r *Recorder) signal() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run writes events until ctx is done.
func (r *Recorder) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		}
		for {
			r.Yield(ctx, maxYield)
			e, ok := r.next()
			if !ok || ctx.Err() != nil {
				break
			}
			r.write(ctx, e)
			r.sleep(ctx, writeInterval)
		}
	}
}

// next returns the event to write: those of PodGroups first.
func (r *Recorder) next() (event, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.aggregateBound()
	list := &r.podGroups
	if len(*list) == 0 {
		list = &r.pods
	}
	if len(*list) == 0 {
		return event{}, false
	}
	e := (*list)[0]
	*list = slices.Delete(*list, 0, 1)
	return e, true
}

// aggregateBound queues one event for all pods of a PodGroup that were bound since the last call.
// The caller holds mu.
func (r *Recorder) aggregateBound() {
	groups := make([]v1.ObjectReference, 0, len(r.bound))
	for group := range r.bound {
		groups = append(groups, group)
	}
	slices.SortFunc(groups, func(a, b v1.ObjectReference) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	for _, group := range groups {
		if len(r.podGroups) < maxPodGroupEvents {
			r.podGroups = append(r.podGroups, podGroupBound(group, r.bound[group]))
		}
	}
	clear(r.bound)
}

func (r *Recorder) write(ctx context.Context, e event) {
	call, cancel := context.WithTimeout(ctx, apicall.Timeout)
	defer cancel()
	_, err := r.Kube.EventsV1().Events(e.namespace()).Create(call, r.toAPI(e), metav1.CreateOptions{})
	if err != nil && ctx.Err() == nil {
		r.Log.V(2).Info("Event dropped", "regarding", klog.KRef(e.regarding.Namespace, e.regarding.Name), "kind", e.regarding.Kind, "reason", e.reason, "err", err)
	}
}

// toAPI returns the event as the API server accepts it.
func (r *Recorder) toAPI(e event) *eventsv1.Event {
	now := r.Clock.Now()
	return &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: e.namespace(),
			Name:      nameOf(e.regarding.Name, now),
		},
		EventTime:           metav1.NewMicroTime(now),
		ReportingController: r.SchedulerName,
		ReportingInstance:   r.instance,
		Action:              e.action,
		Reason:              e.reason,
		Regarding:           e.regarding,
		Note:                truncate(e.note, maxNote),
		Type:                e.kind,
	}
}

// namespace returns the namespace of the event. Those about objects without namespace are in the default one.
func (e *event) namespace() string { return cmp.Or(e.regarding.Namespace, metav1.NamespaceDefault) }

func nameOf(object string, now time.Time) string {
	return fmt.Sprintf("%s.%x", strings.TrimRight(truncate(object, 230), ".-"), now.UnixNano())
}

// truncate returns at most limit bytes of a text, without half a character at the end.
func truncate(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "")
}

func (r *Recorder) sleep(ctx context.Context, d time.Duration) {
	timer := r.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-ctx.Done():
	}
}
