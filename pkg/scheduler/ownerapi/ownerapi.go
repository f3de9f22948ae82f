// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package ownerapi has the rules by which objects of operators make gangs of their pods. Each kind has one file with its
// rule: which object a pod belongs to, by the pod alone, and which gangs an object makes. Operators label their pods with
// the name of the object, so that no rule reads what is between the two, such as the Jobs of a JobSet. The functions depend
// on nothing but their arguments: the cache watches the objects, and simulations read them from files.
package ownerapi

import (
	"fmt"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// API is a kind of objects that make gangs of their pods.
type API struct {
	Name      string // of the rule; different for two rules about one kind
	Kind      string
	Resources []schema.GroupVersionResource // the versions that can be read, preferred ones first

	needed func(api.Grouping) bool
	// ownerOf returns the name of the object of a pod, and its UID if the pod names it; no name if the pod has no such
	// object. The controller of the pod is not nil.
	ownerOf func(pod *v1.Pod, controller *metav1.OwnerReference) (name string, uid types.UID)
	// gangs returns the gangs that an object makes; none if its pods are no gang.
	gangs func(*unstructured.Unstructured) ([]api.OwnerGang, error)
}

// All returns the rules. Of those about one kind at most one is needed. If a pod belongs to objects of several kinds, the first one counts.
func All() []*API {
	all := []*API{jobSet(), trainJob(), leaderWorkerSet(), rayCluster(), mpiJob(), sparkApplications()}
	return append(append(all, kubeflowJobs()...), job())
}

// Reads reports whether there is a rule about objects of a kind.
func Reads(kind schema.GroupVersionKind) bool {
	for _, a := range All() {
		for _, r := range a.Resources {
			if r.GroupVersion().WithKind(a.Kind) == kind {
				return true
			}
		}
	}
	return false
}

// Rules are the rules of the kinds that a policy lists. They implement api.OwnerRules.
type Rules struct{ apis []*API }

// RulesOf returns the rules for a policy; nil if it needs none.
func RulesOf(grouping api.Grouping) *Rules {
	r := &Rules{}
	for _, a := range All() {
		if a.needed(grouping) {
			r.apis = append(r.apis, a)
		}
	}
	if r.apis == nil {
		return nil
	}
	return r
}

// APIs returns the kinds that the rules read; none if r is nil.
func (r *Rules) APIs() []*API {
	if r == nil {
		return nil
	}
	return r.apis
}

// OwnerOf implements api.OwnerRules.
func (r *Rules) OwnerOf(pod *v1.Pod) (api.OwnerRef, bool) {
	controller := metav1.GetControllerOfNoCopy(pod)
	if controller == nil {
		return api.OwnerRef{}, false
	}
	for _, a := range r.apis {
		if name, uid := a.ownerOf(pod, controller); name != "" {
			return api.OwnerRef{OwnerKey: api.OwnerKey{Kind: a.Kind, Namespace: pod.Namespace, Name: name}, UID: uid}, true
		}
	}
	return api.OwnerRef{}, false
}

// Read converts an object to what the scheduler keeps of it. An annotation with the size of the gang takes precedence over the
// rule if the object makes one gang alone.
func (a *API) Read(u *unstructured.Unstructured) *api.Owner {
	o := &api.Owner{Kind: a.Kind, ObjectMeta: metav1.ObjectMeta{
		Namespace: u.GetNamespace(), Name: u.GetName(), UID: u.GetUID(), ResourceVersion: u.GetResourceVersion(),
	}}
	var err error
	if o.Gangs, err = a.gangs(u); err != nil {
		o.Gangs, o.Problem = nil, fmt.Sprintf("it cannot be read: %v", err)
	}
	for i := range o.Gangs {
		o.Gangs[i].MinMember = max(o.Gangs[i].MinMember, 1)
	}
	if n, err := strconv.ParseInt(u.GetAnnotations()[v1alpha1.AnnotationMinMember], 10, 32); err == nil && n > 0 && len(o.Gangs) == 1 {
		o.Gangs[0].MinMember = int32(n)
	}
	return o
}

// listed returns the condition that a policy lists one of the kinds.
func listed(kinds api.OwnerKinds) func(api.Grouping) bool {
	return func(g api.Grouping) bool { return g.Kinds.Has(kinds) }
}

// isKind reports whether a reference is to a kind of an API group.
func isKind(ref *metav1.OwnerReference, group, kind string) bool {
	return ref.Kind == kind && len(ref.APIVersion) > len(group) && ref.APIVersion[len(group)] == '/' && strings.HasPrefix(ref.APIVersion, group)
}

// controllerOf returns an ownerOf for pods whose controller is the object itself.
func controllerOf(group, kind string) func(*v1.Pod, *metav1.OwnerReference) (string, types.UID) {
	return func(_ *v1.Pod, controller *metav1.OwnerReference) (string, types.UID) {
		if !isKind(controller, group, kind) {
			return "", ""
		}
		return controller.Name, controller.UID
	}
}

// decode converts the spec of an object to the fields that a rule needs.
func decode[T any](u *unstructured.Unstructured) (*T, error) {
	spec, _, err := unstructured.NestedMap(u.Object, "spec")
	if err != nil {
		return nil, err
	}
	typed := new(T)
	return typed, runtime.DefaultUnstructuredConverter.FromUnstructured(spec, typed)
}

func resource(group, version, name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: name}
}

// whole returns the only gang of an object, of all its pods.
func whole(minMember int32) []api.OwnerGang { return []api.OwnerGang{{MinMember: minMember}} }
