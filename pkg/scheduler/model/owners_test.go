// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"fmt"
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

// Labels by which the pods of these tests name their owner, its UID, and their stage.
const (
	ownerLabel    = "test/owner"
	ownerUIDLabel = "test/owner-uid"
	stageLabel    = "test/stage"
	attemptLabel  = "test/attempt"
)

// labelRules are rules by labels.
type labelRules struct{}

func (labelRules) OwnerOf(pod *v1.Pod) (api.OwnerRef, bool) {
	name := pod.Labels[ownerLabel]
	return api.OwnerRef{OwnerKey: ownerKey(name), UID: types.UID(pod.Labels[ownerUIDLabel])}, name != ""
}

func ownerKey(name string) api.OwnerKey {
	return api.OwnerKey{Kind: "Set", Namespace: "ns", Name: name}
}

// anOwner is an object with a gang for each size; pods with the label stage-0 are in the first one.
func anOwner(name, uid string, sizes ...int32) *api.Owner {
	o := &api.Owner{Kind: "Set", ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(uid)}}
	for i, n := range sizes {
		stage := fmt.Sprintf("stage-%d", i)
		o.Gangs = append(o.Gangs, api.OwnerGang{Stage: stage, Label: stageLabel, Values: []string{stage}, KeyLabels: []string{attemptLabel}, MinMember: n})
	}
	return o
}

func ofOwner(name, uid string) podChange {
	return func(p *v1.Pod) {
		withLabel(ownerLabel, name)(p)
		withLabel(ownerUIDLabel, uid)(p)
		withLabel(stageLabel, "stage-0")(p)
	}
}

func newClusterOfOwners() *model.Cluster {
	return model.NewCluster(model.Options{
		SchedulerNames: []string{ourScheduler}, DefaultQueue: "default", GroupSources: api.AllGroupSources(), OwnerRules: labelRules{}, KueueGroups: true,
	})
}

