// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/internal/text"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/cache"
)

// Snapshot is the state of a cluster at the start of simulations. It is immutable, so simulations may share it.
type Snapshot struct {
	objects  []Object
	now      time.Time
	warnings []string
	rules    map[string]*batchv1.Job // Jobs, by namespace and name, see failureRules
}

// NewSnapshot takes ownership of the objects and completes them like the API server and controllers: the pods of Jobs
// without pods, priorities, requests from limits, phases, UIDs. Simulations run at the time now; if that is zero, at
// the creation time of the youngest object.
func NewSnapshot(o *Objects, now time.Time) (*Snapshot, error) {
	s := &Snapshot{now: now, warnings: o.notes(), rules: o.failureRules()}
	if now.IsZero() {
		s.now = youngest(o.sorted())
	}
	for _, obj := range o.sorted() {
		s.identify(obj)
	}
	if err := s.expandJobs(o); err != nil {
		return nil, err
	}
	s.objects = o.sorted()
	classes, nodes := newClasses(s.objects), 0
	trim := cache.NewTransform()
	for _, obj := range s.objects {
		s.identify(obj)
		switch obj := obj.(type) {
		case *v1.Node:
			nodes++
			if obj.Status.Allocatable == nil {
				obj.Status.Allocatable = obj.Status.Capacity
			}
		case *v1.Pod:
			s.completePod(obj, classes)
		case *policyv1.PodDisruptionBudget:
			if obj.Status.ExpectedPods == 0 && obj.Status.DisruptionsAllowed == 0 {
				s.warn("PodDisruptionBudget %s has no status and protects all of its pods", nameOf(obj))
			}
		}
		if _, err := trim(obj); err != nil {
			return nil, fmt.Errorf("%s: %w", nameOf(obj), err)
		}
	}
	if nodes == 0 {
		return nil, errors.New(`there are no nodes among the objects: add those of a cluster, for example what "kubectl get nodes -o yaml" prints`)
	}
	return s, nil
}

func (s *Snapshot) warn(format string, args ...any) {
	s.warnings = append(s.warnings, fmt.Sprintf(format, args...))
}

// youngest returns the creation time of the youngest object; a fixed time if no object has one.
func youngest(objects []Object) time.Time {
	last := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, obj := range objects {
		if made := obj.GetCreationTimestamp(); made.After(last) {
			last = made.Time
		}
	}
	return last
}

// identify sets the fields that only the API server sets. An object without a creation time is created now.
func (s *Snapshot) identify(obj Object) {
	if obj.GetUID() == "" {
		obj.SetUID(types.UID("simulated/" + reflect.TypeOf(obj).Elem().Name() + "/" + sourceOf(obj) + nameOf(obj)))
	}
	if made := obj.GetCreationTimestamp(); made.IsZero() {
		obj.SetCreationTimestamp(metav1.NewTime(s.now))
	}
}

// completePod applies the admission and defaulting of the API server to a pod.
func (s *Snapshot) completePod(pod *v1.Pod, classes *classes) {
	if pod.Status.Phase == "" {
		pod.Status.Phase = v1.PodPending
		if pod.Spec.NodeName != "" {
			pod.Status.Phase = v1.PodRunning
		}
	}
	if pod.Spec.Priority == nil {
		value, known := classes.priority(pod.Spec.PriorityClassName)
		if !known {
			s.warn("pod %s: there is no priority class %s; its priority counts as %d", nameOf(pod), pod.Spec.PriorityClassName, value)
		}
		pod.Spec.Priority = &value
	}
	for _, containers := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			requestLimits(&containers[i].Resources)
		}
	}
	if pod.Spec.Resources != nil {
		requestLimits(pod.Spec.Resources)
	}
}

// requestLimits sets requests from limits where they are missing.
func requestLimits(r *v1.ResourceRequirements) {
	for name, limit := range r.Limits {
		if _, given := r.Requests[name]; given {
			continue
		}
		if r.Requests == nil {
			r.Requests = v1.ResourceList{}
		}
		r.Requests[name] = limit
	}
}

// classes are the priority classes.
type classes struct {
	values map[string]int32
	usual  int32 // of pods without a class
}

func newClasses(objects []Object) *classes {
	c := &classes{values: map[string]int32{"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}}
	for _, obj := range objects {
		class, ok := obj.(*schedulingv1.PriorityClass)
		if !ok {
			continue
		}
		c.values[class.Name] = class.Value
		if class.GlobalDefault {
			c.usual = class.Value
		}
	}
	return c
}

func (c *classes) priority(name string) (value int32, known bool) {
	if name == "" {
		return c.usual, true
	}
	value, known = c.values[name]
	return value, known
}

// checkForeign returns warnings about pods that wait for other schedulers.
func (s *Snapshot) checkForeign(schedulerNames []string) []string {
	n, names := 0, map[string]bool{}
	for _, obj := range s.objects {
		pod, ok := obj.(*v1.Pod)
		if ok && pod.Spec.NodeName == "" && pod.Status.Phase == v1.PodPending && !slices.Contains(schedulerNames, pod.Spec.SchedulerName) {
			n++
			names[pod.Spec.SchedulerName] = true
		}
	}
	if n == 0 {
		return nil
	}
	return []string{strings.Join([]string{
		text.Count(n, "pending pod is", "pending pods are"), "for other schedulers than", strings.Join(schedulerNames, ", "), "(spec.schedulerName) and not simulated",
	}, " ")}
}
