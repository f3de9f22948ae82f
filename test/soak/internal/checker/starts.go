// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package checker

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/test/capacity"
)

// starts are the gangs of which some members are bound and more are needed. It checks that each becomes complete in
// time.
type starts struct {
	clock  *clock
	state  *state
	record *record
	jobs   jobs

	open map[string]*start // by namespace/name of the group
}

// start is the start of a gang of which some members are bound, and none was before.
type start struct {
	at          time.Time
	interrupted bool // the scheduler was stopped meanwhile
}

// interrupt records that the scheduler was stopped during the open starts.
func (s *starts) interrupt() {
	for _, start := range s.open {
		start.interrupted = true
	}
}

// forget removes the start of a group that was deleted or replaced.
func (s *starts) forget(key string) { delete(s.open, key) }

// begin checks whether a pod that was just bound is the first of its gang.
func (s *starts) begin(p *corev1.Pod) {
	key := jobKey(p)
	g := s.state.groups[key]
	if g == nil || g.UID != types.UID(p.Annotations[v1alpha1.AnnotationPodGroupUID]) || s.open[key] != nil {
		return
	}
	if holding, _ := s.state.members(g); holding > 1 {
		return
	}
	s.open[key] = &start{at: s.clock.now, interrupted: s.clock.down}
	s.record.counts[Whole]++
	if n := s.state.nodes[p.Spec.NodeName]; n == nil || !n.fit {
		s.invalidate(key) // the node was lost while the bind was in flight
	}
}

// complete ends a start if the gang has the pods that it needs.
func (s *starts) complete(key string) {
	g, start := s.state.groups[key], s.open[key]
	if g == nil || start == nil {
		return
	}
	if holding, succeeded := s.state.members(g); holding+succeeded >= int(g.Spec.MinMember) {
		if summary := &s.record.summary; g.Spec.MinMember > 1 {
			summary.Started++
			if !start.interrupted {
				summary.SlowestStart = max(summary.SlowestStart, s.clock.now.Sub(start.at))
			}
			summary.LargestStart = max(summary.LargestStart, int(g.Spec.MinMember))
		}
		delete(s.open, key)
	}
}

// invalidate ends a start that another client has disturbed.
func (s *starts) invalidate(key string) {
	if s.open[key] != nil {
		delete(s.open, key)
		s.record.summary.Excused++
		s.record.note("the start of "+key+" is disturbed by another client", "job "+key)
	}
	s.jobs.of(key).disturbed = s.clock.now
}

// excuse ends the starts of gangs with members on a lost node.
func (s *starts) excuse(node string) {
	for _, p := range s.state.pods {
		if p.Spec.NodeName == node && s.state.ours(p) && !capacity.Ended(p) {
			s.invalidate(jobKey(p))
		}
	}
}

// overdue reports gangs that should be complete by now.
func (s *starts) overdue() {
	if s.clock.down {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(s.open)) {
		g, start := s.state.groups[key], s.open[key]
		if s.clock.now.Sub(start.at) <= StartGrace || s.clock.now.Sub(s.clock.upAt) <= UpGrace {
			continue
		}
		if start.interrupted && s.clock.disturbance.After(start.at) && !s.clock.disturbance.Equal(s.clock.upAt) {
			s.invalidate(key) // its resources may have been used while no scheduler ran
			continue
		}
		holding, succeeded := s.state.members(g)
		s.record.fail(Whole, []string{"job " + key}, "gang %s has held nodes for %d pods of %d since %s", key, holding+succeeded, g.Spec.MinMember,
			start.at.UTC().Format("15:04:05"))
		delete(s.open, key)
	}
}
