// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package checker

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/test/capacity"
)

// group is the state of a PodGroup.
type group struct {
	object *v1alpha1.PodGroup
	start  *start
}

// start is a gang of which some members are bound, and none was before.
type start struct {
	at          time.Time
	interrupted bool // the scheduler was stopped meanwhile
}

// Group records the state of a PodGroup or its deletion.
func (c *Checker) Group(at time.Time, object *v1alpha1.PodGroup, gone bool) {
	c.now = at
	key := object.Namespace + "/" + object.Name
	g := c.groups[key]
	if gone {
		delete(c.groups, key)
		c.log.add(at, "group "+key+" is gone", "job "+key)
		return
	}
	if g == nil || g.object.UID != object.UID {
		c.summary.GroupsSeen++
		g = &group{object: object}
		c.groups[key] = g
		c.log.add(at, fmt.Sprintf("group %s is created: minMember %d, queue %s", key, object.Spec.MinMember, object.Spec.Queue), "job "+key)
	}
	if object.Spec.MinMember != g.object.Spec.MinMember {
		c.log.add(at, fmt.Sprintf("group %s: minMember %d becomes %d", key, g.object.Spec.MinMember, object.Spec.MinMember), "job "+key)
		c.invalidate(key)
	}
	g.object = object
	c.checkStart(key)
}

// begin checks whether a pod that was just bound is the first of its gang.
func (c *Checker) begin(p *corev1.Pod) {
	g := c.groups[jobKey(p)]
	if g == nil || g.object.UID != types.UID(p.Annotations[v1alpha1.AnnotationPodGroupUID]) || g.start != nil {
		return
	}
	if holding, _ := c.members(g); holding > 1 {
		return
	}
	g.start = &start{at: c.now, interrupted: c.down}
	c.counts[Whole]++
	if n := c.nodes[p.Spec.NodeName]; n == nil || !n.fit {
		c.invalidate(jobKey(p)) // the node was lost while the bind was in flight
	}
}

// members returns how many pods of a group hold a node, and how many have succeeded.
func (c *Checker) members(g *group) (holding, succeeded int) {
	for _, p := range c.pods {
		if types.UID(p.Annotations[v1alpha1.AnnotationPodGroupUID]) != g.object.UID || p.Spec.NodeName == "" {
			continue
		}
		switch {
		case p.Status.Phase == corev1.PodSucceeded:
			succeeded++
		case !capacity.Ended(p) && p.DeletionTimestamp == nil:
			holding++
		}
	}
	return holding, succeeded
}

// checkStart ends a start that is complete.
func (c *Checker) checkStart(key string) {
	g := c.groups[key]
	if g == nil || g.start == nil {
		return
	}
	if holding, succeeded := c.members(g); holding+succeeded >= int(g.object.Spec.MinMember) {
		if g.object.Spec.MinMember > 1 {
			c.summary.Started++
			if !g.start.interrupted {
				c.summary.SlowestStart = max(c.summary.SlowestStart, c.now.Sub(g.start.at))
			}
			c.summary.LargestStart = max(c.summary.LargestStart, int(g.object.Spec.MinMember))
		}
		g.start = nil
	}
}

// invalidate ends a start that another client has disturbed.
func (c *Checker) invalidate(key string) {
	if g := c.groups[key]; g != nil && g.start != nil {
		g.start = nil
		c.summary.Excused++
		c.log.add(c.now, "the start of "+key+" is disturbed by another client", "job "+key)
	}
	c.job(key).disturbed = c.now
}

// excuseStarts ends the starts of gangs with members on a lost node.
func (c *Checker) excuseStarts(node string) {
	for _, p := range c.pods {
		if p.Spec.NodeName == node && c.ours(p) && !capacity.Ended(p) {
			c.invalidate(jobKey(p))
		}
	}
}

// overdueStarts reports gangs that should be complete by now.
func (c *Checker) overdueStarts() {
	if c.down {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(c.groups)) {
		g := c.groups[key]
		if g.start == nil || c.now.Sub(g.start.at) <= StartGrace || c.now.Sub(c.upAt) <= UpGrace {
			continue
		}
		if g.start.interrupted && c.disturbance.After(g.start.at) && !c.disturbance.Equal(c.upAt) {
			c.invalidate(key) // its resources may have been used while no scheduler ran
			continue
		}
		holding, succeeded := c.members(g)
		c.fail(Whole, []string{"job " + key}, "gang %s has held nodes for %d pods of %d since %s", key, holding+succeeded, g.object.Spec.MinMember,
			g.start.at.UTC().Format("15:04:05"))
		g.start = nil
	}
}
