package api

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

func TestMemberOf(t *testing.T) {
	live := func(uid types.UID) (string, QueueID, bool) { // one group exists, in queue "q"
		return "ns/g", "q", uid == "uid-g"
	}
	group := Membership{Job: "group/ns/g", Group: "ns/g"}
	shadow := func(id JobID, queue QueueID, minMember int32) Membership {
		return Membership{Job: id, Queue: queue, MinMember: minMember}
	}
	cases := map[string]struct {
		pod  *v1.Pod
		want Membership
	}{
		"label":                       {aPod("p", inGroup("g")), group},
		"annotation of kube-batch":    {aPod("p", annotated(v1alpha1.AnnotationGroupName, "g")), group},
		"label before annotation":     {aPod("p", inGroup("g"), annotated(v1alpha1.AnnotationGroupName, "other")), group},
		"empty label":                 {aPod("p", inGroup(""), annotated(v1alpha1.AnnotationGroupName, "g")), group},
		"group before queue label":    {aPod("p", inGroup("g"), withLabel(v1alpha1.LabelQueue, "other")), group},
		"a group that does not exist": {aPod("p", inGroup("none")), Membership{Job: "group/ns/none", Group: "ns/none"}},
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
		"min-member that is no number":    {aPod("p", annotated(v1alpha1.AnnotationGroupMinMember, "many")), shadow("shadow/ns/uid-p/default", "default", 1)},
		"min-member zero":                 {aPod("p", annotated(v1alpha1.AnnotationGroupMinMember, "0")), shadow("shadow/ns/uid-p/default", "default", 1)},
		"min-member beyond an int32":      {aPod("p", annotated(v1alpha1.AnnotationGroupMinMember, "4294967297")), shadow("shadow/ns/uid-p/default", "default", 1)},
		"bound by us":                     {aPod("p", inGroup("g"), boundBy("q", "uid-g", "n")), group},
		"bound by us, then relabelled":    {aPod("p", inGroup("other"), boundBy("q", "uid-g", "n")), group},
		"bound by us, label taken off":    {aPod("p", boundBy("q", "uid-g", "n")), group},
		"bound by us, group gone":         {aPod("p", inGroup("g"), boundBy("q", "uid-old", "n")), shadow("former/uid-old/ns/q", "q", 1)},
		"bound by us, group moved":        {aPod("p", inGroup("g"), boundBy("r", "uid-g", "n")), shadow("former/uid-g/ns/r", "r", 1)},
		"bound by us as a shadow":         {aPod("p", boundBy("q", "", "n")), shadow("shadow/ns/uid-p/q", "q", 1)},
		"a shadow that joins a group":     {aPod("p", inGroup("g"), boundBy("q", "", "n")), shadow("shadow/ns/uid-p/q", "q", 1)},
		"a shadow that changes its queue": {aPod("p", withLabel(v1alpha1.LabelQueue, "r"), boundBy("q", "", "n")), shadow("shadow/ns/uid-p/q", "q", 1)},
		"bound by somebody else":          {aPod("p", inGroup("g"), on("n")), group},
		"waits, with our annotations forged": {
			aPod("p", inGroup("g"), boundBy("q", "uid-other", "")), group,
		},
		"bound, with the UID of another namespace's group forged": {
			aPod("p", boundBy("q", "uid-g", "n"), func(p *v1.Pod) { p.Namespace = "other" }), shadow("former/uid-g/other/q", "q", 1),
		},
		"half of our annotations": {aPod("p", inGroup("g"), on("n"), annotated(v1alpha1.AnnotationPodGroupUID, "uid-other")), group},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := memberOf(c.pod, bindingOf(c.pod), "default", live)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestStatusOf(t *testing.T) {
	cases := map[string]struct {
		pod  *v1.Pod
		want TaskStatus
	}{
		"waits":                    {aPod("p"), Pending},
		"waits, no phase yet":      {aPod("p", inPhase("")), Pending},
		"waits and is deleted":     {aPod("p", deleting), Releasing},
		"bound":                    {aPod("p", on("n")), Bound},
		"runs":                     {aPod("p", on("n"), inPhase(v1.PodRunning)), Running},
		"runs and is deleted":      {aPod("p", on("n"), inPhase(v1.PodRunning), deleting), Releasing},
		"its kubelet lost it":      {aPod("p", on("n"), inPhase(v1.PodUnknown)), Unknown},
		"succeeded":                {aPod("p", on("n"), inPhase(v1.PodSucceeded)), Succeeded},
		"failed":                   {aPod("p", on("n"), inPhase(v1.PodFailed)), Failed},
		"failed before it started": {aPod("p", inPhase(v1.PodFailed)), Failed},
		"succeeded and is deleted": {aPod("p", on("n"), inPhase(v1.PodSucceeded), deleting), Succeeded},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := statusOf(c.pod); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// Where a pod counts follows events of its group, its labels and its own bind.
func TestMembershipFollowsEvents(t *testing.T) {
	const group, shadowOfP = JobID("group/ns/g"), JobID("shadow/ns/uid-p/default")
	reborn := func(queue string) *v1alpha1.PodGroup {
		g := aGroup("g", queue, 1)
		g.UID = "uid-g2"
		return g
	}
	launch := func(c *Cluster) {
		c.Place(c.Tasks["uid-p"], Allocated, c.Node("n"))
		c.AssumePod(c.Tasks["uid-p"])
	}
	cases := map[string]struct {
		given func(c *Cluster)
		job   JobID
		queue QueueID // where it counts
	}{
		"pod before its group": {
			func(c *Cluster) { c.SetPod(aPod("p", inGroup("g"))); c.SetPodGroup(aGroup("g", "q", 1)) },
			group, "q",
		},
		"group before its queue": {
			func(c *Cluster) {
				c.SetPodGroup(aGroup("g", "late", 1))
				c.SetPod(aPod("p", inGroup("g")))
				c.SetQueue(aQueue("late"))
			},
			group, "late",
		},
		"a queue that does not exist": {
			func(c *Cluster) { c.SetPodGroup(aGroup("g", "none", 1)); c.SetPod(aPod("p", inGroup("g"))) },
			group, "default",
		},
		"a queue that is deleted": {
			func(c *Cluster) {
				c.SetPodGroup(aGroup("g", "q", 1))
				c.SetPod(aPod("p", inGroup("g"), boundBy("q", "uid-g", "n")))
				c.DeleteQueue("q")
			},
			group, "default",
		},
		"relabelled while it waits": {
			func(c *Cluster) {
				c.SetPodGroup(aGroup("g", "q", 1))
				c.SetPod(aPod("p", inGroup("g")))
				c.SetPod(aPod("p"))
			},
			shadowOfP, "default",
		},
		"relabelled while its bind is in flight": {
			func(c *Cluster) {
				c.SetPodGroup(aGroup("g", "q", 1))
				c.SetPod(aPod("p", inGroup("g")))
				launch(c)
				c.SetPod(aPod("p"))
			},
			group, "q",
		},
		"relabelled while its bind is in flight, which is then refused": {
			func(c *Cluster) {
				c.SetPodGroup(aGroup("g", "q", 1))
				c.SetPod(aPod("p", inGroup("g")))
				launch(c)
				c.SetPod(aPod("p"))
				c.BindFailed("uid-p", "why")
			},
			shadowOfP, "default",
		},
		"relabelled after it was bound": {
			func(c *Cluster) {
				c.SetPodGroup(aGroup("g", "q", 1))
				c.SetPod(aPod("p", boundBy("q", "uid-g", "n")))
			},
			group, "q",
		},
		"group deleted while it waits": {
			func(c *Cluster) {
				c.SetPodGroup(aGroup("g", "q", 1))
				c.SetPod(aPod("p", inGroup("g")))
				c.DeletePodGroup("ns/g", "uid-g")
			},
			group, "default",
		},
		"group deleted while it runs": {
			func(c *Cluster) {
				c.SetPodGroup(aGroup("g", "q", 1))
				c.SetPod(aPod("p", inGroup("g"), boundBy("q", "uid-g", "n")))
				c.DeletePodGroup("ns/g", "uid-g")
			},
			"former/uid-g/ns/q", "q",
		},
		"group deleted while its bind is in flight": {
			func(c *Cluster) {
				c.SetPodGroup(aGroup("g", "q", 1))
				c.SetPod(aPod("p", inGroup("g")))
				launch(c)
				c.DeletePodGroup("ns/g", "uid-g")
			},
			"former/uid-g/ns/q", "q",
		},
		"group deleted and recreated in another queue while it runs": {
			func(c *Cluster) {
				c.SetPodGroup(aGroup("g", "q", 1))
				c.SetPod(aPod("p", inGroup("g"), boundBy("q", "uid-g", "n")))
				c.DeletePodGroup("ns/g", "uid-g")
				c.SetPodGroup(reborn("r"))
			},
			"former/uid-g/ns/q", "q",
		},
		"group recreated, the deletion unseen": {
			func(c *Cluster) {
				c.SetPodGroup(aGroup("g", "q", 1))
				c.SetPod(aPod("p", inGroup("g"), boundBy("q", "uid-g", "n")))
				c.SetPodGroup(reborn("q"))
			},
			"former/uid-g/ns/q", "q",
		},
		"group recreated, the deletion seen too late": {
			func(c *Cluster) {
				c.SetPodGroup(aGroup("g", "q", 1))
				c.SetPod(aPod("p", inGroup("g")))
				c.SetPodGroup(reborn("r"))
				c.DeletePodGroup("ns/g", "uid-g")
			},
			group, "r",
		},
		"the group that a bound pod waits for appears": {
			func(c *Cluster) {
				c.SetPod(aPod("p", boundBy("q", "uid-g", "n")))
				c.SetPodGroup(aGroup("g", "q", 1))
			},
			group, "q",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newTestCluster()
			for _, queue := range []string{"default", "q", "r"} {
				c.SetQueue(aQueue(queue))
			}
			c.SetNode(aNode("n", "cpu", "4"))
			tc.given(c)
			c.Recompute()
			task := c.Tasks["uid-p"]
			if task.Job.ID != tc.job || task.Job.Queue.ID != tc.queue {
				t.Errorf("counts in job %s in queue %s, want %s in %s", task.Job.ID, task.Job.Queue.ID, tc.job, tc.queue)
			}
			held := Resource(nil)
			if task.Node != nil {
				held = task.Request
			}
			if got := c.Queues[tc.queue].Allocated; !got.Equal(held) {
				t.Errorf("the queue holds %v, want %v", got, held)
			}
			if err := c.Audit(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A decision in flight overrides the watch until the watch shows a node, or the bind is refused.
func TestDecisionInFlightOverridesTheWatch(t *testing.T) {
	cases := map[string]struct {
		then   func(*Cluster)
		status TaskStatus
		node   string
	}{
		"nothing else is heard": {func(*Cluster) {}, Binding, "n"},
		"an older event":        {func(c *Cluster) { c.SetPod(aPod("p")) }, Binding, "n"},
		"the node is deleted":   {func(c *Cluster) { c.DeleteNode("n") }, Binding, "n"},
		"the watch shows it":    {func(c *Cluster) { c.SetPod(aPod("p", on("n"))) }, Bound, "n"},
		"somebody else was faster": {
			func(c *Cluster) { c.SetPod(aPod("p", on("other"))) }, Bound, "other",
		},
		"refused":            {func(c *Cluster) { c.BindFailed("uid-p", "why") }, Pending, ""},
		"refused, then late": {func(c *Cluster) { c.BindFailed("uid-p", "why"); c.SetPod(aPod("p", on("n"))) }, Bound, "n"},
		"refused after the watch showed it": {
			func(c *Cluster) { c.SetPod(aPod("p", on("n"))); c.BindFailed("uid-p", "why") }, Bound, "n",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newTestCluster()
			c.SetQueue(aQueue("default"))
			c.SetNode(aNode("n", "cpu", "4"))
			c.SetPod(aPod("p"))
			c.Recompute()
			task := c.Tasks["uid-p"]
			c.Place(task, Allocated, c.Node("n"))
			c.AssumePod(task)
			tc.then(c)
			if task.Status != tc.status || nameOf(task.Node) != tc.node {
				t.Errorf("%s on %q, want %s on %q", task.Status, nameOf(task.Node), tc.status, tc.node)
			}
			if err := c.Audit(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestPodRecreatedWhileItsBindIsInFlight(t *testing.T) {
	c := newTestCluster()
	c.SetQueue(aQueue("default"))
	c.SetNode(aNode("n", "cpu", "4"))
	c.SetPod(aPod("p"))
	c.Recompute()
	old := c.Tasks["uid-p"]
	c.Place(old, Allocated, c.Node("n"))
	c.AssumePod(old)

	again := aPod("p")
	again.UID = "uid-p2"
	c.SetPod(again)
	c.DeletePod("uid-p")
	c.BindFailed("uid-p", "why") // the answer comes late and must not concern the new pod
	c.Recompute()

	if got := c.Tasks["uid-p2"].Status; got != Pending {
		t.Errorf("the new pod is %s", got)
	}
	if got := c.Node("n").Idle.At(CPU); got != 4000 {
		t.Errorf("idle %dm cpu, want 4000m", got)
	}
	if err := c.Audit(); err != nil {
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
		"label in another namespace":            {aPod("p", inGroup("g"), func(p *v1.Pod) { p.Namespace = "other" }), "q", false},
		"bound, label taken off":                {aPod("p", boundBy("q", "uid-g", "n")), "q", true},
		"bound for a group of that name before": {aPod("p", inGroup("g"), boundBy("q", "uid-old", "n")), "q", false},
		"bound in another queue":                {aPod("p", inGroup("g"), boundBy("r", "uid-g", "n")), "q", false},
		"bound in the default queue":            {aPod("p", inGroup("g"), boundBy("r", "uid-g", "n")), "", true},
		"bound as a shadow":                     {aPod("p", inGroup("g"), boundBy("q", "", "n")), "q", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := IsMember(c.pod, aGroup("g", c.queue, 1)); got != c.want {
				t.Errorf("got %t, want %t", got, c.want)
			}
		})
	}
}
