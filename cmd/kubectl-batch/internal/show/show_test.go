// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package show_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/cmd/kubectl-batch/internal/show"
	"github.com/batch-scheduler/batch-scheduler/internal/text"
	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/test/golden"
)

func noon() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

func group(namespace, name, queue string, minMember, run, wait int32, phase v1alpha1.PodGroupPhase, reason, message string) v1alpha1.PodGroup {
	g := v1alpha1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, CreationTimestamp: metav1.NewTime(noon().Add(-90 * time.Minute))},
		Spec:       v1alpha1.PodGroupSpec{MinMember: minMember, Queue: queue},
		Status:     v1alpha1.PodGroupStatus{Phase: phase, Running: run, Pending: wait},
	}
	if reason != "" {
		g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionPodGroupScheduled, Reason: reason, Message: message}}
	}
	return g
}

func groups() []show.Group {
	victim := group("team-b", "victim", "research", 4, 0, 0, "Pending", "NotEnoughPods", "0 of 4 pods that must start together exist")
	victim.Status.Conditions = append(victim.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionEvicted, Status: metav1.ConditionTrue, Reason: v1alpha1.EvictedByReclaim,
		Message: "the gang (4 pods) was evicted by reclaim at 2026-01-01T11:48:00Z for vision/train (queue vision, priority 0)",
	})
	own := func(g v1alpha1.PodGroup) show.Group { return show.Group{PodGroup: g} }
	return []show.Group{
		own(group("team-a", "train", "research", 8, 0, 8, "Pending", "NotEnoughResources", "needs 8 more pods of 4 cpu + 1 nvidia.com/gpu; 3/120 nodes are available: 96 Insufficient nvidia.com/gpu, 17 node(s) had untolerated taint {dedicated=infra:NoSchedule}, 4 node(s) didn't match Pod's node affinity/selector")),
		own(group("team-a", "evaluate", "", 1, 4, 0, "Running", "Scheduled", "the 1 pod that must start has a node")),
		own(group("team-b", "new", "research", 64, 0, 0, "", "", "")),
		own(victim),
	}
}

// starts are PodGroups that have started, will start, and of which neither is known.
func starts() []show.Group {
	list := groups()[:3]
	at := func(minutes int) *metav1.Time {
		return &metav1.Time{Time: noon().Add(time.Duration(minutes) * time.Minute)}
	}
	list[0].Spec.MaximumExecutionTimeSeconds = ptr.To(int32(5400))
	list[0].Status.EstimatedStartTime, list[0].Status.LatestStartTime = at(70), at(245)
	list[1].Status.StartTime = at(-12)
	return list
}

func limitedQueues() map[string]*v1alpha1.Queue {
	q := queue("research", 1, nil, nil, nil, nil)
	q.Spec.ExecutionTime = &v1alpha1.QueueExecutionTime{Default: ptr.To(int32(7200))}
	return map[string]*v1alpha1.Queue{"research": &q}
}

// groupsOfAPIs are groups of one name in all APIs.
func groupsOfAPIs() []show.Group {
	var list []show.Group
	for _, source := range api.AllSources() {
		g := group("team-a", "train", "research", 2, 2, 1, "Running", "Scheduled", "all 2 pods that must start together have nodes")
		list = append(list, show.Group{PodGroup: g, Source: source})
	}
	return list
}

func queue(name string, weight int32, guarantee, deserved, allocated, limit corev1.ResourceList) v1alpha1.Queue {
	return v1alpha1.Queue{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(noon().Add(-72 * time.Hour))},
		Spec:       v1alpha1.QueueSpec{Weight: weight, Guarantee: guarantee, Capability: limit},
		Status: v1alpha1.QueueStatus{
			Deserved: deserved, Allocated: allocated,
			Groups: v1alpha1.QueueGroups{Pending: 2, Running: 5, Unknown: 1, Finished: 17, Failed: 3},
		},
	}
}

func amounts(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

func queues() []v1alpha1.Queue {
	closed := queue("closed", 1, nil, nil, nil, amounts("cpu", "0"))
	closed.Spec.Reclaimable = ptr.To(false)
	return []v1alpha1.Queue{
		queue("research", 3, amounts("cpu", "10"),
			amounts("cpu", "67500m", "memory", "200Gi", "nvidia.com/gpu", "8"),
			amounts("cpu", "60", "memory", "210Gi", "nvidia.com/gpu", "4"),
			amounts("cpu", "100", "memory", "400G")),
		queue("default", 1, nil, amounts("cpu", "20"), amounts("cpu", "30"), nil),
		queue("borrower", 1, nil, amounts("cpu", "0"), amounts("cpu", "3"), nil),
		queue("unused", 65535, nil, nil, nil, nil),
		closed,
	}
}

func TestGolden(t *testing.T) {
	t.Parallel()
	table := func(t text.Table) []string { return t.Lines(show.Width, -1) }
	narrow := show.Options{Now: noon()}
	for name, got := range map[string][]string{
		"groups":                table(show.Groups(groups()[:2], narrow)),
		"groups-wide":           table(show.Groups(groups(), show.Options{Now: noon(), Wide: true, Namespaces: true})),
		"groups-all-namespaces": table(show.Groups(groups(), show.Options{Now: noon(), Namespaces: true})),
		"groups-sources":        table(show.Groups(groupsOfAPIs(), show.Options{Now: noon(), Sources: true})),
		"groups-watched":        table(show.Groups(groups()[:2], show.Options{Now: noon(), Watch: true})),
		"starts":                table(show.Starts(starts(), show.Options{Now: noon(), Queues: limitedQueues()})),
		"starts-wide":           table(show.Starts(starts(), show.Options{Now: noon(), Queues: limitedQueues(), Wide: true})),
		"queues":                table(show.Queues(queues(), narrow)),
		"queues-long-names":     table(show.Queues(append(queues(), queue("engineering-gpu", 1, nil, nil, nil, nil)), narrow)),
		"queues-wide":           table(show.Queues(queues(), show.Options{Now: noon(), Wide: true})),
		"top":                   show.Top(queues()),
		"top-gpus-long-names":   show.TopGPUs(manyGPUs()),
		"top-long-names":        show.Top(append(queues(), queue("a-queue-with-a-long-name", 1, nil, amounts("cpu", "4"), amounts("cpu", "2"), nil))),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, line := range got {
				if utf8.RuneCountInString(line) > show.Width {
					t.Errorf("over %d columns: %s", show.Width, line)
				}
			}
			golden.Check(t, filepath.Join("testdata", name+".txt"), strings.Join(got, "\n")+"\n")
		})
	}
}

// manyGPUs has so many GPUs and so long names that a row would not fit on a line.
func manyGPUs() *show.GPUUsageList {
	fit := []show.PodFit{{GPUs: 1, Pods: 12000}, {GPUs: 2, Pods: 5900}, {GPUs: 4, Pods: 2100}, {GPUs: 8, Pods: 640}}
	return &show.GPUUsageList{Resource: "nvidia.com/gpu", Items: []show.GPUUsage{
		{Nodes: 3, Total: 24, Free: 8, Fit: []show.PodFit{{GPUs: 1, Pods: 8}, {GPUs: 2, Pods: 4}, {GPUs: 4, Pods: 2}, {GPUs: 8, Pods: 1}}},
		{Model: "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", Nodes: 5000, Total: 40000, Free: 12000, Fit: fit, Stranded: new(int64(310)), Fragmentation: resource.NewMilliQuantity(1234567, resource.DecimalSI)},
	}}
}
