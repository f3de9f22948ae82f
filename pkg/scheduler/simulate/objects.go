// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package simulate predicts scheduling: it loads the objects of a cluster, or of files, into a model, runs sessions
// with a configuration until a session decides nothing, and returns what the scheduler would bind, evict, and leave
// pending. It changes only its own model.
package simulate

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/groupapi"
)

// Object is a pointer to an API object.
type Object interface {
	runtime.Object
	metav1.Object
}

// kind is a kind of objects that affects scheduling.
type kind struct {
	example    Object
	namespaced bool
}

// kinds returns the kinds in the order in which a model receives them. From PersistentVolume on they are not in the
// model; plugins read them from informers.
func kinds() []kind {
	return []kind{
		{&v1.Namespace{}, false},
		{&schedulingv1.PriorityClass{}, false},
		{&v1alpha1.Queue{}, false},
		{&v1alpha1.Topology{}, false},
		{&v1alpha1.PodGroup{}, true},
		{&groupapi.Object{}, true},
		{&owner{}, true},
		{&v1.Node{}, false},
		{&policyv1.PodDisruptionBudget{}, true},
		{&v1.Pod{}, true},
		{&v1.PersistentVolume{}, false},
		{&v1.PersistentVolumeClaim{}, true},
		{&storagev1.StorageClass{}, false},
		{&storagev1.CSINode{}, false},
		{&storagev1.CSIDriver{}, false},
		{&storagev1.CSIStorageCapacity{}, true},
		{&storagev1.VolumeAttachment{}, false},
		{&resourcev1.DeviceClass{}, false},
		{&resourcev1.ResourceClaim{}, true},
		{&resourcev1.ResourceSlice{}, false},
		{&batchv1.Job{}, true}, // pods are created from it, see expandJobs
	}
}

// Progress receives the number of objects read so far. It may be nil.
type Progress func(objects int)

// Objects are the input of a simulation.
type Objects struct {
	kinds   map[reflect.Type]kind
	ranks   map[reflect.Type]int
	entries map[objectKey]entry
	// ignored counts objects that do not affect scheduling, by apiVersion and kind.
	ignored map[string]int
	// rules are Jobs of a cluster, by namespace and name, see readFailureRules.
	rules        map[string]*batchv1.Job
	listed       map[api.GroupSource]bool // sources whose groups were listed
	ownersListed map[string]bool          // kinds whose objects were listed
	progress     Progress
}

type objectKey struct {
	kind            reflect.Type
	namespace, name string
}

// entry is an object and its location in the input.
type entry struct {
	Object
	from string
}

func newObjects(progress Progress) *Objects {
	o := &Objects{
		kinds: map[reflect.Type]kind{}, ranks: map[reflect.Type]int{}, entries: map[objectKey]entry{}, ignored: map[string]int{},
		rules:  map[string]*batchv1.Job{},
		listed: map[api.GroupSource]bool{}, ownersListed: map[string]bool{},
		progress: progress,
	}
	for i, k := range kinds() {
		o.kinds[reflect.TypeOf(k.example)], o.ranks[reflect.TypeOf(k.example)] = k, i
	}
	return o
}

// add takes ownership of an object.
func (o *Objects) add(obj runtime.Object, apiVersionAndKind, from string) error {
	k, known := o.kinds[reflect.TypeOf(obj)]
	if !known {
		o.ignored[apiVersionAndKind]++
		return nil
	}
	typed := obj.(Object) // every kind in kinds implements it
	name := reflect.TypeOf(obj).Elem().Name()
	switch {
	case typed.GetName() == "":
		return fmt.Errorf("%s: a %s without metadata.name", from, name)
	case !k.namespaced:
		typed.SetNamespace("")
	case typed.GetNamespace() == "":
		typed.SetNamespace(metav1.NamespaceDefault)
	}
	key := keyOf(typed)
	if before, twice := o.entries[key]; twice {
		return fmt.Errorf("%s: %s %s is there twice, first in %s", from, name, nameOf(typed), before.from)
	}
	o.entries[key] = entry{typed, from}
	if o.progress != nil {
		o.progress(len(o.entries))
	}
	return nil
}

func keyOf(obj Object) objectKey {
	return objectKey{reflect.TypeOf(obj), obj.GetNamespace(), sourceOf(obj) + obj.GetName()}
}

func nameOf(obj Object) string {
	return strings.TrimPrefix(obj.GetNamespace()+"/"+obj.GetName(), "/")
}

// Overlay adds the objects of another set and replaces objects of the same kind and name. A replaced object keeps its
// identity, as in an update.
func (o *Objects) Overlay(other *Objects) {
	for key, e := range other.entries {
		if before, there := o.entries[key]; there && e.GetUID() == "" {
			e.SetUID(before.GetUID())
			e.SetCreationTimestamp(before.GetCreationTimestamp())
		}
		o.entries[key] = e
	}
	for what, n := range other.ignored {
		o.ignored[what] += n
	}
}

// sorted returns all objects by kind and name.
func (o *Objects) sorted() []Object {
	list := make([]Object, 0, len(o.entries))
	for _, e := range o.entries {
		list = append(list, e.Object)
	}
	slices.SortFunc(list, func(a, b Object) int {
		return cmp.Or(cmp.Compare(o.ranks[reflect.TypeOf(a)], o.ranks[reflect.TypeOf(b)]),
			cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()), cmp.Compare(sourceOf(a), sourceOf(b)))
	})
	return list
}

// notes returns warnings about ignored objects.
func (o *Objects) notes() []string {
	if len(o.ignored) == 0 {
		return nil
	}
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(o.ignored)) {
		parts = append(parts, fmt.Sprintf("%d %s", o.ignored[what], what))
	}
	return []string{"left out, because scheduling does not depend on it: " + strings.Join(parts, ", ")}
}
