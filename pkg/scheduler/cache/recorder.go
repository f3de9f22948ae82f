package cache

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
	"k8s.io/utils/clock"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

const (
	// Events are written one at a time with eventPause in between, and give way to binds for
	// eventPatience. An event costs the API server about as much as a bind.
	eventPause    = 20 * time.Millisecond
	eventPatience = time.Second

	// groupNotes and podNotes bound how many events wait to be written; more are dropped. Those
	// of pods are a courtesy of quiet times: what happened stands in the pods anyway.
	groupNotes = 1024
	podNotes   = 256

	// repeatAfter is how soon a note with the same key may be written again.
	repeatAfter = time.Minute
	// maxNote is the longest text that the API server takes.
	maxNote = 1024
)

// note is an event to be. Its key says which notes tell the same.
type note struct {
	about  v1.ObjectReference
	kind   string // v1.EventTypeNormal or v1.EventTypeWarning
	reason string
	action string
	text   string
	key    string
}

// groupWaits says why a gang does not start; once per reason, not for every change of numbers.
func groupWaits(g *v1alpha1.PodGroup, condition *metav1.Condition) note {
	return note{
		about: *referenceTo(g), kind: v1.EventTypeWarning, reason: condition.Reason, action: "Scheduling",
		text: condition.Message, key: string(g.UID) + "/" + condition.Reason,
	}
}

// groupScheduled says that pods of a group were bound; one note for all pods of a moment.
func groupScheduled(group v1.ObjectReference, pods int) note {
	text := fmt.Sprintf("%d pods bound", pods)
	if pods == 1 {
		text = "1 pod bound"
	}
	return note{about: group, kind: v1.EventTypeNormal, reason: v1alpha1.ReasonScheduled, action: "Binding", text: text}
}

// podScheduledOn says where a pod was bound.
func podScheduledOn(f *flight) note {
	return note{
		about: v1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: f.namespace, Name: f.name, UID: f.uid},
		kind:  v1.EventTypeNormal, reason: v1alpha1.ReasonScheduled, action: "Binding",
		text: fmt.Sprintf("Successfully assigned %s to %s", f, f.node),
	}
}

func referenceTo(g *v1alpha1.PodGroup) *v1.ObjectReference {
	return &v1.ObjectReference{
		APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "PodGroup",
		Namespace: g.Namespace, Name: g.Name, UID: g.UID,
	}
}

// recorder writes events, slowly and without any promise. Nobody waits for it.
type recorder struct {
	kube       kubernetes.Interface
	controller string
	instance   string
	clock      clock.WithTicker
	log        logr.Logger
	calm       func(context.Context, time.Duration)

	mu     sync.Mutex
	groups []note
	pods   []note
	bound  map[v1.ObjectReference]int // pods bound since the last note about it, by group
	recent map[string]time.Time       // when notes with a key were written

	wake chan struct{}
}

func newRecorder(o Options) *recorder {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	instance := o.SchedulerName + "-" + host
	return &recorder{
		kube: o.Kube, controller: o.SchedulerName, instance: instance[:min(len(instance), 128)],
		clock: o.Clock, log: o.Log.WithName("events"),
		bound: map[v1.ObjectReference]int{}, recent: map[string]time.Time{},
		wake: make(chan struct{}, 1),
	}
}

// add takes a note about a group.
func (r *recorder) add(n note) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n.key != "" {
		now := r.clock.Now()
		if at, ok := r.recent[n.key]; ok && now.Sub(at) < repeatAfter {
			return
		}
		r.purge(now)
		r.recent[n.key] = now
	}
	if len(r.groups) < groupNotes {
		r.groups = append(r.groups, n)
	}
	r.signal()
}

// purge forgets old keys, once there are many.
func (r *recorder) purge(now time.Time) {
	if len(r.recent) < 2*groupNotes {
		return
	}
	for key, at := range r.recent {
		if now.Sub(at) >= repeatAfter {
			delete(r.recent, key)
		}
	}
}

// podBound takes note of a pod that was bound.
func (r *recorder) podBound(f *flight) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f.unit.group != nil {
		r.bound[*f.unit.group]++
	}
	if len(r.pods) < podNotes {
		r.pods = append(r.pods, podScheduledOn(f))
	}
	r.signal()
}

func (r *recorder) signal() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// run writes events until ctx is done.
func (r *recorder) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		}
		for {
			r.calm(ctx, eventPatience)
			n, ok := r.next()
			if !ok || ctx.Err() != nil {
				break
			}
			r.write(ctx, n)
			r.sleep(ctx, eventPause)
		}
	}
}

// next returns the note to write: groups go before pods.
func (r *recorder) next() (note, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sumUp()
	list := &r.groups
	if len(*list) == 0 {
		list = &r.pods
	}
	if len(*list) == 0 {
		return note{}, false
	}
	n := (*list)[0]
	*list = slices.Delete(*list, 0, 1)
	return n, true
}

// sumUp makes one note of all that was bound of a group.
func (r *recorder) sumUp() {
	groups := make([]v1.ObjectReference, 0, len(r.bound))
	for group := range r.bound {
		groups = append(groups, group)
	}
	slices.SortFunc(groups, func(a, b v1.ObjectReference) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	for _, group := range groups {
		if len(r.groups) < groupNotes {
			r.groups = append(r.groups, groupScheduled(group, r.bound[group]))
		}
	}
	clear(r.bound)
}

func (r *recorder) write(ctx context.Context, n note) {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := r.kube.EventsV1().Events(n.about.Namespace).Create(call, r.event(n), metav1.CreateOptions{})
	if err != nil && ctx.Err() == nil {
		r.log.V(2).Info("Cannot write an event, dropped it", "about", n.about.Name, "reason", n.reason, "err", err)
	}
}

func (r *recorder) event(n note) *eventsv1.Event {
	now := r.clock.Now()
	return &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: n.about.Namespace,
			Name:      eventName(n.about.Name, now),
		},
		EventTime:           metav1.NewMicroTime(now),
		ReportingController: r.controller,
		ReportingInstance:   r.instance,
		Action:              n.action,
		Reason:              n.reason,
		Regarding:           n.about,
		Note:                shorten(n.text, maxNote),
		Type:                n.kind,
	}
}

func eventName(object string, now time.Time) string {
	return fmt.Sprintf("%s.%x", strings.TrimRight(shorten(object, 230), ".-"), now.UnixNano())
}

func shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "")
}

func (r *recorder) sleep(ctx context.Context, d time.Duration) {
	timer := r.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-ctx.Done():
	}
}
