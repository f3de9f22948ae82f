// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// groups are the PodGroups of all sources.
type groups struct {
	byKey map[api.GroupKey]*api.Group
	byUID map[types.UID]*api.Group
}

func newGroups() groups {
	return groups{map[api.GroupKey]*api.Group{}, map[types.UID]*api.Group{}}
}

// seenBy are the groups as the rule of membership sees them for one pod. They implement api.Groups.
type seenBy struct {
	groups
	binding *api.Commitment
}

// Group implements api.Groups.
func (s seenBy) Group(key api.GroupKey) *api.Group { return s.byKey[key] }

// GroupWithUID implements api.Groups.
func (s seenBy) GroupWithUID(uid types.UID) *api.Group { return s.byUID[uid] }

// QueueOf implements api.Groups. A group that names no queue is in the queue that the pod was bound for.
func (s seenBy) QueueOf(g *api.Group) api.QueueID {
	if g.Spec.Queue == "" && s.binding != nil {
		return s.binding.Queue
	}
	return api.QueueID(g.Spec.Queue)
}

// membership is the job that a pod counts in.
type membership struct {
	key    string
	name   string // for people
	group  *api.GroupKey
	min    int // without group
	single bool
}

func (gs groups) membershipOf(p *v1.Pod, sources api.GroupSources) membership {
	binding := api.CommitmentOf(p)
	m := api.MembershipOf(p, binding, api.MembershipRule{Sources: sources, Groups: seenBy{gs, binding}})
	is := membership{key: string(m.Job), name: p.Namespace + "/" + p.Name, min: int(m.MinMember)}
	if m.Group != "" {
		is.name, is.group = m.Group, &api.GroupKey{Source: m.Source, Name: m.Group}
		return is
	}
	if m.MinMember <= 1 {
		is.key, is.single = "pod/"+string(p.UID), true
		return is
	}
	if key, keyed := strings.CutPrefix(is.key, "keyed/"); keyed {
		is.name = p.Namespace + "/" + key[strings.LastIndexByte(key, '/')+1:]
	} else if controller := metav1.GetControllerOfNoCopy(p); controller != nil {
		is.name = p.Namespace + "/" + controller.Name
	}
	return is
}

// leastOf returns how many pods of a group start together: its minimum, or the sum of those of its subgroups.
func leastOf(g *api.Group) int {
	parents := map[string]bool{}
	for i := range g.Spec.SubGroups {
		parents[g.Spec.SubGroups[i].Parent] = true
	}
	sum := int32(0)
	for i := range g.Spec.SubGroups {
		if s := &g.Spec.SubGroups[i]; !parents[s.Name] {
			sum += leastOfSubGroup(s)
		}
	}
	return int(max(g.Spec.MinMember, sum, 1))
}

func leastOfSubGroup(s *v1alpha1.SubGroup) int32 {
	least := int32(1)
	switch {
	case s.SegmentSize > 0 && s.MinSubGroup != nil:
		least = *s.MinSubGroup
	case s.SegmentSize == 0 && s.MinMember != nil:
		least = *s.MinMember
	}
	return least * max(s.SegmentSize, 1)
}
