// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	v1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/trace"
	"github.com/batch-scheduler/batch-scheduler/test/perf/figures"
)

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
	nodes, everything, err := readOpenb(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		all.skip = fmt.Sprintf("%v; -trace says where the trace is", err)
		half.skip = all.skip
		return all, half, nil
	case err != nil:
		return all, half, err
	}
	jobs, err := jobsOf(everything)
	if err != nil {
		return all, half, err
	}
	firstJobs, err := jobsOf(everything[:1+(len(everything)-1)/2])
	all.build = func() *fixture { return traceFixture(nodes, jobs) }
	half.build = func() *fixture { return traceFixture(nodes, firstJobs) }
	return all, half, err
}

// readOpenb reads the nodes, and the lines of the list of pods, of which the first is the header.
func readOpenb(dir string) (nodes []*v1.Node, lines [][]byte, err error) {
	file := filepath.Join(dir, "openb_nodes.csv")
	f, err := os.Open(file)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if nodes, err = trace.ReadNodes(file, f); err != nil {
		return nil, nil, err
	}
	pods, err := os.ReadFile(filepath.Join(dir, "openb_pods.csv"))
	return nodes, bytes.Split(bytes.TrimSpace(pods), []byte("\n")), err
}

// jobsOf reads some lines of the list of pods, those of pods that were never scheduled included.
func jobsOf(lines [][]byte) ([]trace.Job, error) {
	t, err := trace.Read("openb", "openb_pods.csv", bytes.NewReader(bytes.Join(lines, []byte("\n"))), trace.Options{Unscheduled: true})
	if err != nil {
		return nil, err
	}
	return t.Jobs, nil
}

func traceFixture(nodes []*v1.Node, jobs []trace.Job) *fixture {
	w := newFixture(len(nodes))
	w.addQueue("a", 1)
	for i, n := range nodes {
		w.nodes[i].Labels[trace.GPUModel] = n.Labels[trace.GPUModel]
		w.nodes[i].Status.Allocatable, w.nodes[i].Status.Capacity = n.Status.Allocatable, n.Status.Capacity
	}
	for i := range jobs {
		j := &jobs[i]
		w.add(job{
			name: fmt.Sprintf("gang-%04d", i), queue: "a", class: low, min: j.Min, size: j.Replicas, asks: j.Request,
			alter: func(pod *v1.Pod) { pod.Spec.Affinity = trace.Affinity(j.Selector) },
		})
	}
	return w
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
