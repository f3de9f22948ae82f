// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	gocmp "cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate"
)

// The objects of the scenarios, as YAML.

func node(name, cpu string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Node\nmetadata: {name: %s, labels: {kubernetes.io/hostname: %s}}\nstatus: {allocatable: {cpu: %q, memory: 64Gi, pods: \"110\"}}\n", name, name, cpu)
}

func queue(name string, weight int) string {
	return fmt.Sprintf("apiVersion: scheduling.batch-scheduler.dev/v1alpha1\nkind: Queue\nmetadata: {name: %s}\nspec: {weight: %d}\n", name, weight)
}

// pod requests cpu cores; more are lines of its metadata, or of its spec after "spec: ".
func pod(name, queue, cpu string, more ...string) string {
	meta, spec := []string{"name: " + name, "labels: {app: " + queue + ", scheduling.batch-scheduler.dev/queue: " + queue + "}"}, []string{"schedulerName: batch-scheduler"}
	for _, line := range more {
		if rest, isSpec := strings.CutPrefix(line, "spec: "); isSpec {
			spec = append(spec, rest)
		} else {
			meta = append(meta, line)
		}
	}
	spec = append(spec, fmt.Sprintf("containers: [{name: main, image: busybox, resources: {requests: {cpu: %q}}}]", cpu))
	return "apiVersion: v1\nkind: Pod\nmetadata:\n  " + strings.Join(meta, "\n  ") + "\nspec:\n  " + strings.Join(spec, "\n  ") + "\n"
}

const terminating = `deletionTimestamp: "2026-01-01T00:00:00Z"`

func on(node string) string { return "spec: nodeName: " + node }

func ownedBy(name string) string {
	return fmt.Sprintf("ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: %s, uid: %s, controller: true}]", name, name)
}

func claims(claim string) string {
	return "spec: volumes: [{name: data, persistentVolumeClaim: {claimName: " + claim + "}}]"
}

const (
	gpuClass   = "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: gpu}\nspec: {extendedResourceName: nvidia.com/gpu}\n"
	gpuRequest = "initContainers: [{name: init, image: busybox, resources: {limits: {nvidia.com/gpu: \"1\"}}}]"
)

// gpuSlice is the devices of a node.
func gpuSlice(node string, count int) string {
	var devices []string
	for i := range count {
		devices = append(devices, fmt.Sprintf("{name: gpu-%d}", i))
	}
	return fmt.Sprintf("apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: %s}\nspec: {driver: test.driver, nodeName: %s, pool: {name: %s, generation: 1, resourceSliceCount: 1}, devices: [%s]}\n",
		node, node, node, strings.Join(devices, ", "))
}

// dir writes documents into one file of a new directory.
func dir(t *testing.T, documents ...string) string {
	t.Helper()
	d := t.TempDir()
	if err := os.WriteFile(filepath.Join(d, "all.yaml"), []byte(strings.Join(documents, "---\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return d
}

// format formats a result as lines.
func format(r *simulate.Result) string {
	var lines []string
	for _, b := range r.Bound {
		again := ""
		if b.Again {
			again = " again"
		}
		lines = append(lines, fmt.Sprintf("%d: bind %s %s%s", b.Cycle, b.Pod, b.Node, again))
	}
	for _, e := range r.Evicted {
		lines = append(lines, fmt.Sprintf("%d: evict %s for %s, %s", e.Cycle, e.Pod, e.For, e.Cause))
	}
	slices.Sort(lines)
	for _, s := range r.Waiting {
		lines = append(lines, fmt.Sprintf("%d of %s wait: %s", s.Pods, s.Group, s.Reason))
	}
	for _, warning := range r.Warnings {
		if strings.Contains(warning, "evicted pods") {
			lines = append(lines, "Warning: "+warning)
		}
	}
	return strings.Join(lines, "\n")
}

// eightOfAJob returns a Job of the queue rich with backoffLimit 3, and its eight pods, which run on n1.
func eightOfAJob(job func(string) string, policy string) []string {
	documents := []string{job("  parallelism: 8\n  backoffLimit: 3\n" + policy)}
	for i := range 8 {
		p := pod(fmt.Sprintf("j-x%d", i), "rich", "1", on("n1"), ownedBy("j"))
		documents = append(documents, strings.NewReplacer("ReplicaSet", "Job", "apps/v1", "batch/v1").Replace(p))
	}
	return documents
}

// TestScenarios runs simulations with policies that evict.
func TestScenarios(t *testing.T) {
	job := func(more string) string {
		return "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec:\n  template:\n    spec: {schedulerName: batch-scheduler, restartPolicy: Never, " +
			"containers: [{name: main, image: busybox, resources: {limits: {cpu: \"1\"}}}]}\n" + more
	}
	volume := `apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: local}
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  storageClassName: local
  local: {path: /disk}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [n2]}]}]}}
status: {phase: Available}
`
	claim := func(name string) string {
		return "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: " + name + "}\nspec:\n  accessModes: [ReadWriteOnce]\n  storageClassName: local\n  resources: {requests: {storage: 1Gi}}\nstatus: {phase: Pending}\n"
	}
	budget := func(allowed int) string {
		return fmt.Sprintf("apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: b}\nspec: {selector: {matchLabels: {app: rich}}}\nstatus: {disruptionsAllowed: %d, expectedPods: 4, currentHealthy: 4, desiredHealthy: 3}\n", allowed)
	}
	for name, tc := range map[string]struct {
		policy string // reclaiming if empty
		given  []string
		want   string
	}{
		"an evicted pod with a controller is created again and may get another node": {
			policy: "testdata/preempt.yaml",
			given: []string{
				node("n1", "1"), node("n2", "1"), queue("q", 1), "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\nvalue: 5\n",
				pod("a", "q", "1", on("n1"), ownedBy("set")),
				pod("b", "q", "1", "spec: priorityClassName: high", "spec: nodeSelector: {kubernetes.io/hostname: n1}"),
			},
			want: `1: evict default/a for default/b, preempted
2: bind default/a n2 again
2: bind default/b n1`,
		},
		"an evicted pod that is created again may stay pending": {
			given: []string{
				node("n1", "2"), node("n2", "1"), queue("rich", 1), queue("poor", 1),
				pod("a", "rich", "1", on("n1"), ownedBy("set")), pod("b", "rich", "1", on("n1"), ownedBy("set")), pod("c", "rich", "1", on("n2"), ownedBy("set")),
				pod("d", "poor", "1"),
			},
			want: `1: evict default/b for default/d, reclaimed
2: bind default/d n1
1 of default/set wait: OverShare`,
		},
		"an evicted pod without a controller is not created again": {
			given: []string{
				node("n1", "2"), queue("rich", 1), queue("poor", 1),
				pod("a", "rich", "1", on("n1")), pod("b", "rich", "1", on("n1")), pod("d", "poor", "1"),
			},
			want: `1: evict default/b for default/d, reclaimed
2: bind default/d n1`,
		},
		"a budget counts evicted pods that do not run again": {
			given: []string{
				node("n1", "4"), queue("rich", 1), queue("poor", 1), budget(1),
				pod("a", "rich", "1", on("n1"), ownedBy("set")), pod("b", "rich", "1", on("n1"), ownedBy("set")),
				pod("c", "rich", "1", on("n1"), ownedBy("set")), pod("e", "rich", "1", on("n1"), ownedBy("set")),
				pod("p", "poor", "1"), pod("q", "poor", "1"),
			},
			want: `1: evict default/e for default/p, reclaimed
2: bind default/p n1
1 of default/q wait: NotEnoughResources
1 of default/set wait: OverShare`,
		},
		"terminating pods are deleted after the first cycle": {
			given: []string{node("n1", "1"), queue("rich", 1), pod("a", "rich", "1", on("n1"), terminating), pod("b", "rich", "1")},
			want:  "2: bind default/b n1",
		},
		"pods are created for a Job without pods": {
			given: []string{node("n1", "4"), queue("default", 1), job("  parallelism: 3\n  completions: 2\n")},
			want:  "1: bind default/j-0 n1\n1: bind default/j-1 n1",
		},
		"no pods are created for a Job that has pods": {
			given: []string{node("n1", "4"), queue("default", 1), job("  parallelism: 3\n"),
				strings.ReplaceAll(pod("j-x", "default", "1", ownedBy("j")), "apps/v1, kind: ReplicaSet", "batch/v1, kind: Job")},
			want: "1: bind default/j-x n1",
		},
		"pods are created for a Job whose name a job of another API has": {
			given: []string{node("n1", "4"), queue("default", 1), job("  parallelism: 1\n"),
				strings.ReplaceAll(pod("j-x", "default", "1", ownedBy("j")), "apps/v1, kind: ReplicaSet", "batch.volcano.sh/v1alpha1, kind: Job")},
			want: "1: bind default/j-0 n1\n1: bind default/j-x n1",
		},
		"no pods are created for a Job that is suspended or has ended": {
			given: []string{node("n1", "4"), queue("default", 1), job("  suspend: true\n"),
				strings.ReplaceAll(job("status: {conditions: [{type: Complete, status: \"True\"}]}\n"), "name: j}", "name: k}")},
		},
		"the higher priority class is scheduled first, and the global default applies to pods without one": {
			given: []string{
				node("n1", "1"), queue("q", 1),
				"apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: usual}\nvalue: 5\nglobalDefault: true\n",
				"apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: less}\nvalue: 4\n",
				pod("a", "q", "1", "spec: priorityClassName: less"), pod("b", "q", "1"),
			},
			want: "1: bind default/b n1\n1 of default/a wait: NotEnoughResources",
		},
		"a volume bound for one pod is not available to others": {
			given: []string{node("n1", "4"), node("n2", "4"), queue("q", 1), volume, claim("one"), claim("two"), pod("a", "q", "1", claims("one")), pod("b", "q", "1", claims("two"))},
			want:  "1: bind default/a n2\n1 of default/b wait: Unschedulable",
		},
		"devices that a class provides as an extended resource": {
			given: []string{node("n1", "4"), node("n2", "4"), queue("q", 1), gpuClass, gpuSlice("n2", 1), pod("a", "q", "1", "spec: "+gpuRequest), pod("b", "q", "1", "spec: "+gpuRequest)},
			want:  "1: bind default/a n2\n1 of default/b wait: NotEnoughResources",
		},
		"a Job whose evicted pods exceed its backoffLimit fails, and its other pods end": {
			given: append(eightOfAJob(job, ""), node("n1", "8"), queue("rich", 1), queue("poor", 1), pod("d", "poor", "4", ownedBy("set"))),
			want: `1: evict default/j-x4 for default/set, reclaimed
1: evict default/j-x5 for default/set, reclaimed
1: evict default/j-x6 for default/set, reclaimed
1: evict default/j-x7 for default/set, reclaimed
2: bind default/d n1
Warning: Job default/j fails: evicted pods count as failures, these would be 4, and its backoffLimit is 3; 4 other pods of it end too`,
		},
		"a Job that ignores evictions does not fail": {
			given: append(eightOfAJob(job, "  podFailurePolicy: {rules: [{action: Ignore, onPodConditions: [{type: DisruptionTarget}]}]}\n"), node("n1", "8"), queue("rich", 1), queue("poor", 1), pod("d", "poor", "4", ownedBy("set"))),
			want: `1: evict default/j-x4 for default/set, reclaimed
1: evict default/j-x5 for default/set, reclaimed
1: evict default/j-x6 for default/set, reclaimed
1: evict default/j-x7 for default/set, reclaimed
2: bind default/d n1
4 of default/j wait: OverShare`,
		},
		"evicted pods of an unknown Job": {
			given: append(eightOfAJob(job, "")[1:], node("n1", "8"), queue("rich", 1), queue("poor", 1), pod("d", "poor", "4", ownedBy("set"))),
			want: `1: evict default/j-x4 for default/set, reclaimed
1: evict default/j-x5 for default/set, reclaimed
1: evict default/j-x6 for default/set, reclaimed
1: evict default/j-x7 for default/set, reclaimed
2: bind default/d n1
4 of default/j wait: OverShare
Warning: the Jobs of 4 evicted pods are not among the objects, or may not be listed: whether the evictions make them fail is not known`,
		},
		"a group without pods is pending": {
			given: []string{node("n1", "4"), queue("default", 1), "apiVersion: scheduling.batch-scheduler.dev/v1alpha1\nkind: PodGroup\nmetadata: {name: g}\nspec: {minMember: 2}\n"},
			want:  "0 of default/g wait: NotEnoughPods",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, format(run(t, snapshot(t, dir(t, tc.given...)), gocmp.Or(tc.policy, reclaiming)))); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCycleLimitWarning(t *testing.T) {
	s := snapshot(t, dir(t, node("n1", "1"), queue("q", 1), pod("a", "q", "1")))
	result, err := s.Run(t.Context(), policy(t, ""), simulate.Options{SchedulerNames: []string{"batch-scheduler"}, DefaultQueue: "default", Cycles: 1})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(result.Warnings, "; "); !strings.Contains(got, "stopped after 1 cycle") {
		t.Errorf("warnings %q", got)
	}
}
