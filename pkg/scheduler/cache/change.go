package cache

import (
	"cmp"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// change is one thing that happened and that the model has not heard of yet.
type change interface {
	// apply tells the model; called from the scheduling goroutine.
	apply(c *Cache)
	// about names the object; a later change about it makes this one superfluous. It reports
	// false for changes that stand for themselves.
	about() (objectKey, bool)
	// ends tells whether the object is gone with this change.
	ends() bool
	String() string
}

// objectKey names an object among all that were shown, and tells it from others of its name.
type objectKey struct {
	rank            int8
	namespace, name string
	uid             types.UID
}

// compare orders keys so that objects come after those that they refer to, as far as possible.
func (k objectKey) compare(o objectKey) int {
	return cmp.Or(cmp.Compare(k.rank, o.rank), cmp.Compare(k.namespace, o.namespace),
		cmp.Compare(k.name, o.name), cmp.Compare(k.uid, o.uid))
}

// changes is the list that handlers append to. Who stands by for a leader takes nothing from it
// for as long as the leader lives, so from time to time the list is condensed: it grows with the
// number of objects, not with what happens to them.
type changes struct {
	clock clock.PassiveClock

	mu    sync.Mutex
	list  []change
	since time.Time // when the first of list was added
	limit int       // length at which list is condensed next
	taken bool      // something has been taken before: the end of an object may be news
}

// condenseFrom is the least length at which condensing is worth it.
const condenseFrom = 1 << 14

func (s *changes) add(change change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.list) == 0 {
		s.since = s.clock.Now()
	}
	if len(s.list) >= max(s.limit, condenseFrom) {
		s.condense()
	}
	s.list = append(s.list, change)
}

// take returns the list, and since when it has waited, and starts an empty one.
func (s *changes) take() ([]change, time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.list
	s.list, s.limit = nil, 0
	s.taken = s.taken || len(list) > 0
	return list, s.since
}

// condense keeps the last change of each object, and none of an object that came and went.
func (s *changes) condense() {
	last := make(map[objectKey]int, len(s.list))
	for i, change := range s.list {
		if key, ok := change.about(); ok {
			last[key] = i
		}
	}
	kept := make([]change, 0, len(last))
	for i, change := range s.list {
		key, ok := change.about()
		if !ok || last[key] == i && (s.taken || !change.ends()) {
			kept = append(kept, change)
		}
	}
	s.list, s.limit = kept, 2*len(kept)
}

// seen is an object as an informer showed it last, or showed it for the last time.
type seen[T object] struct {
	kind *kind[T]
	obj  T
	gone bool
}

func (s seen[T]) about() (objectKey, bool) {
	return objectKey{s.kind.rank, s.obj.GetNamespace(), s.obj.GetName(), s.obj.GetUID()}, true
}

func (s seen[T]) ends() bool { return s.gone }

func (s seen[T]) apply(c *Cache) {
	key, _ := s.about()
	if s.gone {
		delete(c.shown, key)
		s.kind.remove(c, s.obj)
		return
	}
	c.shown[key] = s
	s.kind.set(c, s.obj)
}

func (s seen[T]) String() string {
	return fmt.Sprintf("%s %s/%s", s.kind.name, s.obj.GetNamespace(), s.obj.GetName())
}

// bindRefused says that a bind of ours certainly has not taken effect, and why.
type bindRefused struct {
	uid types.UID
	why string
}

func (b bindRefused) apply(c *Cache) {
	delete(c.flights, b.uid)
	c.model.BindFailed(api.TaskID(b.uid), b.why)
}

func (b bindRefused) about() (objectKey, bool) { return objectKey{}, false }
func (b bindRefused) ends() bool               { return false }
func (b bindRefused) String() string           { return "refused bind of the pod with UID " + string(b.uid) }

// putOff says that binds of ours were not even sent, and that their job is to wait until it is readmitted.
type putOff struct {
	job     api.JobID
	refused []bindRefused
	why     string
}

func (p putOff) apply(c *Cache) {
	for _, b := range p.refused {
		b.apply(c)
	}
	c.off[p.job] = p.why
	c.model.SetBackoff(p.job, p.why)
}

func (p putOff) about() (objectKey, bool) { return objectKey{}, false }
func (p putOff) ends() bool               { return false }
func (p putOff) String() string           { return "job put off " + string(p.job) }

// readmitted says that a job that was put off may be tried again.
type readmitted struct{ job api.JobID }

func (r readmitted) apply(c *Cache) {
	delete(c.off, r.job)
	c.model.SetBackoff(r.job, "")
}

func (r readmitted) about() (objectKey, bool) { return objectKey{}, false }
func (r readmitted) ends() bool               { return false }
func (r readmitted) String() string           { return "job readmitted " + string(r.job) }

// evictionFailed says that an eviction of ours certainly has not taken effect.
type evictionFailed struct {
	uid     types.UID
	refused bool // and would not if it were tried again at once
}

func (e evictionFailed) apply(c *Cache) {
	delete(c.leaving, e.uid)
	c.model.EvictionFailed(api.TaskID(e.uid))
	if e.refused {
		c.model.SetEvictionBlocked(api.TaskID(e.uid), true)
	}
}

func (e evictionFailed) about() (objectKey, bool) { return objectKey{}, false }
func (e evictionFailed) ends() bool               { return false }
func (e evictionFailed) String() string {
	return "failed eviction of the pod with UID " + string(e.uid)
}

// pardon says that the eviction of a pod that was refused may be tried again.
type pardon struct{ uid types.UID }

func (p pardon) apply(c *Cache)           { c.model.SetEvictionBlocked(api.TaskID(p.uid), false) }
func (p pardon) about() (objectKey, bool) { return objectKey{}, false }
func (p pardon) ends() bool               { return false }
func (p pardon) String() string           { return "pardon of the pod with UID " + string(p.uid) }

// podVanished says that a pod was gone when it was to be bound; its informer will say so too.
type podVanished struct{ pod objectKey }

func (p podVanished) apply(c *Cache) {
	delete(c.flights, p.pod.uid)
	delete(c.shown, p.pod)
	c.model.DeletePod(p.pod.uid)
}

func (p podVanished) about() (objectKey, bool) { return objectKey{}, false }
func (p podVanished) ends() bool               { return false }
func (p podVanished) String() string           { return "vanished pod " + p.pod.namespace + "/" + p.pod.name }

// bumped says that something changed which plugins read for themselves.
type bumped struct{}

func (bumped) apply(c *Cache)           { c.model.NotifyExternalChange() }
func (bumped) about() (objectKey, bool) { return objectKey{rank: rankOutside}, true }
func (bumped) ends() bool               { return false }
func (bumped) String() string           { return "change outside of the model" }
