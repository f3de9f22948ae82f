// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/audit"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

// The accounts of one node of 4 cpus with various pods. Amounts are milli-cpus.
func TestNodeAccounts(t *testing.T) {
	type accounts struct{ idle, releasing, foreign, members, now, future int64 }
	cases := map[string]struct {
		given func(*model.Cluster)
		want  accounts
	}{
		"empty": {
			func(*model.Cluster) {}, accounts{idle: 4000, now: 4000, future: 4000},
		},
		"a member": {
			func(c *model.Cluster) { c.Events().SetPod(aPod("p", on("n"))) },
			accounts{idle: 3000, members: 1000, now: 3000, future: 3000},
		},
		"a foreign pod": {
			func(c *model.Cluster) { c.Events().SetPod(aPod("p", on("n"), foreign)) },
			accounts{idle: 3000, foreign: 1000, now: 3000, future: 3000},
		},
		"a foreign pod that is bound and does not run yet": {
			func(c *model.Cluster) { c.Events().SetPod(aPod("p", on("n"), foreign, inPhase(v1.PodPending))) },
			accounts{idle: 3000, foreign: 1000, now: 3000, future: 3000},
		},
		"a foreign pod that its kubelet has lost": {
			func(c *model.Cluster) { c.Events().SetPod(aPod("p", on("n"), foreign, inPhase(v1.PodUnknown))) },
			accounts{idle: 3000, foreign: 1000, now: 3000, future: 3000},
		},
		"pods that have ended": {
			func(c *model.Cluster) {
				c.Events().SetPod(aPod("p", on("n"), inPhase(v1.PodSucceeded)))
				c.Events().SetPod(aPod("q", on("n"), inPhase(v1.PodFailed)))
			},
			accounts{idle: 4000, now: 4000, future: 4000},
		},
		"a pod that is being deleted": {
			func(c *model.Cluster) { c.Events().SetPod(aPod("p", on("n"), deleting)) },
			accounts{idle: 3000, releasing: 1000, now: 3000, future: 4000},
		},
		"a foreign pod that is being deleted": {
			func(c *model.Cluster) { c.Events().SetPod(aPod("p", on("n"), deleting, foreign)) },
			accounts{idle: 3000, releasing: 1000, foreign: 1000, now: 3000, future: 4000},
		},
		"a pod that is being deleted on a node without a known deadline": {
			func(c *model.Cluster) {
				c.Events().SetPod(aPod("p", on("n"), deleting))
				c.Events().SetNode(notReady(aNode("n", "cpu", "4")))
			},
			accounts{idle: 3000, releasing: 1000, now: 3000, future: 3000},
		},
		"more than it has": {
			func(c *model.Cluster) { c.Events().SetPod(aPod("p", on("n"), requesting("cpu", "5"))) },
			accounts{idle: -1000, members: 5000, now: -1000, future: -1000},
		},
		"a pod nominated to it by another scheduler": {
			func(c *model.Cluster) { c.Events().SetPod(aPod("p", foreign, nominatedTo("n"), prioritized(5))) },
			accounts{idle: 4000, now: 3000, future: 3000},
		},
		"a nominated pod of lower priority": {
			func(c *model.Cluster) { c.Events().SetPod(aPod("p", foreign, nominatedTo("n"), prioritized(4))) },
			accounts{idle: 4000, now: 4000, future: 4000},
		},
		"a nominated pod that has arrived": {
			func(c *model.Cluster) {
				c.Events().SetPod(aPod("p", foreign, nominatedTo("n"), prioritized(5)))
				c.Events().SetPod(aPod("p", foreign, nominatedTo("n"), prioritized(5), on("n")))
			},
			accounts{idle: 3000, foreign: 1000, now: 3000, future: 3000},
		},
		"a nominated pod that went elsewhere": {
			func(c *model.Cluster) {
				c.Events().SetPod(aPod("p", foreign, nominatedTo("n"), prioritized(5)))
				c.Events().SetPod(aPod("p", foreign, nominatedTo("n"), prioritized(5), on("m")))
			},
			accounts{idle: 4000, now: 4000, future: 4000},
		},
		"a nominated pod that was deleted": {
			func(c *model.Cluster) {
				c.Events().SetPod(aPod("p", foreign, nominatedTo("n"), prioritized(5)))
				c.Events().DeletePod("uid-p")
			},
			accounts{idle: 4000, now: 4000, future: 4000},
		},
		"our own nominated pod": {
			func(c *model.Cluster) { c.Events().SetPod(aPod("p", nominatedTo("n"), prioritized(5))) },
			accounts{idle: 4000, now: 4000, future: 4000},
		},
		"pods known before it": {
			func(c *model.Cluster) {
				c.Events().DeleteNode("n")
				c.Events().SetPod(aPod("p", on("n")))
				c.Events().SetPod(aPod("q", foreign, nominatedTo("n"), prioritized(9)))
				c.Events().SetNode(aNode("n", "cpu", "4"))
			},
			accounts{idle: 3000, members: 1000, now: 2000, future: 2000},
		},
		"deleted and added again, smaller": {
			func(c *model.Cluster) {
				c.Events().SetPod(aPod("p", on("n")))
				c.Events().DeleteNode("n")
				c.Events().SetNode(aNode("n", "cpu", "2"))
			},
			accounts{idle: 1000, members: 1000, now: 1000, future: 1000},
		},
		"deleted and added again, then a completed pod of before is deleted": {
			func(c *model.Cluster) {
				c.Events().SetPod(aPod("p", on("n"), inPhase(v1.PodSucceeded)))
				c.Events().DeleteNode("n")
				c.Events().SetNode(aNode("n", "cpu", "4"))
				c.Events().DeletePod("uid-p")
			},
			accounts{idle: 4000, now: 4000, future: 4000},
		},
		"a pod resized in place": {
			func(c *model.Cluster) {
				c.Events().SetPod(aPod("p", on("n"), requesting("cpu", "1"), func(p *v1.Pod) {
					p.Status.ContainerStatuses = []v1.ContainerStatus{{
						Name: "main", Resources: &v1.ResourceRequirements{Requests: amountsOf("cpu", "3")}, AllocatedResources: amountsOf("cpu", "3"),
					}}
				}))
			},
			accounts{idle: 1000, members: 3000, now: 1000, future: 1000},
		},
		"a tried placement on resources that are being released": {
			func(c *model.Cluster) {
				c.Events().SetPod(aPod("p", on("n"), deleting))
				c.Events().SetPod(aPod("q"))
				c.Ledger().Place(c.Tasks()["uid-q"], api.Pipelined, c.Node("n"))
			},
			accounts{idle: 3000, releasing: 1000, now: 3000, future: 3000},
		},
		"a tried placement that needs idle resources too": {
			func(c *model.Cluster) {
				c.Events().SetPod(aPod("p", on("n"), deleting))
				c.Events().SetPod(aPod("q", requesting("cpu", "3")))
				c.Ledger().Place(c.Tasks()["uid-q"], api.Pipelined, c.Node("n"))
			},
			accounts{idle: 3000, releasing: 1000, now: 1000, future: 1000},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newTestCluster()
			c.Events().SetNode(aNode("n", "cpu", "4"))
			tc.given(c)
			n := c.Node("n")
			if n == nil {
				t.Fatal("the node is gone")
			}
			got := accounts{
				idle: n.Idle.At(api.CPU), releasing: n.Releasing.At(api.CPU), foreign: n.Foreign.At(api.CPU), members: n.Members.At(api.CPU),
				now: n.Available(5, api.Now).At(api.CPU), future: n.Available(5, api.Future).At(api.CPU),
			}
			if got != tc.want {
				t.Errorf("\n got %+v\nwant %+v", got, tc.want)
			}
			if err := audit.Model(c); err != nil {
				t.Error(err)
			}
		})
	}
}

