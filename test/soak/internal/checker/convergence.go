// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package checker

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// Available returns the free resources of a schedulable node, nil for other nodes.
func (c *Checker) Available(node string) corev1.ResourceList { return c.state.available(node) }

// Unfinished returns the number of pods that are in transition: they will terminate, are terminating, or have a node
// and have not started.
func (c *Checker) Unfinished(ends func(*corev1.Pod) bool) int { return c.state.unfinished(ends) }

// Waiting returns the jobs with pending pods and their messages, in the order of names.
func (c *Checker) Waiting() []string {
	var all []string
	for key, pods := range c.state.waiting() {
		all = append(all, fmt.Sprintf("%s: %d pods pending: %s", key, len(pods), c.state.excuse(key, pods)))
	}
	slices.Sort(all)
	return all
}

// Converged checks an idle cluster: no pending job fits.
func (c *Checker) Converged() {
	jobs := c.state.waiting()
	for _, key := range slices.Sorted(maps.Keys(jobs)) {
		c.record.counts[Fits]++
		pods := jobs[key]
		needed, queue := 1, c.state.queueOf(key, pods[0])
		if g := c.state.groups[key]; g != nil {
			holding, succeeded := c.state.members(g)
			needed = max(1, int(g.Spec.MinMember)-holding-succeeded)
		}
		if len(pods) < needed || !c.state.fit(pods[:needed], queue) || c.mayWait(key, pods) {
			continue
		}
		c.record.fail(Fits, c.state.concerned(key, pods), "%s needs %d more pods and is pending although they fit: %s", key, needed, c.state.excuse(key, pods))
	}
}

// AllRun checks a cluster in which everything fits: all pods run, and no gang is partial.
func (c *Checker) AllRun() {
	jobs := c.state.waiting()
	for _, key := range slices.Sorted(maps.Keys(jobs)) {
		c.record.fail(Fits, c.state.concerned(key, jobs[key]), "everything fits, and %d pods of %s are pending: %s", len(jobs[key]), key, c.state.excuse(key, jobs[key]))
	}
	for _, p := range c.state.pods {
		if !c.state.ours(p) || p.Spec.NodeName == "" {
			continue
		}
		c.record.counts[Fits]++
		if p.Status.Phase == corev1.PodPending || p.DeletionTimestamp != nil {
			c.record.fail(Fits, podKeys(p), "pod %s has node %s and does not run", name(p), p.Spec.NodeName)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(c.state.groups)) {
		g := c.state.groups[key]
		if holding, succeeded := c.state.members(g); holding > 0 && holding+succeeded < int(g.Spec.MinMember) {
			c.record.fail(Whole, []string{"job " + key}, "gang %s stays partial with %d pods of %d", key, holding+succeeded, g.Spec.MinMember)
		}
	}
}

// Empty reports whether there are no pods and no groups.
func (c *Checker) Empty() bool { return len(c.state.pods) == 0 && len(c.state.groups) == 0 }

// reserved reports whether a message says that resources are reserved, for this gang or for another one.
func reserved(message string) bool {
	return strings.Contains(message, "; reserved: ") || strings.Contains(message, "reserved for another PodGroup")
}

// mayWait reports whether a job may be pending although it fits: the resources are reserved for a gang that has
// waited long, or its queue had borrowed them and they were reclaimed.
func (c *Checker) mayWait(key string, pods []*corev1.Pod) bool {
	excuse := c.state.excuse(key, pods)
	return c.jobs.of(key).inCooldown || strings.HasPrefix(excuse, v1alpha1.ReasonOverShare) || reserved(excuse)
}
