// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/audit"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

// naming is where a pod names groups; empty if it does not.
type naming struct{ own, native, plugins, annotation, kai, key string }

func (n naming) change(p *v1.Pod) {
	p.Labels, p.Annotations = map[string]string{}, map[string]string{}
	if n.own != "" {
		p.Labels["scheduling.batch-scheduler.dev/pod-group"] = n.own
	}
	if n.native != "" {
		p.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &n.native}
	}
	if n.plugins != "" {
		p.Labels["scheduling.x-k8s.io/pod-group"] = n.plugins
	}
	if n.annotation != "" {
		p.Annotations["scheduling.k8s.io/group-name"] = n.annotation
	}
	if n.kai != "" {
		p.Annotations["pod-group-name"] = n.kai
	}
	if n.key != "" {
		p.Annotations["scheduling.batch-scheduler.dev/group-key"] = n.key
		p.Annotations["scheduling.batch-scheduler.dev/min-member"] = "2"
	}
}

// dumbJob returns the job in which a pending pod counts, straight from docs/group-sources.md. exists tells the groups that
// exist by "source/name"; the value is whether it is a gang.
func dumbJob(pod string, n naming, sources api.GroupSources, exists map[string]bool) string {
	gang, found := exists["native/"+n.native]
	switch {
	case n.own != "":
		return "group/ns/" + n.own
	case n.native != "" && sources.Native && (!found || gang):
		return "native/ns/" + n.native
	case n.plugins != "" && sources.SchedulerPlugins:
		return "scheduler-plugins/ns/" + n.plugins
	case n.annotation != "":
		if _, own := exists["/"+n.annotation]; !own && sources.Volcano {
			return "volcano/ns/" + n.annotation
		}
		return "group/ns/" + n.annotation
	case n.kai != "" && sources.KAI:
		return "kai/ns/" + n.kai
	case n.key != "":
		return "keyed/ns/default/" + n.key
	case n.plugins != "":
		return "unsupported/ns/label scheduling.x-k8s.io/pod-group/" + n.plugins + "/default"
	case n.kai != "" && !sources.KAI:
		return "unsupported/ns/annotation pod-group-name/" + n.kai + "/default"
	case n.native != "" && !sources.Native:
		return "unsupported/ns/field spec.schedulingGroup/" + n.native + "/default"
	}
	return "shadow/ns/uid-" + pod + "/default"
}

// TestMembershipTwin: pods that name any groups, groups that come and go, and any enabled sources. Each pod counts where
// the dumb rule says, whatever the order of events.
func TestMembershipTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sources := api.GroupSources{
			Native: rapid.Bool().Draw(t, "native"), SchedulerPlugins: rapid.Bool().Draw(t, "plugins"),
			Volcano: rapid.Bool().Draw(t, "volcano"), KAI: rapid.Bool().Draw(t, "kai"),
		}
		c := model.NewCluster(model.Options{SchedulerNames: []string{"batch-scheduler"}, DefaultQueue: "default", GroupSources: sources})
		c.Events().SetQueue(aQueue("default"))
		exists, pods := map[string]bool{}, map[string]naming{}
		name := rapid.SampledFrom([]string{"", "", "g", "h"})
		for range rapid.IntRange(1, 25).Draw(t, "events") {
			switch rapid.IntRange(0, 2).Draw(t, "event") {
			case 0:
				pod := fmt.Sprintf("p%d", len(pods))
				n := naming{name.Draw(t, "own"), name.Draw(t, "native"), name.Draw(t, "plugins"), name.Draw(t, "annotation"), name.Draw(t, "kai"), name.Draw(t, "key")}
				pods[pod] = n
				c.Events().SetPod(aPod(pod, n.change))
			case 1:
				source := rapid.SampledFrom(api.AllSources()).Draw(t, "source")
				g := aGroupOf(source, rapid.SampledFrom([]string{"g", "h"}).Draw(t, "group"), "default", 2)
				if !sources.Has(source) {
					continue
				}
				g.Basic = source == api.SourceNative && rapid.Bool().Draw(t, "basic")
				c.Events().SetGroup(g)
				exists[string(source)+"/"+g.Name] = !g.Basic
			case 2:
				source := rapid.SampledFrom(api.AllSources()).Draw(t, "source")
				g := aGroupOf(source, rapid.SampledFrom([]string{"g", "h"}).Draw(t, "group"), "default", 2)
				c.Events().DeleteGroup(g.Key(), g.UID)
				delete(exists, string(source)+"/"+g.Name)
			}
		}
		c.Events().Recompute()
		for _, task := range c.Tasks() {
			want := dumbJob(task.Pod.Name, pods[task.Pod.Name], sources, exists)
			if string(task.Job.ID) != want {
				t.Fatalf("pod %s, which names %+v, is in %s, want %s; groups %v, sources %+v", task.Pod.Name, pods[task.Pod.Name], task.Job.ID, want, exists, sources)
			}
			gangs := api.NamedGangsOf(task.Pod)
			first, other := gangs.Several("ns", api.MembershipRule{DefaultQueue: "default", Sources: sources, Groups: model.GroupsOf(c)})
			if named, counts := describeJob(want); first != "" && (first != named || !counts) || first == "" && other != "" {
				t.Fatalf("pod %s of %s: an event says that it counts in %q and not in %q", task.Pod.Name, want, first, other)
			}
		}
		if err := audit.Model(c); err != nil {
			t.Fatal(err)
		}
	})
}

// describeJob returns how events name the gang of a job, and whether it is one.
func describeJob(id string) (string, bool) {
	var name string
	for format, text := range map[string]string{
		"group/ns/%s": "PodGroup ", "native/ns/%s": "of Kubernetes (scheduling.k8s.io)", "scheduler-plugins/ns/%s": "of scheduler-plugins (scheduling.x-k8s.io)",
		"volcano/ns/%s": "of Volcano (scheduling.volcano.sh)", "kai/ns/%s": "of KAI Scheduler (scheduling.run.ai)",
	} {
		if n, _ := fmt.Sscanf(id, format, &name); n == 1 {
			if format == "group/ns/%s" {
				return text + name, true
			}
			return "group " + name + " " + text, true
		}
	}
	return "", false
}
