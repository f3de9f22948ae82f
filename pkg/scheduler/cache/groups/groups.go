// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package groups watches the PodGroups of other APIs: those of the enabled sources that the API server serves.
package groups

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/cache/internal/kindwatch"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/groupapi"
)

// Options are the parts of a Watcher, without Unreadable. The handler receives *groupapi.Object.
type Options = kindwatch.Options

// Watcher watches the groups of the enabled sources. The kinds have the names of the sources.
type Watcher struct{ kinds *kindwatch.Watcher }

// New returns a watcher without sources.
func New(o Options) *Watcher {
	o.Log = o.Log.WithName("groups")
	o.Unreadable = apierrors.IsForbidden
	return &Watcher{kindwatch.New(o)}
}

// Enable adds sources, and returns when the groups of those that are served are known. It does not wait for sources that
// are not served or that the scheduler must not read. The informers stop with ctx.
func (w *Watcher) Enable(ctx context.Context, sources api.GroupSources) {
	w.kinds.Enable(ctx, kindsOf(sources))
}

// Keep drops all sources but these. It returns at once.
func (w *Watcher) Keep(sources api.GroupSources) { w.kinds.Keep(kindsOf(sources)) }

// kindsOf returns the kinds of all sources but that of this scheduler.
func kindsOf(sources api.GroupSources) []*kindwatch.Kind {
	var kinds []*kindwatch.Kind
	for _, a := range groupapi.All() {
		if !sources.Has(a.Source) {
			continue
		}
		if last := len(kinds) - 1; last < 0 || kinds[last].Name != a.Source.String() {
			kinds = append(kinds, &kindwatch.Kind{Name: a.Source.String()})
		}
		k := kinds[len(kinds)-1]
		k.Versions = append(k.Versions, kindwatch.Version{
			Resource: a.Resource, Read: func(u *unstructured.Unstructured) metav1.Object { return a.Read(u) },
		})
	}
	return kinds
}

// Get returns the group of a source with a name, or nil.
func (w *Watcher) Get(source api.GroupSource, namespace, name string) *groupapi.Object {
	_, feed := w.kinds.Find(source.String())
	if feed == nil {
		return nil
	}
	object, _ := feed.Get(namespace, name)
	group, _ := object.(*groupapi.Object)
	return group
}
