// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package reservation

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model/modeltest"
)

// A scheduler process that has just started finds the nominations of an earlier one in the API server. They end with the
// last victim.
func TestNominationsOfAnEarlierScheduler(t *testing.T) {
	c := NewCluster()
	c.Events().SetNode(Node("n", 4))
	nominated := func(p *v1.Pod) { p.Status.NominatedNodeName = "n" }
	leaving := func(p *v1.Pod) {
		now := metav1.Now()
		p.DeletionTimestamp = &now
		p.Spec.NodeName = "n"
		p.Status.Phase = v1.PodRunning
		p.Annotations = map[string]string{v1alpha1.AnnotationEvictedFor: "ns/preemptor"}
	}
	c.Events().SetPod(Pod("preemptor", 3, nominated)) // does not fit beside the victim
	c.Events().SetPod(Pod("other", 2))
	c.Events().SetPod(Pod("victim", 2, leaving))

	var n *nominations
	spec := capturing(Nominated(), &n)
	profile := profileWith(t, spec)
	var found []string
	cycle := func() {
		ssn := open(profile, c)
		found = append(found, describe(n))
		for _, action := range ssn.Actions() {
			if err := action.Execute(t.Context(), ssn); err != nil {
				t.Fatal(err)
			}
		}
		ssn.Close()
		if got := ssn.NominatedNode(c.Tasks()["other"]); got != "" {
			t.Errorf("other waits for victims on %q", got)
		}
	}
	cycle()
	cycle()
	c.Events().DeletePod("victim")
	cycle()
	cycle()
	want := []string{"1 on n, 1 victim", "1 on n, 1 victim", "1 on n, 1 victim", ""}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("nominations of the preemptor when sessions open (-want +got):\n%s", diff)
	}
}

func describe(n *nominations) string {
	of := n.byJob
	if len(of) == 0 {
		return ""
	}
	text := ""
	for _, nomination := range of {
		text += fmt.Sprintf("%d on %s, %d victim", len(nomination.placements), nomination.placements[0].Node, len(nomination.victims))
	}
	return text
}

// What is reserved for a nomination is reserved for its job, and available while that is the current job.
func TestNominationsAreReserved(t *testing.T) {
	c := NewCluster()
	c.Events().SetNode(Node("n", 4))
	c.Events().SetPod(Pod("preemptor", 3, func(p *v1.Pod) { p.Status.NominatedNodeName = "n" }))
	c.Events().SetPod(Pod("other", 1))
	var n *nominations
	spec := capturing(Nominated(), &n)
	ssn := open(profileWith(t, spec), c)
	n.reserve()
	available := func() int64 { return c.Node("n").Available(0, api.Now).At(api.CPU) / 1000 }
	var got []int64
	for _, current := range []string{"other", "preemptor", "other"} {
		ssn.ActivateReservation(c.Tasks()[api.TaskID(current)].Job)
		got = append(got, available())
	}
	ssn.Close()
	got = append(got, available())
	if diff := cmp.Diff([]int64{1, 4, 1, 4}, got); diff != "" {
		t.Errorf("available cpus (-want +got):\n%s", diff)
	}
}
