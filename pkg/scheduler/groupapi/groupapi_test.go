// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package groupapi

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

// TestMinResourcesOfVolcanoJobs: the names of quotas, which the Job controller of Volcano adds, are no resources of nodes.
func TestMinResourcesOfVolcanoJobs(t *testing.T) {
	t.Parallel()
	g := volcano().Read(object(t, `spec: {minMember: 3, minResources: {count/pods: "3", cpu: "3", pods: "3", requests.cpu: "3", limits.memory: 1Gi, example.com/gpu: "1"}}`))
	var got []string
	for name, quantity := range g.Spec.MinResources {
		got = append(got, string(name)+"="+quantity.String())
	}
	slices.Sort(got)
	if want := []string{"cpu=3", "example.com/gpu=1", "pods=3"}; !slices.Equal(got, want) {
		t.Errorf("minResources are %v, want %v", got, want)
	}
}

// TestRead: what a group of each API means.
func TestRead(t *testing.T) {
	type group struct {
		min                           int32
		queue, class, phase, rejected string
		priority                      int32
		basic, whole, protected       bool
		protectedFrom                 int32
		parent                        string
		minGroups                     int32
		neverPreempts                 bool
	}
	cases := map[string]struct {
		api  *API
		text string
		want group
	}{
		"scheduler-plugins":          {schedulerPlugins(), "spec: {minMember: 3, scheduleTimeoutSeconds: 10}", group{min: 3}},
		"scheduler-plugins, queue":   {schedulerPlugins(), "metadata: {labels: {scheduling.batch-scheduler.dev/queue: q}}", group{min: 1, queue: "q"}},
		"scheduler-plugins, ended":   {schedulerPlugins(), "status: {phase: Finished}", group{min: 1, phase: "Finished"}},
		"scheduler-plugins, failed":  {schedulerPlugins(), "status: {phase: Failed}", group{min: 1, phase: "Failed"}},
		"scheduler-plugins, running": {schedulerPlugins(), "status: {phase: Running}", group{min: 1}},
		"scheduler-plugins, unreadable": {
			schedulerPlugins(), "spec: {minMember: three}", group{rejected: "the object cannot be read"},
		},
		"volcano":              {volcano(), "spec: {minMember: 3, queue: q, priorityClassName: c}", group{min: 3, queue: "q", class: "c"}},
		"volcano, no minimum":  {volcano(), "spec: {minMember: 0, queue: default}", group{min: 1}},
		"volcano, label first": {volcano(), "{metadata: {labels: {scheduling.batch-scheduler.dev/queue: l}}, spec: {queue: q}}", group{min: 1, queue: "l"}},
		"volcano, subgroups": {volcano(), "spec: {subGroupPolicy: [{name: a}]}",
			group{min: 1, rejected: "spec.subGroupPolicy without exactly one label in matchLabelKeys"}},
		"volcano, completed":                 {volcano(), "{spec: {minMember: 2}, status: {phase: Completed, succeeded: 2, failed: 1}}", group{min: 2, phase: "Finished"}},
		"volcano, failed":                    {volcano(), "{spec: {minMember: 2}, status: {phase: Completed, succeeded: 1, failed: 1}}", group{min: 2, phase: "Failed"}},
		"native":                             {nativeV1alpha2(), "spec: {schedulingPolicy: {gang: {minCount: 3}}, priority: 5, disruptionMode: Pod}", group{min: 3, priority: 5}},
		"native, basic":                      {nativeV1alpha2(), "spec: {schedulingPolicy: {basic: {}}}", group{min: 1, basic: true}},
		"native, neither":                    {nativeV1alpha2(), "spec: {schedulingPolicy: {}}", group{min: 1, rejected: "spec.schedulingPolicy"}},
		"native, no topology":                {nativeV1alpha2(), "spec: {schedulingPolicy: {gang: {minCount: 2}}, schedulingConstraints: {}}", group{min: 2}},
		"native, claims":                     {nativeV1alpha2(), "spec: {schedulingPolicy: {gang: {minCount: 2}}, resourceClaims: [{name: a}]}", group{min: 2, rejected: "spec.resourceClaims"}},
		"native, one disruption":             {nativeV1alpha2(), "spec: {schedulingPolicy: {gang: {minCount: 2}}, disruptionMode: PodGroup}", group{min: 2, whole: true}},
		"native, basic, one disruption":      {nativeV1alpha2(), "spec: {schedulingPolicy: {basic: {}}, disruptionMode: PodGroup}", group{min: 1, whole: true}},
		"native, unknown disruption":         {nativeV1alpha2(), "spec: {schedulingPolicy: {gang: {minCount: 2}}, disruptionMode: All}", group{min: 2, rejected: "spec.disruptionMode All"}},
		"volcano, not preemptable":           {volcano(), "{metadata: {annotations: {volcano.sh/preemptable: \"false\"}}, spec: {minMember: 2}}", group{min: 2, protected: true}},
		"volcano, preemptable":               {volcano(), "{metadata: {annotations: {volcano.sh/preemptable: \"true\"}}, spec: {minMember: 2}}", group{min: 2}},
		"kai":                                {kai(), "spec: {minMember: 3, queue: q, priorityClassName: train, preemptibility: preemptible, topologyConstraint: {}}", group{min: 3, queue: "q", class: "train"}},
		"kai, no minimum":                    {kai(), "spec: {minMember: 0, queue: default-queue}", group{min: 1, queue: "default-queue", protectedFrom: 100}},
		"kai, label first":                   {kai(), "{metadata: {labels: {scheduling.batch-scheduler.dev/queue: l}}, spec: {queue: q}}", group{min: 1, queue: "l", protectedFrom: 100}},
		"kai, not preemptible":               {kai(), "spec: {preemptibility: non-preemptible}", group{min: 1, protected: true}},
		"kai, preemptible in part":           {kai(), "spec: {preemptibility: semi-preemptible}", group{min: 1, rejected: "spec.preemptibility semi-preemptible"}},
		"kai, delay":                         {kai(), "spec: {preemptibility: preemptible, preemptionDelay: 1m0s}", group{min: 1, rejected: "spec.preemptionDelay"}},
		"kai, two minima":                    {kai(), "spec: {preemptibility: preemptible, minMember: 2, minSubGroup: 1}", group{min: 2, rejected: "spec.minMember with spec.minSubGroup"}},
		"kai, pool of nodes":                 {kai(), "{metadata: {labels: {kai.scheduler/node-pool: a100}}, spec: {preemptibility: preemptible}}", group{min: 1, rejected: "label kai.scheduler/node-pool"}},
		"kai, default pool":                  {kai(), "{metadata: {labels: {kai.scheduler/node-pool: default}}, spec: {preemptibility: preemptible}}", group{min: 1}},
		"kai, not used":                      {kai(), "spec: {preemptibility: preemptible, markUnschedulable: false, schedulingBackoff: 1, stalenessGracePeriod: 1m0s}", group{min: 1}},
		"native 1.37":                        {nativeV1beta1(), "spec: {schedulingPolicy: {gang: {minCount: 3}}, priority: 5, disruptionMode: {single: {}}, preemptionPolicy: PreemptLowerPriority}", group{min: 3, priority: 5}},
		"native 1.37, alpha":                 {nativeV1alpha3(), "spec: {schedulingPolicy: {gang: {minCount: 3}}, priorityClassName: c}", group{min: 3, class: "c"}},
		"native 1.37, basic":                 {nativeV1beta1(), "spec: {schedulingPolicy: {basic: {}}, disruptionMode: {single: {}}}", group{min: 1, basic: true}},
		"native 1.37, neither":               {nativeV1beta1(), "spec: {schedulingPolicy: {}}", group{min: 1, rejected: "spec.schedulingPolicy"}},
		"native 1.37, no topology":           {nativeV1beta1(), "spec: {schedulingPolicy: {gang: {minCount: 2}}, schedulingConstraints: {topology: []}}", group{min: 2}},
		"native 1.37, claims":                {nativeV1beta1(), "spec: {schedulingPolicy: {gang: {minCount: 2}}, resourceClaims: [{name: a, resourceClaimName: b}]}", group{min: 2, rejected: "spec.resourceClaims"}},
		"native 1.37, one disruption":        {nativeV1beta1(), "spec: {schedulingPolicy: {gang: {minCount: 2}}, disruptionMode: {all: {}}}", group{min: 2, whole: true}},
		"native 1.37, basic, one disruption": {nativeV1beta1(), "spec: {schedulingPolicy: {basic: {}}, disruptionMode: {all: {}}}", group{min: 1, whole: true}},
		"native 1.37, later disruption":      {nativeV1beta1(), "spec: {schedulingPolicy: {gang: {minCount: 2}}, disruptionMode: {half: {}}}", group{min: 2, rejected: "spec.disruptionMode"}},
		"native 1.37, never preempts":        {nativeV1beta1(), "spec: {schedulingPolicy: {gang: {minCount: 2}}, preemptionPolicy: Never}", group{min: 2, neverPreempts: true}},
		"native 1.37, later policy":          {nativeV1beta1(), "spec: {schedulingPolicy: {gang: {minCount: 2}}, preemptionPolicy: Always}", group{min: 2, rejected: "spec.preemptionPolicy Always"}},
		"native 1.37, in a tree":             {nativeV1beta1(), "spec: {schedulingPolicy: {gang: {minCount: 2}}, parentCompositePodGroupName: p, workloadRef: {workloadName: w, templateName: t}}", group{min: 2, parent: "p"}},
		"native 1.37, basic in a tree":       {nativeV1beta1(), "spec: {schedulingPolicy: {basic: {}}, parentCompositePodGroupName: p}", group{parent: "p"}},
		"native 1.37, unreadable":            {nativeV1beta1(), "spec: {schedulingPolicy: gang}", group{rejected: "the object cannot be read"}},
		"composite":                          {compositeV1alpha3(), "{metadata: {labels: {scheduling.batch-scheduler.dev/queue: q}}, spec: {schedulingPolicy: {gang: {minGroupCount: 2}}, priority: 7}}", group{min: 1, minGroups: 2, queue: "q", priority: 7}},
		"composite, basic":                   {compositeV1alpha3(), "spec: {schedulingPolicy: {basic: {}}, parentCompositePodGroupName: p}", group{min: 1, parent: "p"}},
		"composite, neither":                 {compositeV1alpha3(), "spec: {schedulingPolicy: {}}", group{min: 1, rejected: "spec.schedulingPolicy"}},
		"composite, one disruption":          {compositeV1alpha3(), "spec: {schedulingPolicy: {basic: {}}, disruptionMode: {all: {}}}", group{min: 1, whole: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g := tc.api.Read(object(t, tc.text))
			got := group{
				min: g.Spec.MinMember, queue: g.Spec.Queue, class: g.Spec.PriorityClassName, phase: string(g.Group.Status.Phase),
				rejected: g.NotSupported, basic: g.Basic, whole: g.Whole, protected: g.NonPreemptable,
				parent: g.Parent, minGroups: g.MinGroups, neverPreempts: g.NeverPreempts,
			}
			if g.Priority != nil {
				got.priority = *g.Priority
			}
			if g.NonPreemptableFrom != nil {
				got.protectedFrom = *g.NonPreemptableFrom
			}
			if tc.want.rejected != "" && strings.HasPrefix(got.rejected, tc.want.rejected) {
				got.rejected = tc.want.rejected
			}
			if got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
			if g.Source != tc.api.Source {
				t.Errorf("source %s, want %s", g.Source, tc.api.Source)
			}
		})
	}
}

