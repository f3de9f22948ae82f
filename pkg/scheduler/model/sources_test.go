// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/audit"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

const pluginsLabel = api.LabelSchedulerPluginsGroup

// aGroupOf returns a group whose UID is that of aGroup for groups of this scheduler, and has the source in it otherwise.
func aGroupOf(source api.GroupSource, name, queue string, minMember int32) *api.Group {
	g := &api.Group{PodGroup: aGroup(name, queue, minMember), Source: source}
	if source != api.SourceOwn {
		g.UID = types.UID("uid-" + string(source) + "-" + name)
	}
	return g
}

func basicGroup(name string) *api.Group {
	g := aGroupOf(api.SourceNative, name, "", 1)
	g.Basic = true
	return g
}

// toKAI gives a pod to KAI Scheduler by name.
func toKAI(p *v1.Pod) { p.Spec.SchedulerName = api.KAISchedulerName }

func inNative(name string) func(*v1.Pod) {
	return func(p *v1.Pod) { p.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &name} }
}

// groups are api.Groups.
type groups []*api.Group

func (gs groups) find(is func(*api.Group) bool) *api.Group {
	if i := slices.IndexFunc(gs, is); i >= 0 {
		return gs[i]
	}
	return nil
}

func (gs groups) Group(k api.GroupKey) *api.Group {
	return gs.find(func(g *api.Group) bool { return g.Key() == k })
}

func (gs groups) GroupWithUID(uid types.UID) *api.Group {
	return gs.find(func(g *api.Group) bool { return g.UID == uid })
}

func (gs groups) QueueOf(g *api.Group) api.QueueID { return api.QueueID(g.Spec.Queue) }

// TestMemberOfSources: which group a pod is in that names groups of other APIs. Own group g and Volcano's groups g and v
// exist, and the native groups gang and basic.
func TestMemberOfSources(t *testing.T) {
	existing := groups{
		aGroupOf(api.SourceOwn, "g", "q", 1), aGroupOf(api.SourceVolcano, "g", "q", 1), aGroupOf(api.SourceVolcano, "v", "q", 1),
		aGroupOf(api.SourceNative, "gang", "q", 1), basicGroup("basic"),
	}
	kubeBatch := func(name string) func(*v1.Pod) { return annotated(v1alpha1.AnnotationGroupName, name) }
	plugins := func(name string) func(*v1.Pod) { return withLabel(pluginsLabel, name) }
	all, none := api.AllGroupSources(), api.GroupSources{}
	cases := map[string]struct {
		pod     *v1.Pod
		sources api.GroupSources
		want    api.JobID
	}{
		"native":                                   {aPod("p", inNative("gang")), all, "native/ns/gang"},
		"native, not enabled":                      {aPod("p", inNative("gang")), api.GroupSources{Volcano: true}, "unsupported/ns/field spec.schedulingGroup/gang/default"},
		"native, does not exist":                   {aPod("p", inNative("none")), all, "native/ns/none"},
		"basic":                                    {aPod("p", inNative("basic"), ownedBy("rs")), all, "shadow/ns/uid-rs/default"},
		"basic, and a label":                       {aPod("p", inNative("basic"), plugins("x")), all, "scheduler-plugins/ns/x"},
		"basic, and a group of YuniKorn":           {aPod("p", inNative("basic"), annotated("yunikorn.apache.org/task-group-name", "x")), all, "unsupported/ns/annotation yunikorn.apache.org/task-group-name/x/default"},
		"basic, and a group of KAI":                {aPod("p", inNative("basic"), annotated("pod-group-name", "x")), all, "kai/ns/x"},
		"kai":                                      {aPod("p", annotated("pod-group-name", "x"), withLabel("kai.scheduler/subgroup-name", "a")), all, "kai/ns/x"},
		"kai, not enabled":                         {aPod("p", annotated("pod-group-name", "x")), api.GroupSources{Volcano: true}, "unsupported/ns/annotation pod-group-name/x/default"},
		"kai, a subgroup without a group":          {aPod("p", withLabel("kai.scheduler/subgroup-name", "a")), all, "unsupported/ns/label kai.scheduler/subgroup-name/a/default"},
		"kai, no group yet":                        {aPod("p", toKAI), all, "unsupported/ns/annotation pod-group-name//default"},
		"kai, no group yet, not enabled":           {aPod("p", toKAI), none, "shadow/ns/uid-p/default"},
		"kai, no group yet, but a group key":       {aPod("p", toKAI, annotated(v1alpha1.AnnotationGroupKey, "k")), all, "keyed/ns/default/k"},
		"kai, bound without a group":               {aPod("p", toKAI, on("n")), all, "shadow/ns/uid-p/default"},
		"kai fourth":                               {aPod("p", kubeBatch("v"), annotated("pod-group-name", "x")), all, "volcano/ns/v"},
		"scheduler-plugins":                        {aPod("p", plugins("x")), all, "scheduler-plugins/ns/x"},
		"scheduler-plugins, not enabled":           {aPod("p", plugins("x")), api.GroupSources{Native: true}, "unsupported/ns/label scheduling.x-k8s.io/pod-group/x/default"},
		"scheduler-plugins, former label":          {aPod("p", withLabel("pod-group.scheduling.sigs.k8s.io", "x")), all, "unsupported/ns/label pod-group.scheduling.sigs.k8s.io/x/default"},
		"volcano":                                  {aPod("p", kubeBatch("v")), all, "volcano/ns/v"},
		"volcano, not enabled":                     {aPod("p", kubeBatch("v")), none, "group/ns/v"},
		"volcano and own":                          {aPod("p", kubeBatch("g")), all, "group/ns/g"},
		"neither volcano nor own":                  {aPod("p", kubeBatch("x")), all, "volcano/ns/x"},
		"own label first":                          {aPod("p", inGroup("g"), inNative("gang"), plugins("x"), kubeBatch("v")), all, "group/ns/g"},
		"native second":                            {aPod("p", inNative("gang"), plugins("x"), kubeBatch("v")), all, "native/ns/gang"},
		"scheduler-plugins third":                  {aPod("p", plugins("x"), kubeBatch("v")), all, "scheduler-plugins/ns/x"},
		"bound for a group":                        {aPod("p", boundBy("q", "uid-volcano-v", "n")), all, "volcano/ns/v"},
		"bound for a group, source switched off":   {aPod("p", boundBy("q", "uid-volcano-x", "n")), none, "orphaned/uid-volcano-x/ns/q"},
		"bound with the UID of a basic group":      {aPod("p", boundBy("", "uid-native-basic", "n")), all, "orphaned/uid-native-basic/ns/"},
		"bound for a group that is in other queue": {aPod("p", boundBy("r", "uid-volcano-v", "n")), all, "orphaned/uid-volcano-v/ns/r"},
		"bound by another scheduler":               {aPod("p", plugins("x"), on("n")), all, "scheduler-plugins/ns/x"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := api.MembershipOf(c.pod, api.CommitmentOf(c.pod), api.MembershipRule{DefaultQueue: "default", Sources: c.sources, Groups: existing})
			if got.Job != c.want {
				t.Errorf("in job %s, want %s", got.Job, c.want)
			}
		})
	}
}

