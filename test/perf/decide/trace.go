// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
	"github.com/batch-scheduler/batch-scheduler/test/perf/figures"
)

const modelLabel = "gpu-model" // of nodes

// leastWholeNodes is how many pods of gpusPerNode GPUs fit at least after the first half of the trace. 314 fit; if
// extended resources are spread instead of packed, none does.
const leastWholeNodes = 300

// traces are the cluster and the pods of Alibaba's cluster-trace-gpu-v2023 (Weng et al., USENIX ATC '23). All pods
// exist from the beginning; pods with equal requests that were created in the same second form a gang, and a fraction
// of a GPU counts as a whole one.
func traces(dir string) (all, half benchmark, err error) {
	all = benchmark{
		name: "D7/openb", about: "D7: all pods of the openb trace at once, on its 1,523 nodes",
		cycles: []cycle{{check: wellPacked, limits: []limit{{name: "cycle", most: 150}}}},
	}
	half = benchmark{
		name: "D7/openb-half", about: "D7: the first half of the pods of the openb trace, which leaves whole nodes for pods of 8 GPUs",
		cycles: []cycle{{check: leavesWholeNodes, limits: []limit{{name: "cycle", most: 150}}}},
	}
	nodes, err := readTable(filepath.Join(dir, "openb_nodes.csv"))
	if err == nil {
		var pods []row
		if pods, err = readTable(filepath.Join(dir, "openb_pods.csv")); err == nil {
			all.build = func() *fixture { return traceFixture(nodes, pods) }
			half.build = func() *fixture { return traceFixture(nodes, pods[:len(pods)/2]) }
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		all.skip = fmt.Sprintf("%v; -trace says where the trace is", err)
		half.skip = all.skip
		return all, half, nil
	}
	return all, half, err
}

// row is one line of a table, by column.
type row map[string]string

// number returns a numeric column; an invalid value counts as zero.
func (r row) number(column string) int64 {
	n, _ := strconv.ParseInt(r[column], 10, 64) // empty for nodes without GPUs
	return n
}

// readTable reads a file of comma-separated values with a header.
func readTable(file string) ([]row, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	if len(lines) == 0 {
		return nil, fmt.Errorf("%s is empty", file)
	}
	rows := make([]row, 0, len(lines)-1)
	for _, line := range lines[1:] {
		r := row{}
		for i, column := range lines[0] {
			r[column] = line[i]
		}
		rows = append(rows, r)
	}
	return rows, nil
}

func traceFixture(nodes, pods []row) *fixture {
	w := newFixture(len(nodes))
	w.addQueue("a", 1)
	for i, r := range nodes {
		n := w.nodes[i]
		n.Labels[modelLabel] = r["model"]
		allocatable := traceAmounts(r, r.number("gpu"))
		allocatable[v1.ResourcePods] = *resource.NewQuantity(250, resource.DecimalSI)
		n.Status.Allocatable, n.Status.Capacity = allocatable, allocatable
	}
	for i, gang := range traceGangs(pods) {
		first := gang[0]
		w.add(job{
			name: fmt.Sprintf("gang-%04d", i), queue: "a", class: low, min: len(gang), size: len(gang),
			asks: traceAmounts(first, first.number("num_gpu")), alter: onModels(first["gpu_spec"]),
		})
	}
	return w
}

func traceAmounts(r row, gpus int64) v1.ResourceList {
	list := amounts(0, 0, gpus)
	list[v1.ResourceCPU] = *resource.NewMilliQuantity(r.number("cpu_milli"), resource.DecimalSI)
	list[v1.ResourceMemory] = *resource.NewQuantity(r.number("memory_mib")<<20, resource.BinarySI)
	return list
}

// traceGangs groups pods with equal requests and creation time, in the order of the trace.
func traceGangs(pods []row) [][]row {
	var gangs [][]row
	known := map[string]int{}
	for _, pod := range pods {
		key := strings.Join([]string{pod["creation_time"], pod["cpu_milli"], pod["memory_mib"], pod["num_gpu"], pod["gpu_spec"]}, " ")
		at, found := known[key]
		if !found {
			at = len(gangs)
			known[key] = at
			gangs = append(gangs, nil)
		}
		gangs[at] = append(gangs[at], pod)
	}
	return gangs
}

// onModels restricts pods to nodes with one of some GPU models, as "A|B"; empty: no restriction.
func onModels(models string) func(*v1.Pod) {
	if models == "" {
		return nil
	}
	affinity := &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
		NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{
			{Key: modelLabel, Operator: v1.NodeSelectorOpIn, Values: strings.Split(models, "|")},
		}}},
	}}}
	return func(pod *v1.Pod) { pod.Spec.Affinity = affinity }
}

// wellPacked returns the number of allocated GPUs, and single pods that are pending although they fit on a node.
func wellPacked(c *model.Cluster) (found []figures.Figure, wrong []string) {
	gpu := c.Dims().Index("nvidia.com/gpu")
	var given, bound int64
	for _, t := range c.Tasks() {
		if t.Node != nil {
			given += t.Request.At(gpu)
			bound++
		} else if len(t.Job.Tasks) == 1 && hasAvailable(c, t) {
			wrong = append(wrong, t.Key+" is pending although it fits")
		}
	}
	return []figures.Figure{
		{Name: "D7/openb/gpus", Value: float64(given), Unit: "GPUs", OK: true},
		{Name: "D7/openb/pods", Value: float64(bound), Unit: "pods", OK: true},
	}, wrong
}

// leavesWholeNodes returns how many pods of gpusPerNode GPUs would fit.
func leavesWholeNodes(c *model.Cluster) (found []figures.Figure, wrong []string) {
	gpu := c.Dims().Index("nvidia.com/gpu")
	var whole int64
	for _, n := range c.Nodes() {
		whole += n.Idle.At(gpu) / gpusPerNode
	}
	if whole < leastWholeNodes {
		wrong = append(wrong, fmt.Sprintf("%d pods of %d GPUs fit, want at least %d", whole, gpusPerNode, leastWholeNodes))
	}
	return []figures.Figure{{Name: "D7/openb-half/whole", Value: float64(whole), Unit: "nodes", OK: len(wrong) == 0}}, wrong
}

// hasAvailable checks all nodes, using only what the trace contains of pods.
func hasAvailable(c *model.Cluster, t *api.TaskInfo) bool {
	for _, n := range c.Nodes() {
		if t.Signature.Admits(n.Node) && t.Request.Fits(n.Idle) {
			return true
		}
	}
	return false
}
