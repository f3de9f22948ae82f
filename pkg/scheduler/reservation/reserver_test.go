// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package reservation

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model/modeltest"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/place"
)

// TestReserverKeepsWhatHolds compares the placements of a policy that keeps what it has measured in earlier sessions with those
// of one that measures all nodes, after random changes of nodes and pods.
func TestReserverKeepsWhatHolds(t *testing.T) {
	chosen := 0
	rapid.Check(t, func(rt *rapid.T) {
		c := NewCluster("q1", "q2")
		for _, name := range []string{"a", "b"} {
			c.Events().SetPodGroup(Group(name, 2))
		}
		for n := range 4 {
			c.Events().SetNode(Node(fmt.Sprint("n", n), 3))
		}
		profile, policy := starvationIn(t)
		for range rapid.IntRange(1, 12).Draw(rt, "sessions") {
			for range rapid.IntRange(0, 4).Draw(rt, "changes") {
				changeOne(rt, c.Events())
			}
			ssn := open(profile, c)
			s := policy()
			s.after = time.Nanosecond
			fresh := *s
			fresh.reserver = place.NewReserver(s.lastPlacements)
			fresh.reserver.Open(ssn)
			want, got := describeChosen(fresh.choose(t.Context(), ssn)), describeChosen(s.choose(t.Context(), ssn))
			chosen += len(want)
			if diff := cmp.Diff(want, got); diff != "" {
				rt.Fatalf("(-all nodes +kept):\n%s", diff)
			}
			if err := s.Execute(t.Context(), ssn); err != nil {
				rt.Fatal(err)
			}
			ssn.Close()
		}
	})
	if chosen == 0 {
		t.Error("no gang had a reservation")
	}
}

// changeOne changes a node or a pod. Pods of one group request the same or different amounts.
func changeOne(t *rapid.T, e model.Events) {
	node, number := fmt.Sprint("n", rapid.IntRange(0, 3).Draw(t, "node")), rapid.IntRange(0, 9).Draw(t, "pod")
	pod := Pod(fmt.Sprint("p", number), rapid.IntRange(1, 3).Draw(t, "cpus"))
	if number < 6 {
		InGroup([]string{"a", "b"}[number%2])(pod)
	}
	switch rapid.IntRange(0, 9).Draw(t, "change") {
	case 0, 1:
		e.SetNode(Node(node, rapid.IntRange(1, 4).Draw(t, "size")))
	case 2:
		e.DeleteNode(node)
	case 3, 4:
		e.DeletePod(pod.UID)
	case 5, 6, 7:
		e.SetPod(pod)
	default:
		On(node)(pod)
		e.SetPod(pod)
	}
}

func describeChosen(list []chosen) (lines []string) {
	for _, one := range list {
		for _, d := range one.placements {
			lines = append(lines, fmt.Sprint(one.job.Key, " ", d.Task.Key, " on ", d.Node.Name))
		}
	}
	return lines
}