// TestStatus: what is written for a report, given what the object shows. Empty is no write.
func TestStatus(t *testing.T) {
	now := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	report := func(phase v1alpha1.PodGroupPhase, reason string, pending, running int32) api.PodGroupReport {
		return api.PodGroupReport{
			Phase: phase, Reason: reason, Scheduled: reason == v1alpha1.ReasonScheduled, Message: "why", Generation: 1, Pending: pending, Running: running,
		}
	}
	waiting := report(v1alpha1.PodGroupPending, v1alpha1.ReasonNotEnoughResources, 2, 0)
	running := report(v1alpha1.PodGroupRunning, v1alpha1.ReasonScheduled, 0, 2)
	const time = `"2026-01-01T00:00:00Z"`
	condition := func(kind, status, reason string) string {
		return `{"type":"` + kind + `","status":"` + status + `","transitionID":"batch-scheduler-1767225600","lastTransitionTime":` + time + `,"reason":"` + reason + `","message":"why"}`
	}
	nativeCondition := func(status, reason string) string {
		return `{"conditions":[{"type":"PodGroupScheduled","status":"` + status + `","observedGeneration":1,"lastTransitionTime":` + time + `,"reason":"` + reason + `","message":"why"}]}`
	}
	inTree := func(kind, status, reason string) string {
		return strings.ReplaceAll(nativeCondition(status, reason), "PodGroupScheduled", kind+"InitiallyScheduled")
	}
	pool := func(reason, id string) string {
		return `{"type":"UnschedulableOnNodePool","nodePool":"default","reason":"Unschedulable","message":"why","reasons":[{"reason":"` + reason +
			`","message":"why"}],"lastTransitionTime":` + time + `,"status":"True","transitionID":"` + id + `"}`
	}
	kaiConditions := func(list ...string) string { return `{"schedulingConditions":[` + strings.Join(list, ",") + `]}` }
	const other = `{"type":"UnschedulableOnNodePool","nodePool":"a100","reasons":[{"details":{"queueDetails":{"name":"q"}},"reason":"OverLimit"}],"lastTransitionTime":` +
		time + `,"status":"True","transitionID":"2"}`
	cases := map[string]struct {
		api    *API
		shown  string
		want   api.PodGroupReport
		next   string
		urgent bool
	}{
		"scheduler-plugins, no pods": {
			schedulerPlugins(), "", report(v1alpha1.PodGroupPending, v1alpha1.ReasonNotEnoughPods, 0, 0), `{"phase":"Pending","running":0,"succeeded":0,"failed":0}`, true,
		},
		"scheduler-plugins, waiting": {schedulerPlugins(), "{phase: Pending}", waiting, `{"phase":"Scheduling","running":0,"succeeded":0,"failed":0}`, true},
		"scheduler-plugins, running": {schedulerPlugins(), "{phase: Scheduling}", running, `{"phase":"Running","running":2,"succeeded":0,"failed":0}`, true},
		"scheduler-plugins, counts":  {schedulerPlugins(), "{phase: Running, running: 1}", running, `{"phase":"Running","running":2,"succeeded":0,"failed":0}`, false},
		"scheduler-plugins, shown":   {schedulerPlugins(), "{phase: Running, running: 2, occupiedBy: x}", running, "", false},
		"volcano, could start": {
			volcano(), "", report(v1alpha1.PodGroupPending, v1alpha1.ReasonNotEnoughPods, 0, 0),
			`{"phase":"Inqueue","conditions":[` + condition("Unschedulable", "True", "NotEnoughPods") + `],"running":0,"succeeded":0,"failed":0}`, true,
		},
		"volcano, could never start": {
			volcano(), "{phase: Pending}", report(v1alpha1.PodGroupPending, v1alpha1.ReasonQueueNotFound, 0, 0),
			`{"phase":"Pending","conditions":[` + condition("Unschedulable", "True", "QueueNotFound") + `],"running":0,"succeeded":0,"failed":0}`, true,
		},
		"volcano, could start before": {
			volcano(), "{phase: Inqueue}", report(v1alpha1.PodGroupPending, v1alpha1.ReasonExceedsClusterCapacity, 2, 0),
			`{"phase":"Inqueue","conditions":[` + condition("Unschedulable", "True", "ExceedsClusterCapacity") + `],"running":0,"succeeded":0,"failed":0}`, true,
		},
		"volcano, running": {
			volcano(), `{"phase":"Inqueue","conditions":[` + condition("Unschedulable", "True", "NotEnoughPods") + `]}`, running,
			`{"phase":"Running","conditions":[` + condition("Unschedulable", "False", "NotEnoughPods") + `,` + condition("Scheduled", "True", "Scheduled") + `],"running":2,"succeeded":0,"failed":0}`, true,
		},
		"volcano, shown": {
			volcano(), `{"phase":"Running","conditions":[` + condition("Scheduled", "True", "Scheduled") + `],"running":2,"succeeded":0,"failed":0}`, running, "", false,
		},
		"native, waiting":      {nativeV1alpha2(), "", waiting, nativeCondition("False", "Unschedulable"), true},
		"native, running":      {nativeV1alpha2(), nativeCondition("False", "Unschedulable"), running, nativeCondition("True", "Scheduled"), true},
		"native, shown":        {nativeV1alpha2(), nativeCondition("False", "Unschedulable"), waiting, "", false},
		"native 1.37, waiting": {nativeV1beta1(), "", waiting, inTree("PodGroup", "False", "Unschedulable"), true},
		"native 1.37, running": {nativeV1alpha3(), inTree("PodGroup", "False", "Unschedulable"), running, inTree("PodGroup", "True", "Scheduled"), true},
		"native 1.37, ran":     {nativeV1beta1(), inTree("PodGroup", "True", "Scheduled"), waiting, "", false},
		"composite, waiting":   {compositeV1alpha3(), "", waiting, inTree("CompositePodGroup", "False", "Unschedulable"), true},
		"composite, running":   {compositeV1alpha3(), "", running, inTree("CompositePodGroup", "True", "Scheduled"), true},
		"composite, invalid": {
			compositeV1alpha3(), "", report(v1alpha1.PodGroupPending, v1alpha1.ReasonInvalidSubGroups, 2, 0), inTree("CompositePodGroup", "False", "Invalid"), true,
		},
		"kai, waiting":            {kai(), "", waiting, kaiConditions(pool("NotEnoughResources", "1")), true},
		"kai, waiting, shown":     {kai(), kaiConditions(pool("NotEnoughResources", "1")), waiting, "", false},
		"kai, for another reason": {kai(), kaiConditions(pool("QueueFull", "1")), waiting, kaiConditions(pool("NotEnoughResources", "2")), true},
		"kai, message": {
			kai(), strings.ReplaceAll(kaiConditions(pool("NotEnoughResources", "1")), "why", "before"), waiting, kaiConditions(pool("NotEnoughResources", "2")), false,
		},
		"kai, after a condition of another pool": {
			kai(), kaiConditions(pool("NotEnoughResources", "1"), other), report(v1alpha1.PodGroupPending, "QueueFull", 2, 0), kaiConditions(other, pool("QueueFull", "3")), true,
		},
		"kai, running":           {kai(), kaiConditions(pool("NotEnoughResources", "1"), other), running, kaiConditions(other), true},
		"kai, running, shown":    {kai(), kaiConditions(other), running, "", false},
		"kai, running, new":      {kai(), "", running, "", false},
		"kai, waiting, one runs": {kai(), "", report(v1alpha1.PodGroupUnknown, v1alpha1.ReasonNotEnoughResources, 1, 1), "", false},
		"kai, status of others":  {kai(), "{resourcesStatus: {requested: {cpu: 1}}}", running, "", false},
		"native, waiting again: the condition is never taken back": {
			nativeV1alpha2(), nativeCondition("True", "Scheduled"), waiting, "", false,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := tc.api.Read(object(t, "status: "+tc.shown))
			if tc.shown == "" {
				o = tc.api.Read(object(t, "{}"))
			}
			next, urgent, err := o.Status(&tc.want, now)
			if err != nil {
				t.Fatal(err)
			}
			if string(next) != tc.next || urgent != tc.urgent {
				t.Errorf("got urgent %t, %s\nwant urgent %t, %s", urgent, next, tc.urgent, tc.next)
			}
		})
	}
}

