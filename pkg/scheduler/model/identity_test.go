// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/audit"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

func TestMemberOf(t *testing.T) {
	existing := groups{aGroupOf(api.SourceOwn, "g", "q", 1)}
	group := api.Membership{Job: "group/ns/g", Group: "ns/g"}
	shadow := func(id api.JobID, queue api.QueueID, minMember int32) api.Membership {
		return api.Membership{Job: id, Queue: queue, MinMember: minMember}
	}
	unsupported := func(id api.JobID, queue api.QueueID, g api.GroupReference) api.Membership {
		return api.Membership{Job: id, Queue: queue, MinMember: 1, Unsupported: &g}
	}
	const volcano = "scheduling.volcano.sh/group-name"
	plugins := api.GroupReference{API: "scheduler-plugins (scheduling.x-k8s.io)", Field: "label " + pluginsLabel, Name: "x"}
	cases := map[string]struct {
		pod  *v1.Pod
		want api.Membership
	}{
		"label":                       {aPod("p", inGroup("g")), group},
		"annotation of kube-batch":    {aPod("p", annotated(v1alpha1.AnnotationGroupName, "g")), group},
		"label before annotation":     {aPod("p", inGroup("g"), annotated(v1alpha1.AnnotationGroupName, "other")), group},
		"empty label":                 {aPod("p", inGroup(""), annotated(v1alpha1.AnnotationGroupName, "g")), group},
		"group before queue label":    {aPod("p", inGroup("g"), withLabel(v1alpha1.LabelQueue, "other")), group},
		"a group that does not exist": {aPod("p", inGroup("none")), api.Membership{Job: "group/ns/none", Group: "ns/none"}},
		"neither group nor owner":     {aPod("p"), shadow("shadow/ns/uid-p/default", "default", 1)},
		"neither group nor owner, but a queue": {
			aPod("p", withLabel(v1alpha1.LabelQueue, "q")), shadow("shadow/ns/uid-p/q", "q", 1),
		},
		"owner":           {aPod("p", ownedBy("rs")), shadow("shadow/ns/uid-rs/default", "default", 1)},
		"owner and queue": {aPod("p", ownedBy("rs"), withLabel(v1alpha1.LabelQueue, "q")), shadow("shadow/ns/uid-rs/q", "q", 1)},
		"an owner that is no controller": {
			aPod("p", func(p *v1.Pod) { p.OwnerReferences = []metav1.OwnerReference{{Name: "o", UID: "uid-o"}} }),
			shadow("shadow/ns/uid-p/default", "default", 1),
		},
		"min-member annotation": {
			aPod("p", ownedBy("rs"), annotated(v1alpha1.AnnotationGroupMinMember, "3")), shadow("shadow/ns/uid-rs/default", "default", 3),
		},
		"min-member that is no number": {aPod("p", annotated(v1alpha1.AnnotationGroupMinMember, "many")), shadow("shadow/ns/uid-p/default", "default", 1)},
		"min-member zero":              {aPod("p", annotated(v1alpha1.AnnotationGroupMinMember, "0")), shadow("shadow/ns/uid-p/default", "default", 1)},
		"min-member beyond an int32":   {aPod("p", annotated(v1alpha1.AnnotationGroupMinMember, "4294967297")), shadow("shadow/ns/uid-p/default", "default", 1)},
		"group key": {
			aPod("p", ownedBy("rs"), annotated(v1alpha1.AnnotationGroupKey, "k/1"), annotated(v1alpha1.AnnotationMinMember, "3")),
			shadow("keyed/ns/default/k/1", "default", 3),
		},
		"group key and queue": {
			aPod("p", annotated(v1alpha1.AnnotationGroupKey, "k"), withLabel(v1alpha1.LabelQueue, "q")), shadow("keyed/ns/q/k", "q", 1),
		},
		"group key, bound by us": {
			aPod("p", annotated(v1alpha1.AnnotationGroupKey, "k"), boundBy("q", "", "n")), shadow("keyed/ns/q/k", "q", 1),
		},
		"label before group key":                {aPod("p", inGroup("g"), annotated(v1alpha1.AnnotationGroupKey, "k")), group},
		"annotation before group key":           {aPod("p", annotated(v1alpha1.AnnotationGroupName, "g"), annotated(v1alpha1.AnnotationGroupKey, "k")), group},
		"group key before groups of other APIs": {aPod("p", annotated(volcano, "x"), annotated(v1alpha1.AnnotationGroupKey, "k")), shadow("keyed/ns/default/k", "default", 1)},
		"bound by us":                           {aPod("p", inGroup("g"), boundBy("q", "uid-g", "n")), group},
		"bound by us, then relabelled":          {aPod("p", inGroup("other"), boundBy("q", "uid-g", "n")), group},
		"bound by us, label taken off":          {aPod("p", boundBy("q", "uid-g", "n")), group},
		"bound by us, group gone":               {aPod("p", inGroup("g"), boundBy("q", "uid-old", "n")), shadow("orphaned/uid-old/ns/q", "q", 1)},
		"bound by us, group moved":              {aPod("p", inGroup("g"), boundBy("r", "uid-g", "n")), shadow("orphaned/uid-g/ns/r", "r", 1)},
		"bound by us as a shadow":               {aPod("p", boundBy("q", "", "n")), shadow("shadow/ns/uid-p/q", "q", 1)},
		"a shadow that joins a group":           {aPod("p", inGroup("g"), boundBy("q", "", "n")), shadow("shadow/ns/uid-p/q", "q", 1)},
		"a shadow that changes its queue":       {aPod("p", withLabel(v1alpha1.LabelQueue, "r"), boundBy("q", "", "n")), shadow("shadow/ns/uid-p/q", "q", 1)},
		"bound by another scheduler":            {aPod("p", inGroup("g"), on("n")), group},
		"waits, with our annotations forged": {
			aPod("p", inGroup("g"), boundBy("q", "uid-other", "")), group,
		},
		"bound, with the UID of another namespace's group forged": {
			aPod("p", boundBy("q", "uid-g", "n"), func(p *v1.Pod) { p.Namespace = "other" }), shadow("orphaned/uid-g/other/q", "q", 1),
		},
		"a group of scheduler-plugins": {
			aPod("p", ownedBy("rs"), withLabel(pluginsLabel, "x")),
			unsupported("unsupported/ns/label scheduling.x-k8s.io/pod-group/x/default", "default", plugins),
		},
		"a group of scheduler-plugins, and a queue": {
			aPod("p", withLabel(pluginsLabel, "x"), withLabel(v1alpha1.LabelQueue, "q")),
			unsupported("unsupported/ns/label scheduling.x-k8s.io/pod-group/x/q", "q", plugins),
		},
		"a group of Volcano": {
			aPod("p", annotated(volcano, "x")),
			unsupported("unsupported/ns/annotation scheduling.volcano.sh/group-name/x/default", "default",
				api.GroupReference{API: "Volcano (scheduling.volcano.sh)", Field: "annotation " + volcano, Name: "x"}),
		},
		"a group of Volcano, by label": {
			aPod("p", withLabel(volcano, "x")),
			unsupported("unsupported/ns/label scheduling.volcano.sh/group-name/x/default", "default",
				api.GroupReference{API: "Volcano (scheduling.volcano.sh)", Field: "label " + volcano, Name: "x"}),
		},
		"a group of KAI Scheduler": {
			aPod("p", annotated("pod-group-name", "x"), withLabel("kai.scheduler/subgroup-name", "workers")),
			unsupported("unsupported/ns/annotation pod-group-name/x/default", "default",
				api.GroupReference{API: "KAI Scheduler (scheduling.run.ai)", Field: "annotation pod-group-name", Name: "x"}),
		},
		"a group of YuniKorn": {
			aPod("p", annotated("yunikorn.apache.org/task-group-name", "x")),
			unsupported("unsupported/ns/annotation yunikorn.apache.org/task-group-name/x/default", "default",
				api.GroupReference{API: "YuniKorn (yunikorn.apache.org)", Field: "annotation yunikorn.apache.org/task-group-name", Name: "x"}),
		},
		"a group of Kubernetes": {
			aPod("p", func(p *v1.Pod) { p.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: new("x")} }),
			unsupported("unsupported/ns/field spec.schedulingGroup/x/default", "default",
				api.GroupReference{API: "Kubernetes (scheduling.k8s.io)", Field: "field spec.schedulingGroup", Name: "x"}),
		},
		"a scheduling group of Kubernetes without a name": {
			aPod("p", func(p *v1.Pod) { p.Spec.SchedulingGroup = &v1.PodSchedulingGroup{} }), shadow("shadow/ns/uid-p/default", "default", 1),
		},
		"our label before other APIs":              {aPod("p", inGroup("g"), withLabel(pluginsLabel, "x")), group},
		"annotation of kube-batch before others":   {aPod("p", annotated(v1alpha1.AnnotationGroupName, "g"), annotated(volcano, "x")), group},
		"an empty label of another API":            {aPod("p", withLabel(pluginsLabel, "")), shadow("shadow/ns/uid-p/default", "default", 1)},
		"bound by us, with a group of another API": {aPod("p", withLabel(pluginsLabel, "x"), boundBy("q", "", "n")), shadow("shadow/ns/uid-p/q", "q", 1)},
		"bound by another scheduler, with a group of another API": {
			aPod("p", withLabel(pluginsLabel, "x"), on("n")), shadow("shadow/ns/uid-p/default", "default", 1),
		},
		"half of our annotations": {aPod("p", inGroup("g"), on("n"), annotated(v1alpha1.AnnotationPodGroupUID, "uid-other")), group},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := api.MembershipOf(c.pod, api.CommitmentOf(c.pod), api.MembershipRule{DefaultQueue: "default", Groups: existing})
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestStatusOf(t *testing.T) {
	cases := map[string]struct {
		pod  *v1.Pod
		want api.TaskStatus
	}{
		"waits":                    {aPod("p"), api.Pending},
		"waits, no phase yet":      {aPod("p", inPhase("")), api.Pending},
		"waits and is deleted":     {aPod("p", deleting), api.Releasing},
		"bound":                    {aPod("p", on("n")), api.Bound},
		"runs":                     {aPod("p", on("n"), inPhase(v1.PodRunning)), api.Running},
		"runs and is deleted":      {aPod("p", on("n"), inPhase(v1.PodRunning), deleting), api.Releasing},
		"its kubelet lost it":      {aPod("p", on("n"), inPhase(v1.PodUnknown)), api.Unknown},
		"succeeded":                {aPod("p", on("n"), inPhase(v1.PodSucceeded)), api.Succeeded},
		"failed":                   {aPod("p", on("n"), inPhase(v1.PodFailed)), api.Failed},
		"failed before it started": {aPod("p", inPhase(v1.PodFailed)), api.Failed},
		"succeeded and is deleted": {aPod("p", on("n"), inPhase(v1.PodSucceeded), deleting), api.Succeeded},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := api.StatusOf(c.pod); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// Where a pod counts follows events of its group, its labels and its own bind.
func TestMembershipFollowsEvents(t *testing.T) {
	const group, shadowOfP = api.JobID("group/ns/g"), api.JobID("shadow/ns/uid-p/default")
	reborn := func(queue string) *v1alpha1.PodGroup {
		g := aGroup("g", queue, 1)
		g.UID = "uid-g2"
		return g
	}
	assume := func(c *model.Cluster) {
		c.Ledger().Place(c.Tasks()["uid-p"], api.Allocated, c.Node("n"))
		c.Ledger().AssumePod(c.Tasks()["uid-p"], dawn)
	}
	cases := map[string]struct {
		given func(c *model.Cluster)
		job   api.JobID
		queue api.QueueID // where it counts
	}{
		"pod before its group": {
			func(c *model.Cluster) {
				c.Events().SetPod(aPod("p", inGroup("g")))
				c.Events().SetPodGroup(aGroup("g", "q", 1))
			},
			group, "q",
		},
		"group before its queue": {
			func(c *model.Cluster) {
				c.Events().SetPodGroup(aGroup("g", "late", 1))
				c.Events().SetPod(aPod("p", inGroup("g")))
				c.Events().SetQueue(aQueue("late"))
			},
			group, "late",
		},
		"a queue that does not exist": {
			func(c *model.Cluster) {
				c.Events().SetPodGroup(aGroup("g", "none", 1))
				c.Events().SetPod(aPod("p", inGroup("g")))
			},
			group, "default",
		},
		"a queue that is deleted": {
			func(c *model.Cluster) {
				c.Events().SetPodGroup(aGroup("g", "q", 1))
				c.Events().SetPod(aPod("p", inGroup("g"), boundBy("q", "uid-g", "n")))
				c.Events().DeleteQueue("q")
			},
			group, "default",
		},
		"relabelled while it waits": {
			func(c *model.Cluster) {
				c.Events().SetPodGroup(aGroup("g", "q", 1))
				c.Events().SetPod(aPod("p", inGroup("g")))
				c.Events().SetPod(aPod("p"))
			},
			shadowOfP, "default",
		},
		"relabelled while its bind is in flight": {
			func(c *model.Cluster) {
				c.Events().SetPodGroup(aGroup("g", "q", 1))
				c.Events().SetPod(aPod("p", inGroup("g")))
				assume(c)
				c.Events().SetPod(aPod("p"))
			},
			group, "q",
		},
		"relabelled while its bind is in flight, which is then refused": {
			func(c *model.Cluster) {
				c.Events().SetPodGroup(aGroup("g", "q", 1))
				c.Events().SetPod(aPod("p", inGroup("g")))
				assume(c)
				c.Events().SetPod(aPod("p"))
				c.Ledger().BindFailed("uid-p", "why")
			},
			shadowOfP, "default",
		},
		"relabelled after it was bound": {
			func(c *model.Cluster) {
				c.Events().SetPodGroup(aGroup("g", "q", 1))
				c.Events().SetPod(aPod("p", boundBy("q", "uid-g", "n")))
			},
			group, "q",
		},
		"group deleted while it waits": {
			func(c *model.Cluster) {
				c.Events().SetPodGroup(aGroup("g", "q", 1))
				c.Events().SetPod(aPod("p", inGroup("g")))
				c.Events().DeletePodGroup("ns/g", "uid-g")
			},
			group, "default",
		},
		"group deleted while it runs": {
			func(c *model.Cluster) {
				c.Events().SetPodGroup(aGroup("g", "q", 1))
				c.Events().SetPod(aPod("p", inGroup("g"), boundBy("q", "uid-g", "n")))
				c.Events().DeletePodGroup("ns/g", "uid-g")
			},
			"orphaned/uid-g/ns/q", "q",
		},
		"group deleted while its bind is in flight": {
			func(c *model.Cluster) {
				c.Events().SetPodGroup(aGroup("g", "q", 1))
				c.Events().SetPod(aPod("p", inGroup("g")))
				assume(c)
				c.Events().DeletePodGroup("ns/g", "uid-g")
			},
			"orphaned/uid-g/ns/q", "q",
		},
		"group deleted and recreated in another queue while it runs": {
			func(c *model.Cluster) {
				c.Events().SetPodGroup(aGroup("g", "q", 1))
				c.Events().SetPod(aPod("p", inGroup("g"), boundBy("q", "uid-g", "n")))
				c.Events().DeletePodGroup("ns/g", "uid-g")
				c.Events().SetPodGroup(reborn("r"))
			},
			"orphaned/uid-g/ns/q", "q",
		},
		"group recreated, the deletion unseen": {
			func(c *model.Cluster) {
				c.Events().SetPodGroup(aGroup("g", "q", 1))
				c.Events().SetPod(aPod("p", inGroup("g"), boundBy("q", "uid-g", "n")))
				c.Events().SetPodGroup(reborn("q"))
			},
			"orphaned/uid-g/ns/q", "q",
		},
		"group recreated, the deletion seen too late": {
			func(c *model.Cluster) {
				c.Events().SetPodGroup(aGroup("g", "q", 1))
				c.Events().SetPod(aPod("p", inGroup("g")))
				c.Events().SetPodGroup(reborn("r"))
				c.Events().DeletePodGroup("ns/g", "uid-g")
			},
			group, "r",
		},
		"the group that a bound pod waits for appears": {
			func(c *model.Cluster) {
				c.Events().SetPod(aPod("p", boundBy("q", "uid-g", "n")))
				c.Events().SetPodGroup(aGroup("g", "q", 1))
			},
			group, "q",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newTestCluster()
			for _, queue := range []string{"default", "q", "r"} {
				c.Events().SetQueue(aQueue(queue))
			}
			c.Events().SetNode(aNode("n", "cpu", "4"))
			tc.given(c)
			c.Events().Recompute()
			task := c.Tasks()["uid-p"]
			if task.Job.ID != tc.job || task.Job.Queue.ID != tc.queue {
				t.Errorf("counts in job %s in queue %s, want %s in %s", task.Job.ID, task.Job.Queue.ID, tc.job, tc.queue)
			}
			held := api.Resource(nil)
			if task.Node != nil {
				held = task.Request
			}
			if got := c.Queues()[tc.queue].Allocated; !got.Equal(held) {
				t.Errorf("the queue holds %v, want %v", got, held)
			}
			if err := audit.Model(c); err != nil {
				t.Error(err)
			}
		})
	}
}

// A decision in flight overrides the watch until the watch shows a node, or the bind is refused.
func TestDecisionInFlightOverridesTheWatch(t *testing.T) {
	cases := map[string]struct {
		then   func(*model.Cluster)
		status api.TaskStatus
		node   string
	}{
		"nothing else is heard": {func(*model.Cluster) {}, api.Binding, "n"},
		"an older event":        {func(c *model.Cluster) { c.Events().SetPod(aPod("p")) }, api.Binding, "n"},
		"the node is deleted":   {func(c *model.Cluster) { c.Events().DeleteNode("n") }, api.Binding, "n"},
		"the watch shows it":    {func(c *model.Cluster) { c.Events().SetPod(aPod("p", on("n"))) }, api.Bound, "n"},
		"another scheduler was faster": {
			func(c *model.Cluster) { c.Events().SetPod(aPod("p", on("other"))) }, api.Bound, "other",
		},
		"refused":            {func(c *model.Cluster) { c.Ledger().BindFailed("uid-p", "why") }, api.Pending, ""},
		"refused, then late": {func(c *model.Cluster) { c.Ledger().BindFailed("uid-p", "why"); c.Events().SetPod(aPod("p", on("n"))) }, api.Bound, "n"},
		"refused after the watch showed it": {
			func(c *model.Cluster) { c.Events().SetPod(aPod("p", on("n"))); c.Ledger().BindFailed("uid-p", "why") }, api.Bound, "n",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newTestCluster()
			c.Events().SetQueue(aQueue("default"))
			c.Events().SetNode(aNode("n", "cpu", "4"))
			c.Events().SetPod(aPod("p"))
			c.Events().Recompute()
			task := c.Tasks()["uid-p"]
			c.Ledger().Place(task, api.Allocated, c.Node("n"))
			c.Ledger().AssumePod(task, dawn)
			tc.then(c)
			if task.Status != tc.status || nameOf(task.Node) != tc.node {
				t.Errorf("%s on %q, want %s on %q", task.Status, nameOf(task.Node), tc.status, tc.node)
			}
			if err := audit.Model(c); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestPodRecreatedWhileItsBindIsInFlight(t *testing.T) {
	c := newTestCluster()
	c.Events().SetQueue(aQueue("default"))
	c.Events().SetNode(aNode("n", "cpu", "4"))
	c.Events().SetPod(aPod("p"))
	c.Events().Recompute()
	old := c.Tasks()["uid-p"]
	c.Ledger().Place(old, api.Allocated, c.Node("n"))
	c.Ledger().AssumePod(old, dawn)

	again := aPod("p")
	again.UID = "uid-p2"
	c.Events().SetPod(again)
	c.Events().DeletePod("uid-p")
	c.Ledger().BindFailed("uid-p", "why") // the answer comes late and must not concern the new pod
	c.Events().Recompute()

	if got := c.Tasks()["uid-p2"].Status; got != api.Pending {
		t.Errorf("the new pod is %s", got)
	}
	if got := c.Node("n").Idle.At(api.CPU); got != 4000 {
		t.Errorf("idle %dm cpu, want 4000m", got)
	}
	if err := audit.Model(c); err != nil {
		t.Error(err)
	}
}

func TestIsMember(t *testing.T) {
	cases := map[string]struct {
		pod   *v1.Pod
		queue string // of the group
		want  bool
	}{
		"label":                                 {aPod("p", inGroup("g")), "q", true},
		"annotation of kube-batch":              {aPod("p", annotated(v1alpha1.AnnotationGroupName, "g")), "q", true},
		"another label before the annotation":   {aPod("p", inGroup("h"), annotated(v1alpha1.AnnotationGroupName, "g")), "q", false},
		"neither":                               {aPod("p"), "q", false},
		"group of another API":                  {aPod("p", withLabel("scheduling.x-k8s.io/pod-group", "g")), "q", false},
		"label, and a group of another API":     {aPod("p", inGroup("g"), withLabel("scheduling.x-k8s.io/pod-group", "h")), "q", true},
		"label in another namespace":            {aPod("p", inGroup("g"), func(p *v1.Pod) { p.Namespace = "other" }), "q", false},
		"bound, label taken off":                {aPod("p", boundBy("q", "uid-g", "n")), "q", true},
		"bound for a group of that name before": {aPod("p", inGroup("g"), boundBy("q", "uid-old", "n")), "q", false},
		"bound in another queue":                {aPod("p", inGroup("g"), boundBy("r", "uid-g", "n")), "q", false},
		"bound in the default queue":            {aPod("p", inGroup("g"), boundBy("r", "uid-g", "n")), "", true},
		"bound as a shadow":                     {aPod("p", inGroup("g"), boundBy("q", "", "n")), "q", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := api.IsMember(c.pod, aGroupOf(api.SourceOwn, "g", c.queue, 1)); got != c.want {
				t.Errorf("got %t, want %t", got, c.want)
			}
		})
	}
}