// TestGangsOfOwners applies events of owners, and compares where pods count: "pod: job, its size and its key".
func TestGangsOfOwners(t *testing.T) {
	const unknown = "unknown/ns/default/Set/o/u, 1 of ns/o"
	ref := api.OwnerRef{OwnerKey: ownerKey("o"), UID: "u"}
	byName := api.OwnerRef{OwnerKey: ownerKey("o")}
	cases := map[string]struct {
		given   func(model.Events, model.OwnerEvents)
		want    []string
		reason  string // of the job of pod a
		missing []api.OwnerRef
	}{
		"an owner": {
			given: func(e model.Events, owners model.OwnerEvents) {
				owners.Set(anOwner("o", "u", 2))
				e.SetPod(aPod("a", ofOwner("o", "u")))
				e.SetPod(aPod("b", ofOwner("o", "u")))
			},
			want: []string{"a: owned/ns/default/u/stage-0/, 2 of ns/o", "b: owned/ns/default/u/stage-0/, 2 of ns/o"},
		},
		"pods before their owner": {
			given: func(e model.Events, owners model.OwnerEvents) {
				e.SetPod(aPod("a", ofOwner("o", "u")))
				e.Recompute()
				owners.Set(anOwner("o", "u", 2))
			},
			want: []string{"a: owned/ns/default/u/stage-0/, 2 of ns/o"},
		},
		"an owner that is not known": {
			given:   func(e model.Events, owners model.OwnerEvents) { e.SetPod(aPod("a", ofOwner("o", "u"))) },
			want:    []string{"a: " + unknown},
			reason:  v1alpha1.ReasonOwnerUnknown,
			missing: []api.OwnerRef{ref},
		},
		"an owner that cannot be read": {
			given: func(e model.Events, owners model.OwnerEvents) {
				o := anOwner("o", "u")
				o.Problem = "malformed"
				owners.Set(o)
				e.SetPod(aPod("a", ofOwner("o", "u")))
			},
			want:   []string{"a: " + unknown},
			reason: v1alpha1.ReasonOwnerUnknown,
		},
		"an owner that does not exist": {
			given: func(e model.Events, owners model.OwnerEvents) {
				e.SetPod(aPod("a", ofOwner("o", "u"), ownedBy("job")))
				owners.Gone(ref)
			},
			want: []string{"a: shadow/ns/uid-job/default, 1 of ns/job"},
		},
		"a pod that comes when the owner does not exist any more": {
			given: func(e model.Events, owners model.OwnerEvents) {
				e.SetPod(aPod("b", ofOwner("o", ""), ownedBy("job")))
				owners.Gone(byName)
				e.SetPod(aPod("a", ofOwner("o", ""), ownedBy("job")))
			},
			want:    []string{"a: unknown/ns/default/Set/o/, 1 of ns/o", "b: shadow/ns/uid-job/default, 1 of ns/job"},
			reason:  v1alpha1.ReasonOwnerUnknown,
			missing: []api.OwnerRef{byName},
		},
		"an owner that is created again": {
			given: func(e model.Events, owners model.OwnerEvents) {
				e.SetPod(aPod("a", ofOwner("o", ""), ownedBy("job")))
				e.SetPod(aPod("b", ofOwner("o", "u"), ownedBy("job")))
				owners.Gone(byName)
				owners.Gone(ref)
				owners.Set(anOwner("o", "v", 3))
			},
			want: []string{"a: owned/ns/default/v/stage-0/, 3 of ns/o", "b: shadow/ns/uid-job/default, 1 of ns/job"},
		},
		"another owner of the same name": {
			given: func(e model.Events, owners model.OwnerEvents) {
				owners.Set(anOwner("o", "u", 2))
				e.SetPod(aPod("a", ofOwner("o", "u")))
				e.SetPod(aPod("b", ofOwner("o", "")))
				owners.Set(anOwner("o", "v", 3))
			},
			want:    []string{"a: " + unknown, "b: owned/ns/default/v/stage-0/, 3 of ns/o"},
			reason:  v1alpha1.ReasonOwnerUnknown,
			missing: []api.OwnerRef{ref},
		},
		"an owner that is deleted": {
			given: func(e model.Events, owners model.OwnerEvents) {
				owners.Set(anOwner("o", "u", 2))
				e.SetPod(aPod("a", ofOwner("o", "u")))
				owners.Delete(ownerKey("o"), "other")
				owners.Delete(ownerKey("o"), "u")
			},
			want:    []string{"a: " + unknown},
			reason:  v1alpha1.ReasonOwnerUnknown,
			missing: []api.OwnerRef{ref},
		},
		"an owner whose size changes": {
			given: func(e model.Events, owners model.OwnerEvents) {
				owners.Set(anOwner("o", "u", 2))
				e.SetPod(aPod("a", ofOwner("o", "u")))
				e.Recompute()
				owners.Set(anOwner("o", "u", 5))
			},
			want: []string{"a: owned/ns/default/u/stage-0/, 5 of ns/o"},
		},
		"an owner whose size changes while its job has no pods": {
			given: func(e model.Events, owners model.OwnerEvents) {
				owners.Set(anOwner("o", "u", 2))
				e.SetPod(aPod("b", ofOwner("o", "u")))
				e.DeletePod("uid-b")
				owners.Set(anOwner("o", "u", 5))
				e.SetPod(aPod("a", ofOwner("o", "u")))
			},
			want: []string{"a: owned/ns/default/u/stage-0/, 5 of ns/o"},
		},
		"an owner that makes no gang any more": {
			given: func(e model.Events, owners model.OwnerEvents) {
				owners.Set(anOwner("o", "u", 2))
				e.SetPod(aPod("a", ofOwner("o", "u"), ownedBy("job")))
				e.Recompute()
				owners.Set(anOwner("o", "u"))
			},
			want: []string{"a: shadow/ns/uid-job/default, 1 of ns/job"},
		},
		"stages, attempts and queues": {
			given: func(e model.Events, owners model.OwnerEvents) {
				owners.Set(anOwner("o", "u", 2, 3))
				e.SetPod(aPod("a", ofOwner("o", "u")))
				e.SetPod(aPod("b", ofOwner("o", "u"), withLabel(stageLabel, "stage-1")))
				e.SetPod(aPod("c", ofOwner("o", "u"), withLabel(attemptLabel, "1")))
				e.SetPod(aPod("d", ofOwner("o", "u"), withLabel(v1alpha1.LabelQueue, "q")))
				e.SetPod(aPod("e", ofOwner("o", "u"), withLabel(stageLabel, "none"), ownedBy("job")))
				e.SetPod(aPod("f", ofOwner("o", "u"), boundBy("q", "", "n")))
			},
			want: []string{
				"a: owned/ns/default/u/stage-0/, 2 of ns/o", "b: owned/ns/default/u/stage-1/, 3 of ns/o", "c: owned/ns/default/u/stage-0/1, 2 of ns/o",
				"d: owned/ns/q/u/stage-0/, 2 of ns/o", "e: shadow/ns/uid-job/default, 1 of ns/job", "f: owned/ns/q/u/stage-0/, 2 of ns/o",
			},
		},
		"what comes before the owner": {
			given: func(e model.Events, owners model.OwnerEvents) {
				owners.Set(anOwner("o", "u", 9))
				e.SetPodGroup(aGroup("g", "", 1))
				e.SetPod(aPod("a", ofOwner("o", "u"), inGroup("g")))
				e.SetPod(aPod("b", ofOwner("o", "u"), annotated(v1alpha1.AnnotationGroupKey, "k"), annotated(v1alpha1.AnnotationMinMember, "3")))
				e.SetPod(aPod("c", ofOwner("o", "u"), withLabel("kueue.x-k8s.io/pod-group-name", "kq"), annotated("kueue.x-k8s.io/pod-group-total-count", "4")))
				e.SetPod(aPod("d", ofOwner("o", "u"), annotated("yunikorn.apache.org/task-group-name", "x")))
				e.SetPod(aPod("e", ofOwner("o", "u"), annotated(v1alpha1.AnnotationGroupMinMember, "5"), ownedBy("job")))
				e.SetGroup(basicGroup("basic"))
				e.SetPod(aPod("f", ofOwner("o", "u"), inNative("basic")))
			},
			want: []string{
				"a: group/ns/g, 1 of ns/g", "b: keyed/ns/default/k, 3 of ns/k", "c: keyed/ns/default/kq, 4 of ns/kq",
				"d: unsupported/ns/annotation yunikorn.apache.org/task-group-name/x/default, 1 of ns/d", "e: shadow/ns/uid-job/default, 5 of ns/job",
				"f: owned/ns/default/u/stage-0/, 9 of ns/o",
			},
		},
		"groups of Kueue that disagree": {
			given: func(e model.Events, _ model.OwnerEvents) {
				e.SetPod(aPod("a", withLabel("kueue.x-k8s.io/pod-group-name", "k"), annotated("kueue.x-k8s.io/pod-group-total-count", "4")))
				e.SetPod(aPod("b", withLabel("kueue.x-k8s.io/pod-group-name", "k"), annotated("kueue.x-k8s.io/pod-group-total-count", "5")))
			},
			want:   []string{"a: keyed/ns/default/k, 5 of ns/k", "b: keyed/ns/default/k, 5 of ns/k"},
			reason: v1alpha1.ReasonGroupConflict,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newClusterOfOwners()
			c.Events().SetQueue(aQueue("default"))
			c.Events().SetQueue(aQueue("q"))
			tc.given(c.Events(), model.Owners(c))
			c.Events().Recompute()
			var got []string
			for _, task := range c.Tasks() {
				got = append(got, fmt.Sprintf("%s: %s, %d of %s", task.Pod.Name, task.Job.ID, task.Job.MinMember, task.Job.Key))
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			reason := ""
			if v := c.Admissible(c.Tasks()["uid-a"].Job); v != nil {
				reason = v.Reason
			}
			if reason != tc.reason {
				t.Errorf("reason %q, want %q", reason, tc.reason)
			}
			missing, changed := model.Owners(c).Missing()
			if !changed || !slices.Equal(missing, tc.missing) {
				t.Errorf("missing %v, want %v", missing, tc.missing)
			}
			if _, changed = model.Owners(c).Missing(); changed {
				t.Error("the missing owners have changed without an event")
			}
			if err := audit.Model(c); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestUnknownOwnersDemandNothing: what pods request whose owner is not known does not count in their queue.
func TestUnknownOwnersDemandNothing(t *testing.T) {
	c := newClusterOfOwners()
	c.Events().SetQueue(aQueue("default"))
	c.Events().SetPod(aPod("a", ofOwner("o", "u")))
	c.Events().Recompute()
	queue := c.Queues()["default"]
	if !queue.Requested.IsZero() {
		t.Errorf("the queue requests %v, want nothing", queue.Requested)
	}
	before := c.Generations()
	model.Owners(c).Set(anOwner("o", "u", 2))
	c.Events().Recompute()
	if queue.Requested.IsZero() || c.Generations().Model == before.Model {
		t.Errorf("the queue requests %v after its owner is known; generation %d, was %d", queue.Requested, c.Generations().Model, before.Model)
	}
}