// A pod on a node that the API server does not show holds nothing of its queue.
func TestPodsOfMissingNodesHoldNothing(t *testing.T) {
	c := newTestCluster()
	c.Events().SetQueue(aQueue("default"))
	c.Events().SetPod(aPod("p", on("n"), inPhase(v1.PodRunning)))
	job := c.Tasks()["uid-p"].Job
	check := func(when string, holding int32, cpu int64) {
		t.Helper()
		if job.Holding() != holding || c.Queues()["default"].Allocated.At(api.CPU) != cpu {
			t.Errorf("%s: %d members hold %v", when, job.Holding(), c.Queues()["default"].Allocated)
		}
		if err := audit.Model(c); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	check("before its node", 0, 0)
	c.Events().SetNode(aNode("n", "cpu", "4"))
	check("with its node", 1, 1000)
	c.Events().DeleteNode("n")
	check("after its node", 0, 0)
	c.Events().DeletePod("uid-p")
	if len(model.Inspect(c).Nodes) != 0 {
		t.Error("the missing node is remembered")
	}
}

func TestNodeReadiness(t *testing.T) {
	with := func(status v1.ConditionStatus) *v1.Node {
		n := aNode("n")
		n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: status}}
		return n
	}
	cases := map[string]struct {
		node *v1.Node
		want bool
	}{
		"ready":                  {with(v1.ConditionTrue), true},
		"not ready":              {with(v1.ConditionFalse), false},
		"not heard of":           {with(v1.ConditionUnknown), false},
		"no condition yet":       {aNode("n"), true},
		"missing from the model": {nil, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			n := &api.NodeInfo{}
			if tc.node != nil {
				c := newTestCluster()
				c.Events().SetNode(tc.node)
				n = c.Node("n")
			}
			if got := n.Ready(); got != tc.want {
				t.Errorf("ready: %t", got)
			}
		})
	}
}

