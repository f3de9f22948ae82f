// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	"github.com/batch-scheduler/batch-scheduler/test/cluster"
)

// noControllers is a cluster of an API server and kubelets alone.
var noControllers = cluster.Options{}

// TestWaiting is about groups that cannot start yet, and what becomes of them.
func TestWaiting(t *testing.T) {
	play(t, map[string]scenario{
		"a gated gang runs at once when its gates are lifted (S27)": {
			given: rows(threeNodes, gang("a", 4, pods(4, "1cpu", gated))),
			step: step{
				want:   `a: Pending NotEnoughPods; 4 waiting SchedulingGated`, // the API server's own reason
				prints: map[string]string{"a": "0 of 4 pods that must start together exist; 4 gated"},
			},
			then: []step{{
				do:   rows(ungate("a")),
				want: `a: Running Scheduled; 4 running`,
			}},
		},
		"a gang waits for its last pod": {
			given: rows(threeNodes, gang("a", 4, pods(3, "1cpu"))),
			step: step{
				want:   `a: Pending NotEnoughPods; 3 waiting NotEnoughPods`,
				prints: map[string]string{"a": "3 of 4 pods that must start together exist"},
			},
			then: []step{{
				do:   rows(members("a", set("last", 1, "1cpu"))),
				want: `a: Running Scheduled; 3 running; last 1 running`,
			}},
		},
		"a group that comes after its pods starts them": {
			given: rows(threeNodes, members("a", pods(3, "1cpu"))),
			step: step{
				want:   `a: 3 waiting GroupNotFound`,
				prints: map[string]string{"a": `PodGroup "a" does not exist`},
			},
			then: []step{{
				do:   rows(group("a", 3)),
				want: `a: Running Scheduled; 3 running`,
			}},
		},
		"an unknown queue is named, and found once it is there": {
			given: rows(threeNodes, gang("a", 2, pods(2, "1cpu"), in("reserch"))),
			step: step{
				want:   `a: Pending QueueNotFound; 2 waiting QueueNotFound`,
				prints: map[string]string{"a": `queue "reserch" does not exist`},
			},
			then: []step{{
				do:   rows(queue("reserch", 1)),
				want: `a: Running Scheduled; 2 running`,
			}},
		},
		"a queue with a similar name is suggested": {
			given: rows(threeNodes, queue("research", 1), gang("a", 2, pods(2, "1cpu"), in("reserch"))),
			step: step{
				want:   `a: Pending QueueNotFound; 2 waiting QueueNotFound`,
				prints: map[string]string{"a": `queue "reserch" does not exist (did you mean "research"?); create it or name another queue`},
			},
		},
		"a gang that can never fit does not block others": {
			given: rows(threeNodes, priorityClass("high", 100),
				gang("huge", 13, pods(13, "1cpu", priority("high"))),
				gang("wide", 1, pods(1, "5cpu", priority("high"))),
				gang("gpus", 1, pods(1, "1cpu 1gpu", priority("high"))),
				gang("a", 12, pods(12, "1cpu"))),
			step: step{
				want: `
					a: Running Scheduled; 12 running
					gpus: Pending Unschedulable; 1 waiting Unschedulable
					huge: Pending ExceedsClusterCapacity; 13 waiting Unschedulable
					wide: Pending ExceedsClusterCapacity; 1 waiting Unschedulable`,
				prints: map[string]string{"gpus": "3 without nvidia.com/gpu"},
			},
		},
		"pods beyond a gang that has not started wait for the gang": {
			given: rows(threeNodes, gang("a", 13, pods(15, "1cpu"))),
			step:  step{want: `a: Pending ExceedsClusterCapacity; 2 waiting GangPending, 13 waiting Unschedulable`},
		},
		"a gang that fits where pods are ending waits for their end": {
			given: rows(threeNodes, plain("other", 12, "1cpu", lingering)),
			step:  step{want: `other: 12 running`},
			then: []step{{
				do: rows(gang("a", 12, pods(12, "1cpu"))),
				want: `
					a: Pending NotEnoughResources; 12 waiting Unschedulable
					other: 12 running`,
			}, {
				do: rows(noPods("other")),
				want: `
					a: Pending Preempting; 12 waiting Preempting
					other: 12 ending`,
			}, {
				do:   rows(release("other")),
				want: `a: Running Scheduled; 12 running`,
			}},
		},
	})
}

// TestRunning is about groups that have started.
func TestRunning(t *testing.T) {
	play(t, map[string]scenario{
		"surplus pods run as far as resources are available": {
			given: rows(threeNodes, gang("a", 4, pods(20, "1cpu"))),
			step:  step{want: `a: Running Scheduled; 12 running, 8 waiting Unschedulable`},
			then: []step{{
				do:   rows(node("n4", "8cpu")),
				want: `a: Running Scheduled; 20 running`,
			}},
		},
		"a gang whose pods have ended is finished": {
			given: rows(threeNodes, gang("a", 3, pods(3, "1cpu", runningFor("100ms")))),
			step:  step{want: `a: Finished Scheduled; 3 succeeded`},
		},
		"a raised minMember stops no pod": {
			given: rows(threeNodes, gang("a", 2, pods(4, "1cpu"))),
			step:  step{want: `a: Running Scheduled; 4 running`},
			then: []step{{
				do:   rows(group("a", 4)),
				want: `a: Running Scheduled; 4 running`,
			}},
		},
		"a pod goes where no running pod repels it (S26)": {
			given: rows(nodes("n", 2, "4cpu"),
				plain("other", 1, "1cpu", onNode("n1"), avoid("a")),
				gang("a", 2, pods(2, "1cpu"))),
			step: step{by: "kubernetes.io/hostname", want: `
				a: Running Scheduled; 2 running (n2 2)
				other: 1 running (n1 1)`},
		},
	})
}
