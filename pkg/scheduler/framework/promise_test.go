package framework

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// A scheduler that has just started finds in the API server what an earlier one has promised.
func TestPromisesOfAnEarlierScheduler(t *testing.T) {
	c := newCluster()
	c.SetNode(node("n", 4))
	nominated := func(p *v1.Pod) { p.Status.NominatedNodeName = "n" }
	leaving := func(p *v1.Pod) {
		now := metav1.Now()
		p.DeletionTimestamp = &now
		p.Status.Phase = v1.PodRunning
		p.Annotations = map[string]string{v1alpha1.AnnotationEvictedFor: "ns/taker"}
	}
	c.SetPod(pod("taker", 2, nominated))
	c.SetPod(pod("stranger", 2))
	c.SetPod(pod("victim", 2, on("n"), leaving))

	profile := profileOf(t, nil)
	var asked []string
	for range 2 {
		ssn, _ := open(t, profile, c)
		ssn.KeepPromises(func(job *api.JobInfo, tasks int, _ bool) Kept {
			asked = append(asked, fmt.Sprintf("%s %d", job.Key, tasks))
			return Kept{Later: tasks}
		})
		ssn.Close()
	}
	c.DeletePod("victim")
	for range 2 {
		ssn, _ := open(t, profile, c)
		ssn.KeepPromises(func(job *api.JobInfo, tasks int, _ bool) Kept {
			asked = append(asked, fmt.Sprintf("%s %d at last", job.Key, tasks))
			return Kept{Now: tasks}
		})
		ssn.Close()
	}
	want := []string{"ns/taker 1", "ns/taker 1", "ns/taker 1 at last"}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