func newClusterOfSources() *model.Cluster {
	return model.NewCluster(model.Options{SchedulerNames: []string{"batch-scheduler"}, DefaultQueue: "default", GroupSources: api.AllGroupSources()})
}

// TestGroupsOfSources applies events of groups of other APIs, and compares where pods count: "pod: job in queue".
func TestGroupsOfSources(t *testing.T) {
	plugins := func(p *v1.Pod) { withLabel(pluginsLabel, "g")(p) }
	queue := func(name string) func(*v1.Pod) { return withLabel(v1alpha1.LabelQueue, name) }
	reborn := func(min int32) *api.Group {
		g := aGroupOf(api.SourceSchedulerPlugins, "g", "", min)
		g.UID = "uid-reborn"
		return g
	}
	cases := map[string]struct {
		given    func(model.Events)
		want     []string
		conflict string // reason of the job of p
		message  string // what it says, unless empty
	}{
		"groups of one name in several APIs, and in two namespaces": {
			given: func(e model.Events) {
				e.SetGroup(aGroupOf(api.SourceSchedulerPlugins, "g", "q", 1))
				e.SetGroup(aGroupOf(api.SourceOwn, "g", "r", 1))
				other := aGroupOf(api.SourceSchedulerPlugins, "g", "r", 1)
				other.Namespace, other.UID = "other", "uid-other"
				e.SetGroup(other)
				e.SetPod(aPod("a", inGroup("g")))
				e.SetPod(aPod("b", plugins))
				e.SetPod(aPod("c", plugins, func(p *v1.Pod) { p.Namespace = "other" }))
			},
			want: []string{"a: group/ns/g in r", "b: scheduler-plugins/ns/g in q", "c: scheduler-plugins/other/g in r"},
		},
		"the queue label of the pods": {
			given: func(e model.Events) {
				e.SetGroup(aGroupOf(api.SourceSchedulerPlugins, "g", "", 2))
				e.SetPod(aPod("a", plugins, queue("q")))
				e.SetPod(aPod("b", plugins))
			},
			want: []string{"a: scheduler-plugins/ns/g in q", "b: scheduler-plugins/ns/g in q"},
		},
		"pods before their group": {
			given: func(e model.Events) {
				e.SetPod(aPod("a", plugins, queue("q")))
				e.SetPod(aPod("b", plugins, queue("q"), boundBy("q", "uid-scheduler-plugins-g", "n")))
				e.SetGroup(aGroupOf(api.SourceSchedulerPlugins, "g", "", 2))
			},
			want: []string{"a: scheduler-plugins/ns/g in q", "b: scheduler-plugins/ns/g in q"},
		},
		"bound pods decide, not the labels of later ones": {
			given: func(e model.Events) {
				e.SetGroup(aGroupOf(api.SourceSchedulerPlugins, "g", "", 1))
				e.SetPod(aPod("a", plugins, boundBy("r", "uid-scheduler-plugins-g", "n")))
				e.SetPod(aPod("p", plugins, queue("q")))
			},
			want:     []string{"a: scheduler-plugins/ns/g in r", "p: scheduler-plugins/ns/g in r"},
			conflict: v1alpha1.ReasonQueueConflict,
		},
		"pods that name different queues": {
			given: func(e model.Events) {
				e.SetGroup(aGroupOf(api.SourceSchedulerPlugins, "g", "", 2))
				e.SetPod(aPod("p", plugins, queue("r")))
				e.SetPod(aPod("b", plugins, queue("q")))
			},
			want:     []string{"b: scheduler-plugins/ns/g in q", "p: scheduler-plugins/ns/g in q"},
			conflict: v1alpha1.ReasonQueueConflict,
			message:  "the pods of the group name the queues q and r; name one queue with the label scheduling.batch-scheduler.dev/queue on the group",
		},
		"a queue that the group names later, instead of the different ones of its pods": {
			given: func(e model.Events) {
				e.SetGroup(aGroupOf(api.SourceSchedulerPlugins, "g", "", 2))
				e.SetPod(aPod("p", plugins, queue("r")))
				e.SetPod(aPod("b", plugins, queue("q")))
				e.Recompute()
				e.SetGroup(aGroupOf(api.SourceSchedulerPlugins, "g", "r", 2))
			},
			want: []string{"b: scheduler-plugins/ns/g in r", "p: scheduler-plugins/ns/g in r"},
		},
		"pods that no longer name different queues": {
			given: func(e model.Events) {
				e.SetGroup(aGroupOf(api.SourceSchedulerPlugins, "g", "", 2))
				e.SetPod(aPod("p", plugins, queue("r")))
				e.SetPod(aPod("b", plugins, queue("q")))
				e.Recompute()
				e.DeletePod("uid-b")
			},
			want: []string{"p: scheduler-plugins/ns/g in r"},
		},
		"the queue of the group, whatever its pods name": {
			given: func(e model.Events) {
				e.SetGroup(aGroupOf(api.SourceSchedulerPlugins, "g", "r", 1))
				e.SetPod(aPod("p", plugins, queue("q")))
			},
			want: []string{"p: scheduler-plugins/ns/g in r"},
		},
		"the queue of the namespace": {
			given: func(e model.Events) {
				e.SetGroup(aGroupOf(api.SourceSchedulerPlugins, "g", "", 1))
				e.SetPod(aPod("p", plugins))
				e.Recompute()
				e.SetNamespace(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{v1alpha1.LabelDefaultQueue: "q"}}})
			},
			want: []string{"p: scheduler-plugins/ns/g in q"},
		},
		"the own group of the annotation appears": {
			given: func(e model.Events) {
				e.SetGroup(aGroupOf(api.SourceVolcano, "g", "q", 1))
				e.SetPod(aPod("p", annotated(v1alpha1.AnnotationGroupName, "g")))
				e.Recompute()
				e.SetPodGroup(aGroup("g", "r", 1))
			},
			want: []string{"p: group/ns/g in r"},
		},
		"the own group of the annotation is deleted": {
			given: func(e model.Events) {
				e.SetGroup(aGroupOf(api.SourceVolcano, "g", "q", 1))
				e.SetPodGroup(aGroup("g", "r", 1))
				e.SetPod(aPod("p", annotated(v1alpha1.AnnotationGroupName, "g")))
				e.Recompute()
				e.DeletePodGroup("ns/g", "uid-g")
			},
			want: []string{"p: volcano/ns/g in q"},
		},
		"a basic group appears": {
			given: func(e model.Events) {
				e.SetPod(aPod("p", inNative("g")))
				e.Recompute()
				e.SetGroup(basicGroup("g"))
			},
			want: []string{"p: shadow/ns/uid-p/default in default"},
		},
		"a basic group becomes a gang": {
			given: func(e model.Events) {
				e.SetGroup(basicGroup("g"))
				e.SetPod(aPod("p", inNative("g")))
				e.Recompute()
				e.SetGroup(aGroupOf(api.SourceNative, "g", "q", 2))
			},
			want: []string{"p: native/ns/g in q"},
		},
		"a basic group is deleted": {
			given: func(e model.Events) {
				e.SetGroup(basicGroup("g"))
				e.SetPod(aPod("p", inNative("g")))
				e.Recompute()
				e.DeleteGroup(basicGroup("g").Key(), basicGroup("g").UID)
			},
			want:     []string{"p: native/ns/g in default"},
			conflict: v1alpha1.ReasonGroupNotFound,
		},
		"a group with a field that is not supported": {
			given: func(e model.Events) {
				g := aGroupOf(api.SourceVolcano, "g", "q", 1)
				g.NotSupported = "spec.networkTopology"
				e.SetGroup(g)
				e.SetPod(aPod("p", annotated(v1alpha1.AnnotationGroupName, "g")))
			},
			want:     []string{"p: volcano/ns/g in q"},
			conflict: v1alpha1.ReasonNotSupported,
			message:  `group "g" of Volcano (scheduling.volcano.sh) asks for what this scheduler does not support: spec.networkTopology`,
		},
		"a group is deleted and created again while a pod runs": {
			given: func(e model.Events) {
				e.SetGroup(aGroupOf(api.SourceSchedulerPlugins, "g", "", 1))
				e.SetPod(aPod("a", plugins, queue("q"), boundBy("q", "uid-scheduler-plugins-g", "n")))
				e.Recompute()
				e.SetGroup(reborn(5))
				e.SetPod(aPod("p", plugins, queue("r")))
			},
			want: []string{"a: orphaned/uid-scheduler-plugins-g/ns/q in q", "p: scheduler-plugins/ns/g in r"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newClusterOfSources()
			for _, name := range []string{"default", "q", "r"} {
				c.Events().SetQueue(aQueue(name))
			}
			c.Events().SetNode(aNode("n", "cpu", "4"))
			tc.given(c.Events())
			c.Events().Recompute()
			var got []string
			for _, task := range c.Tasks() {
				got = append(got, task.Pod.Name+": "+string(task.Job.ID)+" in "+string(task.Job.Queue.ID))
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if task := c.Tasks()["uid-p"]; task != nil {
				reason, message := "", ""
				if v := c.Admissible(task.Job); v != nil {
					reason, message = v.Reason, v.Message(c.Dims())
				}
				if reason != tc.conflict {
					t.Errorf("reason %q, want %q", reason, tc.conflict)
				}
				if tc.message != "" && message != tc.message {
					t.Errorf("message %q, want %q", message, tc.message)
				}
			}
			if err := audit.Model(c); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestPriorityOfGroup: the number of a group counts, and not the priorities of its pods or of its class.
func TestPriorityOfGroup(t *testing.T) {
	c := newClusterOfSources()
	g := aGroupOf(api.SourceNative, "g", "", 1)
	g.Priority, g.Spec.PriorityClassName = new(int32(5)), "unknown"
	c.Events().SetGroup(g)
	c.Events().SetPod(aPod("p", inNative("g"), func(p *v1.Pod) { p.Spec.Priority = new(int32(9)) }))
	c.Events().Recompute()
	j := c.Tasks()["uid-p"].Job
	if _, unknown := j.UnknownPriorityClass(); j.Priority != 5 || unknown {
		t.Errorf("priority %d, want 5; its class is not looked up", j.Priority)
	}
	if err := audit.Model(c); err != nil {
		t.Error(err)
	}
}

// TestMembersOfAnotherScheduler: a native gang that lacks pods reports those that name another scheduler.
func TestMembersOfAnotherScheduler(t *testing.T) {
	c := newClusterOfSources()
	c.Events().SetQueue(aQueue("default"))
	c.Events().SetGroup(aGroupOf(api.SourceNative, "g", "", 3))
	for _, name := range []string{"a", "b"} {
		c.Events().SetPod(aPod(name, inNative("g")))
		c.Events().SetPod(aPod(name+"-foreign", inNative("g"), foreign))
	}
	c.Events().SetPod(aPod("ended", inNative("g"), foreign, inPhase(v1.PodSucceeded)))
	c.Events().Recompute()
	job := c.Tasks()["uid-a"].Job
	const want = "2 of 4 members name another scheduler"
	if v := c.Admissible(job); v == nil || v.Reason != v1alpha1.ReasonNotEnoughPods || v.Have != 2 || v.Need != 3 || v.Detail != want {
		t.Errorf("got %+v, want NotEnoughPods and %q", v, want)
	}
	c.Events().SetPod(aPod("c", inNative("g")))
	c.Events().Recompute()
	if v := c.Admissible(job); v != nil {
		t.Errorf("with three members: %+v", v)
	}
	if err := audit.Model(c); err != nil {
		t.Error(err)
	}
}