func TestHeartbeatsChangeNothing(t *testing.T) {
	c := newTestCluster()
	c.Events().SetNode(aNode("n", "cpu", "4"))
	before := c.Generations().Model
	beat := aNode("n", "cpu", "4")
	beat.ResourceVersion = "2"
	c.Events().SetNode(beat)
	if c.Generations().Model != before {
		t.Error("a heartbeat counts as a change")
	}
	cordoned := beat.DeepCopy()
	cordoned.Spec.Unschedulable = true
	c.Events().SetNode(cordoned)
	if c.Generations().Model == before {
		t.Error("cordoning does not count as a change")
	}
}

func TestHostPortConflicts(t *testing.T) {
	port := func(number int32, protocol v1.Protocol, ip string) podChange {
		return func(p *v1.Pod) {
			p.Spec.Containers[0].Ports = []v1.ContainerPort{{HostPort: number, Protocol: protocol, HostIP: ip}}
		}
	}
	web := port(80, "", "")
	cases := map[string]struct {
		stands, asks podChange
		when         api.When
		want         bool
	}{
		"the same port":            {web, web, api.Now, true},
		"another port":             {web, port(81, "", ""), api.Now, false},
		"another protocol":         {web, port(80, v1.ProtocolUDP, ""), api.Now, false},
		"all addresses and one":    {web, port(80, "", "10.0.0.1"), api.Now, true},
		"two addresses":            {port(80, "", "10.0.0.2"), port(80, "", "10.0.0.1"), api.Now, false},
		"one that is being freed":  {func(p *v1.Pod) { web(p); deleting(p) }, web, api.Now, true},
		"one that will be free":    {func(p *v1.Pod) { web(p); deleting(p) }, web, api.Future, false},
		"one whose pod has ended":  {func(p *v1.Pod) { web(p); inPhase(v1.PodSucceeded)(p) }, web, api.Now, false},
		"a foreign pod's":          {func(p *v1.Pod) { web(p); foreign(p) }, web, api.Now, true},
		"a port of the pod itself": {func(*v1.Pod) {}, web, api.Now, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newTestCluster()
			c.Events().SetNode(aNode("n"))
			c.Events().SetPod(aPod("existing", on("n"), tc.stands))
			c.Events().SetPod(aPod("asks", tc.asks))
			if got := c.Node("n").PortConflict(c.Tasks()["uid-asks"], tc.when); got != tc.want {
				t.Errorf("conflict: %t", got)
			}
		})
	}
}

// TestGap has a node with 3 cpu and 2 GPUs.
func TestGap(t *testing.T) {
	for name, test := range map[string]struct {
		asks  []string
		given func(*model.Cluster)
		want  int64
	}{
		"available resources":           {asks: []string{"cpu", "3"}, want: 0},
		"a quarter is missing":          {asks: []string{"cpu", "4"}, want: 250},
		"a third is missing":            {asks: []string{"cpu", "4500m"}, want: 334}, // rounded up, so that it is never none
		"nearly nothing is missing":     {asks: []string{"cpu", "3001m"}, want: 1},
		"all of it is missing":          {asks: []string{"nvidia.com/gpu", "1"}, given: func(c *model.Cluster) { c.Events().SetPod(aPod("p", on("n"), requesting("nvidia.com/gpu", "2"))) }, want: 1000},
		"all of it and more is missing": {asks: []string{"cpu", "1"}, given: func(c *model.Cluster) { c.Events().SetPod(aPod("p", on("n"), requesting("cpu", "5"))) }, want: 1000},
		"no node has any":               {asks: []string{"example.com/fpga", "1"}, want: 1000},
		"of two resources":              {asks: []string{"cpu", "4", "nvidia.com/gpu", "4"}, want: 750},
		"what another scheduler has claimed too": {asks: []string{"cpu", "3"}, given: func(c *model.Cluster) {
			c.Events().SetPod(aPod("p", foreign, nominatedTo("n"), requesting("cpu", "1")))
		}, want: 334},
	} {
		t.Run(name, func(t *testing.T) {
			c := newTestCluster()
			c.Events().SetNode(aNode("n", "cpu", "3", "nvidia.com/gpu", "2"))
			if test.given != nil {
				test.given(c)
			}
			c.Events().SetPod(aPod("waits", requesting(test.asks...)))
			if got := c.Node("n").Deficit(c.Tasks()["uid-waits"]); got != test.want {
				t.Errorf("the gap is %d thousandths, and should be %d", got, test.want)
			}
		})
	}
}