// TestShown: what a status says in the terms of the PodGroups of this scheduler: phase, counts, and the condition.
func TestShown(t *testing.T) {
	for name, tc := range map[string]struct {
		api  *API
		text string
		want string
	}{
		"native, new":                {nativeV1alpha2(), "{}", " 0 0 0"},
		"native, waiting":            {nativeV1alpha2(), "status: {conditions: [{type: PodGroupScheduled, status: 'False', reason: Unschedulable, message: why}]}", " 0 0 0 False Unschedulable why"},
		"native 1.37, waiting":       {nativeV1beta1(), "status: {conditions: [{type: PodGroupInitiallyScheduled, status: 'False', reason: Unschedulable, message: why}]}", " 0 0 0 False Unschedulable why"},
		"composite, waiting":         {compositeV1alpha3(), "status: {conditions: [{type: CompositePodGroupInitiallyScheduled, status: 'False', reason: Unschedulable, message: why}]}", " 0 0 0 False Unschedulable why"},
		"scheduler-plugins, new":     {schedulerPlugins(), "{}", " 0 0 0"},
		"scheduler-plugins, waiting": {schedulerPlugins(), "status: {phase: Scheduling}", "Pending 0 0 0"},
		"scheduler-plugins, running": {schedulerPlugins(), "status: {phase: Running, running: 2, succeeded: 1, failed: 3}", "Running 2 1 3"},
		"scheduler-plugins, odd":     {schedulerPlugins(), "status: {running: two}", " 0 0 0"},
		"volcano, waiting":           {volcano(), "status: {phase: Inqueue, conditions: [{type: Unschedulable, status: 'True', reason: QueueFull, message: why}]}", "Pending 0 0 0 False QueueFull why"},
		"volcano, running": {
			volcano(), "status: {phase: Running, running: 2, conditions: [{type: Unschedulable, status: 'False', reason: QueueFull}, {type: Scheduled, status: 'True', reason: Scheduled}]}",
			"Running 2 0 0 True Scheduled ",
		},
		"volcano, ended": {volcano(), "status: {phase: Completed, succeeded: 2}", "Finished 0 2 0"},
		"kai, new":       {kai(), "{}", " 0 0 0"},
		"kai, waiting": {
			kai(), "status: {schedulingConditions: [{type: UnschedulableOnNodePool, nodePool: default, status: 'True', reason: Unschedulable, message: a, reasons: [{reason: QueueFull, message: why}]}]}",
			" 0 0 0 False QueueFull why",
		},
		"kai, of KAI Scheduler before it had reasons": {
			kai(), "status: {schedulingConditions: [{type: UnschedulableOnNodePool, nodePool: default, status: 'True', reason: Unschedulable, message: why}]}",
			" 0 0 0 False Unschedulable why",
		},
		"kai, in another pool": {kai(), "status: {schedulingConditions: [{type: UnschedulableOnNodePool, nodePool: a100, status: 'True', reason: Unschedulable}]}", " 0 0 0"},
	} {
		t.Run(name, func(t *testing.T) {
			s := tc.api.Read(object(t, tc.text)).Shown()
			got := fmt.Sprintf("%s %d %d %d", s.Phase, s.Running, s.Succeeded, s.Failed)
			for _, c := range s.Conditions {
				got += fmt.Sprintf(" %s %s %s", c.Status, c.Reason, c.Message)
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
