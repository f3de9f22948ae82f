// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package owners watches the objects that make gangs of their pods: those of the kinds that the policy lists and that the
// API server serves. A pod can be seen before its object, so the watcher also looks objects up that pods name and that no
// informer has shown, and reports those that do not exist.
package owners

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/cache/internal/kindwatch"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/ownerapi"
)

// Options are the parts of a Watcher; all are required, except for Unreadable. The handler receives *api.Owner.
type Options struct {
	kindwatch.Options
	// Gone is called when an object does not exist that pods name.
	Gone func(api.OwnerRef)
}

// Watcher watches the objects of the kinds that are listed.
type Watcher struct {
	kinds   *kindwatch.Watcher
	wanted  *lookups
	looping sync.Once
}

// New returns a watcher without rules.
func New(o Options) *Watcher {
	o.Log = o.Log.WithName("owners")
	o.Unreadable = func(error) bool { return true } // the pods wait
	kinds := kindwatch.New(o.Options)
	return &Watcher{kinds: kinds, wanted: newLookups(kinds, o.Gone)}
}

// Enable adds rules, and returns when the objects are known of the kinds that are served. It does not wait for kinds that are
// not served or that cannot be read: their pods wait. The informers stop with ctx.
func (w *Watcher) Enable(ctx context.Context, rules *ownerapi.Rules) {
	if rules == nil {
		return
	}
	w.kinds.Enable(ctx, kindsOf(rules))
	w.looping.Do(func() { go w.wanted.run(ctx) })
}

// Keep drops all rules but these. It returns at once.
func (w *Watcher) Keep(rules *ownerapi.Rules) { w.kinds.Keep(kindsOf(rules)) }

// Resolve sets the objects that pods name and that are not known, in place of those of the last call.
func (w *Watcher) Resolve(refs []api.OwnerRef) { w.wanted.set(refs) }

func kindsOf(rules *ownerapi.Rules) []*kindwatch.Kind {
	var kinds []*kindwatch.Kind
	for _, a := range rules.APIs() {
		k := &kindwatch.Kind{Name: a.Kind, Rule: a.Name}
		for _, r := range a.Resources {
			k.Versions = append(k.Versions, kindwatch.Version{
				Resource: r, Read: func(u *unstructured.Unstructured) metav1.Object { return a.Read(u) },
			})
		}
		kinds = append(kinds, k)
	}
	return kinds
}
