// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package fakecluster

import (
	"encoding/json"
	"fmt"
	"maps"

	v1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// serve returns a reactor that handles writes.
func (s *APIServer) serve(tracker clienttesting.ObjectTracker) clienttesting.ReactionFunc {
	return func(action clienttesting.Action) (bool, runtime.Object, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		switch a := action.(type) {
		case clienttesting.CreateActionImpl:
			if binding, ok := a.Object.(*v1.Binding); ok {
				return true, nil, s.bind(tracker, a, binding)
			}
			s.stamp(a.Object)
			s.wrote(a.Object)
			return clienttesting.ObjectReaction(tracker)(a)
		case clienttesting.UpdateActionImpl:
			object, err := s.update(tracker, a)
			return true, object, err
		case clienttesting.PatchActionImpl:
			object, err := s.patch(tracker, a)
			return true, object, err
		}
		return false, nil, nil
	}
}

func (s *APIServer) bind(tracker clienttesting.ObjectTracker, a clienttesting.CreateActionImpl, binding *v1.Binding) error {
	object, err := tracker.Get(a.GetResource(), a.GetNamespace(), binding.Name)
	if err != nil {
		return err
	}
	pod := object.(*v1.Pod)
	if pod.UID != binding.UID || pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil {
		return apierrors.NewConflict(v1.Resource("pods/binding"), binding.Name, fmt.Errorf("UID %s, node %q", pod.UID, pod.Spec.NodeName))
	}
	pod.Spec.NodeName = binding.Target.Name
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	maps.Copy(pod.Annotations, binding.Annotations)
	s.stamp(pod)
	return tracker.Update(a.GetResource(), pod, a.GetNamespace())
}

func (s *APIServer) update(tracker clienttesting.ObjectTracker, a clienttesting.UpdateActionImpl) (runtime.Object, error) {
	update, err := meta.Accessor(a.Object)
	if err != nil {
		return nil, err
	}
	object, err := tracker.Get(a.GetResource(), a.GetNamespace(), update.GetName())
	if err != nil {
		return nil, err
	}
	if current, _ := meta.Accessor(object); current.GetResourceVersion() != update.GetResourceVersion() {
		s.conflicts++
		return nil, apierrors.NewConflict(a.GetResource().GroupResource(), update.GetName(), fmt.Errorf("it is at %s", current.GetResourceVersion()))
	}
	s.stamp(a.Object)
	s.wrote(a.Object)
	return a.Object, tracker.Update(a.GetResource(), a.Object, a.GetNamespace())
}

// patch handles the patch of a pod's conditions.
func (s *APIServer) patch(tracker clienttesting.ObjectTracker, a clienttesting.PatchActionImpl) (runtime.Object, error) {
	object, err := tracker.Get(a.GetResource(), a.GetNamespace(), a.GetName())
	if err != nil {
		return nil, err
	}
	pod := object.(*v1.Pod)
	var patch struct {
		Metadata struct {
			UID             types.UID `json:"uid"`
			ResourceVersion string    `json:"resourceVersion"`
		} `json:"metadata"`
		Status struct {
			Conditions []v1.PodCondition `json:"conditions"`
		} `json:"status"`
	}
	if err := json.Unmarshal(a.Patch, &patch); err != nil {
		return nil, err
	}
	if patch.Metadata.UID != pod.UID || patch.Metadata.ResourceVersion != pod.ResourceVersion {
		s.conflicts++
		return nil, apierrors.NewConflict(a.GetResource().GroupResource(), pod.Name, fmt.Errorf("it is at %s", pod.ResourceVersion))
	}
	pod.Status.Conditions = patch.Status.Conditions
	s.stamp(pod)
	s.wrote(pod)
	return pod, tracker.Update(a.GetResource(), pod, a.GetNamespace())
}

// describe returns a line of the transcript: what a write makes an object show.
func describe(object runtime.Object) string {
	switch o := object.(type) {
	case *eventsv1.Event:
		return fmt.Sprintf("event on %s %s: %s: %s", o.Regarding.Kind, o.Regarding.Name, o.Reason, o.Note)
	case *v1alpha1.PodGroup:
		line := fmt.Sprintf("podgroup %s: %s %d/%d", o.Name, o.Status.Phase, o.Status.Pending, o.Status.Running)
		if c := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionPodGroupScheduled); c != nil {
			line += fmt.Sprintf(", %s %s: %s", c.Status, c.Reason, c.Message)
		}
		for _, level := range o.Status.Topology {
			line += fmt.Sprintf(", in %s %v", level.Level, level.Domains)
		}
		return line
	case *v1alpha1.Queue:
		return fmt.Sprintf("queue %s: %d pending", o.Name, o.Status.Groups.Pending)
	case *v1alpha1.Topology:
		return fmt.Sprintf("topology %s: %d levels, %d unlabelled", o.Name, len(o.Status.Levels), o.Status.UnlabelledNodes)
	case *v1.Pod:
		for _, c := range o.Status.Conditions {
			if c.Type == v1.PodScheduled {
				return fmt.Sprintf("pod %s: %s %s: %s", o.Name, c.Status, c.Reason, c.Message)
			}
		}
		return "pod " + o.Name
	}
	return fmt.Sprintf("%T", object)
}
