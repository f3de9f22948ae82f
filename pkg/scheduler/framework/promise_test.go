package framework

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// A scheduler that has just started finds in the API server what an earlier one has promised.
func TestPromisesOfAnEarlierScheduler(t *testing.T) {
	c := newCluster()
	c.Events().SetNode(node("n", 4))
	nominated := func(p *v1.Pod) { p.Status.NominatedNodeName = "n" }
	leaving := func(p *v1.Pod) {
		now := metav1.Now()
		p.DeletionTimestamp = &now
		p.Status.Phase = v1.PodRunning
		p.Annotations = map[string]string{v1alpha1.AnnotationEvictedFor: "ns/taker"}
	}
	c.Events().SetPod(pod("taker", 2, nominated))
	c.Events().SetPod(pod("stranger", 2))
	c.Events().SetPod(pod("victim", 2, on("n"), leaving))

	profile := profileOf(t, nil)
	var asked []string
	for range 2 {
		ssn, _ := open(t, profile, c)
		ssn.ReserveNominated()
		ssn.PlaceNominated(func(p Nomination) {
			asked = append(asked, told(p))
			hold(ssn, p)
		})
		ssn.Close()
	}
	c.Events().DeletePod("victim")
	for range 2 {
		ssn, _ := open(t, profile, c)
		ssn.ReserveNominated()
		ssn.PlaceNominated(func(p Nomination) { asked = append(asked, told(p)) })
		ssn.Close()
	}
	want := []string{"ns/taker: 1 on n", "ns/taker: 1 on n", "ns/taker: 1 on n"}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func told(p Nomination) string {
	var nodes []string
	for _, n := range p.Nodes {
		nodes = append(nodes, n.Name)
	}
	return fmt.Sprintf("%s: %d on %s", p.Job.Key, p.Tasks, strings.Join(nodes, " "))
}

// hold lets tasks wait where their room was promised.
func hold(ssn *Session, p Nomination) {
	stmt := ssn.Statement()
	for t, n := range p.Nodes {
		stmt.Pipeline(t, n)
	}
	stmt.Commit()
}
