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
	// leaveOut takes the object out of what a new model is built from.
	leaveOut(c *Cache)
	String() string
}

// changes is the list that handlers append to.
type changes struct {
	clock clock.PassiveClock

	mu    sync.Mutex
	list  []change
	since time.Time // when the first of list was added
}

func (s *changes) add(change change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.list) == 0 {
		s.since = s.clock.Now()
	}
	s.list = append(s.list, change)
}

// take returns the list, and since when it has waited, and starts an empty one.
func (s *changes) take() ([]change, time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.list
	s.list = nil
	return list, s.since
}

// objectKey names an object among all that were shown: its kind, and its id within the kind.
type objectKey struct {
	rank int8
	id   string
}

// compare orders keys so that objects come after those that they refer to, as far as possible.
func (k objectKey) compare(o objectKey) int {
	return cmp.Or(cmp.Compare(k.rank, o.rank), cmp.Compare(k.id, o.id))
}

// seen is an object as an informer showed it last, or showed it for the last time.
type seen[T object] struct {
	kind *kind[T]
	obj  T
	gone bool
}

func (s seen[T]) key() objectKey { return objectKey{s.kind.rank, s.kind.id(s.obj)} }

func (s seen[T]) apply(c *Cache) {
	if s.gone {
		delete(c.shown, s.key())
		s.kind.remove(c, s.obj)
		return
	}
	c.shown[s.key()] = s
	s.kind.set(c, s.obj)
}

func (s seen[T]) leaveOut(c *Cache) { delete(c.shown, s.key()) }

func (s seen[T]) String() string {
	return fmt.Sprintf("%s %s/%s", s.kind.name, s.obj.GetNamespace(), s.obj.GetName())
}

// bindRefused says that a bind of ours certainly has not taken effect.
type bindRefused struct{ uid types.UID }

func (b bindRefused) apply(c *Cache) {
	delete(c.flights, b.uid)
	c.model.Refused(api.TaskID(b.uid))
}

func (b bindRefused) leaveOut(*Cache) {}

func (b bindRefused) String() string { return "refused bind of the pod with UID " + string(b.uid) }

// podVanished says that a pod was gone when it was to be bound; its informer will say so too.
type podVanished struct{ uid types.UID }

func (p podVanished) apply(c *Cache) {
	delete(c.flights, p.uid)
	delete(c.shown, objectKey{rankPod, string(p.uid)})
	c.model.DeletePod(p.uid)
}

func (p podVanished) leaveOut(*Cache) {}

func (p podVanished) String() string { return "vanished pod with UID " + string(p.uid) }

// bumped says that something changed which plugins read for themselves.
type bumped struct{}

func (bumped) apply(c *Cache)  { c.model.Bump() }
func (bumped) leaveOut(*Cache) {}
func (bumped) String() string  { return "change outside of the model" }
