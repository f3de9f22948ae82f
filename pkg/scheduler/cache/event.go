// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// event is something that happened and that the model does not know yet.
type event interface {
	// apply changes the model; called from the scheduling goroutine.
	apply(c *Cache)
	// key names the object that the event is about: a later event with the same key makes this one
	// superfluous. It returns false for events that are not about an object.
	key() (objectKey, bool)
	// deletes reports whether the object does not exist any more.
	deletes() bool
	String() string
}

// objectKey identifies an object. The UID distinguishes it from others of the same name.
type objectKey struct {
	rank            int8
	namespace, name string
	uid             types.UID
}

// compare orders keys so that most objects come after those that they refer to.
func (k objectKey) compare(o objectKey) int {
	return cmp.Or(cmp.Compare(k.rank, o.rank), cmp.Compare(k.namespace, o.namespace),
		cmp.Compare(k.name, o.name), cmp.Compare(k.uid, o.uid))
}

// objectEvent is the latest state of an object, or the last state before its deletion.
type objectEvent[T object] struct {
	kind    *kind[T]
	obj     T
	deleted bool
}

func (e objectEvent[T]) key() (objectKey, bool) {
	return objectKey{e.kind.rank, e.obj.GetNamespace(), e.obj.GetName(), e.obj.GetUID()}, true
}

func (e objectEvent[T]) deletes() bool { return e.deleted }

func (e objectEvent[T]) apply(c *Cache) {
	key, _ := e.key()
	if e.deleted {
		delete(c.observed, key)
		e.kind.remove(c, e.obj)
		return
	}
	if e.kind.changed != nil {
		before, _ := c.observed[key].(objectEvent[T])
		e.kind.changed(c, before.obj, e.obj)
	}
	c.observed[key] = e
	e.kind.set(c, e.obj)
}

func (e objectEvent[T]) String() string {
	return fmt.Sprintf("%s %s/%s", e.kind.name, e.obj.GetNamespace(), e.obj.GetName())
}

// notAboutObject is embedded by events that compaction keeps.
type notAboutObject struct{}

func (notAboutObject) key() (objectKey, bool) { return objectKey{}, false }
func (notAboutObject) deletes() bool          { return false }

// bindFailed: a bind certainly has had no effect. reason is empty if the bind was not sent.
type bindFailed struct {
	notAboutObject
	uid    types.UID
	reason string
}

func (b bindFailed) String() string { return "failed bind of the pod with UID " + string(b.uid) }

func (b bindFailed) apply(c *Cache) {
	c.model.Ledger().BindFailed(api.TaskID(b.uid), b.reason)
}

// jobBackoff: binds of a job were not sent, and the job waits until it is requeued.
type jobBackoff struct {
	notAboutObject
	job    api.JobID
	binds  []bindFailed
	reason string
}

func (b jobBackoff) apply(c *Cache) {
	for _, bind := range b.binds {
		bind.apply(c)
	}
	c.model.Ledger().SetBackoff(b.job, b.reason)
}

func (b jobBackoff) String() string { return "back-off of job " + string(b.job) }

// jobRequeued: the back-off of a job is over.
type jobRequeued struct {
	notAboutObject
	job api.JobID
}

func (r jobRequeued) String() string { return "requeue of job " + string(r.job) }

func (r jobRequeued) apply(c *Cache) {
	c.model.Ledger().SetBackoff(r.job, "")
}

// evictionFailed: an eviction certainly has had no effect.
type evictionFailed struct {
	notAboutObject
	uid     types.UID
	refused bool // and would have none if it were sent again at once
}

func (e evictionFailed) String() string {
	return "failed eviction of the pod with UID " + string(e.uid)
}

func (e evictionFailed) apply(c *Cache) {
	c.model.Ledger().EvictionFailed(api.TaskID(e.uid))
	if e.refused {
		c.model.Ledger().SetEvictionBlocked(api.TaskID(e.uid), true)
	}
}

// evictionAllowed: the back-off of a pod whose eviction was refused is over.
type evictionAllowed struct {
	notAboutObject
	uid types.UID
}

func (e evictionAllowed) apply(c *Cache) {
	c.model.Ledger().SetEvictionBlocked(api.TaskID(e.uid), false)
}
func (e evictionAllowed) String() string {
	return "end of the eviction back-off of the pod with UID " + string(e.uid)
}

// podVanished: a pod did not exist when it was to be bound. Its informer will report the deletion too.
type podVanished struct {
	notAboutObject
	pod objectKey
}

func (p podVanished) String() string { return "vanished pod " + p.pod.namespace + "/" + p.pod.name }

func (p podVanished) apply(c *Cache) {
	delete(c.observed, p.pod)
	c.model.Events().DeletePod(p.pod.uid)
}

// externalChange: an object changed that is not in the model and that plugins read themselves.
type externalChange struct{}

func (externalChange) apply(c *Cache)         { c.model.Events().NotifyExternalChange() }
func (externalChange) key() (objectKey, bool) { return objectKey{rank: rankExternal}, true }
func (externalChange) deletes() bool          { return false }
func (externalChange) String() string         { return "change of an object outside the model" }
