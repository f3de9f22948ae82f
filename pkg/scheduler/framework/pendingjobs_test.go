// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model/modeltest"
)

// TestPendingJobsAgainstAllJobs: after any changes, the jobs are divided as if all of them were looked at.
func TestPendingJobsAgainstAllJobs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := modeltest.NewCluster("q", "r")
		c.Events().SetNode(modeltest.Node("n", 8))
		var p pendingJobs
		enabled, apart := true, false
		for range rapid.IntRange(1, 8).Draw(t, "updates") {
			for range rapid.IntRange(0, 6).Draw(t, "changes") {
				changeJobs(t, c)
			}
			switch rapid.IntRange(0, 9).Draw(t, "mode") {
			case 0:
				enabled = !enabled
			case 1:
				apart = !apart
			}
			c.Events().Recompute()
			p.update(c, enabled, apart)
			if diff := cmp.Diff(divide(c, enabled, apart), p.describe()); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
		}
	})
}

// changeJobs adds, changes or deletes a pod, a group, a queue or a namespace.
func changeJobs(t *rapid.T, c *model.Cluster) {
	choose := func(label string, values ...string) string { return rapid.SampledFrom(values).Draw(t, label) }
	created := func(o *metav1.ObjectMeta) {
		o.CreationTimestamp = metav1.Unix(rapid.Int64Range(1, 5).Draw(t, "created"), 0)
	}
	pod, group, e := choose("pod", "a", "b", "c", "d", "e", "f"), choose("group", "g", "h", "i"), c.Events()
	switch choose("change", "pod", "pod", "pod", "run", "no pod", "group", "group", "status", "no group", "queue", "no queue", "namespace") {
	case "pod":
		e.SetPod(modeltest.Pod(pod, rapid.IntRange(1, 2).Draw(t, "cpus"), modeltest.InGroup(group), func(p *v1.Pod) { created(&p.ObjectMeta) }))
	case "run":
		e.SetPod(modeltest.Pod(pod, 1, modeltest.InGroup(group), modeltest.On("n")))
	case "no pod":
		e.DeletePod(types.UID(pod))
	case "group":
		e.SetPodGroup(modeltest.Group(group, rapid.IntRange(1, 3).Draw(t, "min"), func(g *v1alpha1.PodGroup) {
			created(&g.ObjectMeta)
			g.Spec.Queue = choose("queue", "q", "r", "missing")
		}))
	case "status":
		if j := c.Jobs()[api.GroupJobID("ns/"+group)]; j != nil && j.Group != nil {
			g := j.Group.DeepCopy()
			g.Status.Pending++
			e.SetPodGroup(g)
		}
	case "no group":
		e.DeletePodGroup("ns/"+group, types.UID(group))
	case "queue":
		e.SetQueue(&v1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "r", UID: "r", CreationTimestamp: metav1.NewTime(time.Unix(1, 0))}})
	case "no queue":
		e.DeleteQueue("r")
	case "namespace":
		ns := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{"l": choose("label", "1", "2")}}}
		ns.Status.Phase = v1.NamespacePhase(choose("phase", string(v1.NamespaceActive), string(v1.NamespaceTerminating)))
		e.SetNamespace(ns)
	}
}

// divide divides all jobs, one by one.
func divide(c *model.Cluster, enabled, apart bool) map[string][]string {
	p := pendingJobs{cluster: c, enabled: enabled, apart: apart}
	var jobs []*api.JobInfo
	for _, j := range c.Jobs() {
		if j.Waits() {
			jobs = append(jobs, j)
		}
	}
	slices.SortFunc(jobs, api.CompareJobAge)
	all := map[string][]string{}
	for _, j := range jobs {
		list := "others"
		if key, ok := p.keyOf(j); ok {
			list = key.describe()
		}
		all[list] = append(all[list], string(j.ID))
	}
	return all
}

// describe returns the jobs of each class, and the others.
func (p *pendingJobs) describe() map[string][]string {
	all := map[string][]string{}
	add := func(what string, jobs agedJobs) {
		for _, j := range jobs.list {
			all[what] = append(all[what], string(j.ID))
		}
	}
	for _, jc := range p.list {
		add(jc.describe(), jc.members)
	}
	add("others", p.others)
	return all
}

func (k jobClassKey) describe() string {
	only := api.JobID("")
	if k.only != nil {
		only = k.only.ID
	}
	return fmt.Sprintf("%s %p %d %d %d %d %s %s", k.queue.ID, k.class, k.priority, k.jobPriority, k.minMember, k.tasks, k.minResources, only)
}
