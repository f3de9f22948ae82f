// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/cache/owners"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/ownerapi"
)

// ownerFeed shows the model the objects that make gangs of their pods.
type ownerFeed struct {
	cache    *Cache
	grouping api.Grouping    // of which the model has the objects
	watcher  *owners.Watcher // nil if there is no client for them
}

func newOwnerFeed(c *Cache) *ownerFeed {
	f := &ownerFeed{cache: c, grouping: c.options.Grouping}
	if c.options.Dynamic == nil {
		return f
	}
	f.watcher = owners.New(owners.Options{
		Options: kindOptions(c, handler(c, ownerKind()), "config/grouping"),
		Gone: func(ref api.OwnerRef) {
			c.queue.add(ownerGone{ref: ref})
			c.wakeUp()
		},
	})
	return f
}

// resolve has the objects looked up that pods wait for. Only the scheduling goroutine may call it.
func (f *ownerFeed) resolve() {
	if f.watcher == nil {
		return
	}
	if refs, changed := model.Owners(f.cache.model).Missing(); changed {
		f.watcher.Resolve(refs)
	}
}

// enable starts the informers of the objects that make gangs of their pods, and returns when they have synced.
func (f *ownerFeed) enable(ctx context.Context, grouping api.Grouping) {
	if f.watcher != nil {
		f.watcher.Enable(ctx, ownerapi.RulesOf(grouping))
	}
}

// use reports whether other rules are in force than before, which the next model has. Only the scheduling goroutine may call
// it.
func (f *ownerFeed) use(grouping api.Grouping) bool {
	if grouping == f.grouping {
		return false
	}
	f.grouping = grouping
	if f.watcher != nil {
		f.watcher.Keep(ownerapi.RulesOf(grouping))
	}
	return true
}

// ownerKind returns the kind of objects that make gangs of their pods.
func ownerKind() *kind[*api.Owner] {
	return &kind[*api.Owner]{
		name: "owner", rank: rankOwner,
		set:    func(c *Cache, o *api.Owner) { model.Owners(c.model).Set(o) },
		remove: func(c *Cache, o *api.Owner) { model.Owners(c.model).Delete(o.Key(), o.UID) },
		wakes: func(before, after *api.Owner) bool {
			return before == nil || after == nil || !api.EqualOwners(before, after)
		},
	}
}

// ownerGone: an object does not exist that pods name.
type ownerGone struct {
	notAboutObject
	ref api.OwnerRef
}

func (g ownerGone) apply(c *Cache) { model.Owners(c.model).Gone(g.ref) }
func (g ownerGone) String() string {
	return "missing " + g.ref.Kind + " " + g.ref.Namespace + "/" + g.ref.Name
}
