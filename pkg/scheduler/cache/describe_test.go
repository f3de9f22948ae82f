package cache

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// describe says in a line what a write makes an object show.
func describe(object runtime.Object) string {
	switch o := object.(type) {
	case *eventsv1.Event:
		return fmt.Sprintf("event on %s %s: %s: %s", o.Regarding.Kind, o.Regarding.Name, o.Reason, o.Note)
	case *v1alpha1.PodGroup:
		line := fmt.Sprintf("group %s: %s %d/%d", o.Name, o.Status.Phase, o.Status.Pending, o.Status.Running)
		if c := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionPodGroupScheduled); c != nil {
			line += fmt.Sprintf(", %s %s: %s", c.Status, c.Reason, c.Message)
		}
		return line
	case *v1alpha1.Queue:
		return fmt.Sprintf("queue %s: %d pending", o.Name, o.Status.Groups.Pending)
	case *v1.Pod:
		if c := podScheduled(o); c != nil {
			return fmt.Sprintf("pod %s: %s %s: %s", o.Name, c.Status, c.Reason, c.Message)
		}
		return "pod " + o.Name
	}
	return fmt.Sprintf("%T", object)
}
