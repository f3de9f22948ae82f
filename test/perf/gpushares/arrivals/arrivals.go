// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package arrivals measures which part of the GPUs of a cluster a rule for placements can allocate to pods that share GPUs:
// the experiment of Weng et al., "Beware of Fragmentation", USENIX ATC '23.
//
// All pods of a trace arrive in random order, then pods of the trace that are drawn with replacement, until they have
// requested 130 % of the GPUs. Each pod is placed at once or never, and no pod ends. What counts is how much is allocated
// when 100 % and 130 % were requested. As the random numbers are others than in the paper, only means of many seeds can be
// compared.
package arrivals

import (
	"fmt"
	"math/rand/v2"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/fragmentation"
)

// The dimensions of all vectors here.
const (
	cpu    = iota // milli-cpu
	memory        // MiB
	gpu           // GPUs of requests, whole or shared; thousandths of GPUs of what nodes have
	dimensions
)

// full and inflated are the parts of the GPUs that pods have requested when the allocation is measured, in percent.
const full, inflated = 100, 130

// Rule is a rule for placements. A pod goes to the node with the largest value, to the first by name of several.
type Rule int

// Rules.
const (
	Descent Rule = iota // the score of the paper
	Plugin              // the score of the plugin fragmentation with the policy gpu.yaml
	BestFit             // least cpu and GPUs left
)

// Result is which part of the GPUs is allocated, in percent.
type Result struct{ AtFull, AtInflated float64 }

// Workload is a trace.
type Workload struct {
	nodes        []Node // with GPUs, by name
	pods         []*class
	paper, known measure
	gpus         int64 // of all nodes, in thousandths
	most         api.Resource
}

// measure is F with some types: the sum over sets of them, as the paper has more types than fit in a set.
type measure []part

type part struct {
	set    *fragmentation.Set
	admits []fragmentation.Mask // by node
}

// Node is a node of a trace.
type Node struct {
	Name, Model       string
	CPU, Memory, GPUs int64 // milli-cpu, MiB, GPUs
}

// Pod is a pod of a trace.
type Pod struct {
	Name              string
	CPU, Memory, GPUs int64    // milli-cpu, MiB, GPUs
	Share             int64    // of each GPU, in thousandths
	Models            []string // permitted ones; none: all
}

// Run returns the result for one order of the pods. Equal seeds give equal results.
func (w *Workload) Run(rule Rule, seed uint64) Result {
	random := rand.New(rand.NewPCG(seed, 0))
	order := make([]*class, len(w.pods))
	for i, from := range random.Perm(len(w.pods)) {
		order[i] = w.pods[from]
	}
	var requested, allocated int64
	var result Result
	percent := func() float64 { return float64(allocated) * 100 / float64(w.gpus) }
	p := newPlacer(w, rule)
	for i := 0; ; i++ {
		if i == len(order) {
			order = append(order, w.pods[random.IntN(len(w.pods))])
		}
		pod := order[i]
		requested += pod.gpus()
		if p.place(pod) {
			allocated += pod.gpus()
		}
		if result.AtFull == 0 && requested*100 >= w.gpus*full {
			result.AtFull = percent()
		}
		if requested*100 >= w.gpus*inflated {
			result.AtInflated = percent()
			return result
		}
	}
}

// class are equal pods.
type class struct {
	number  int
	request api.Resource
	share   int64
	models  string // for keys
	admits  []bool // by node
}

func (c *class) gpus() int64 { return c.request[gpu] * c.share }

// New returns a workload. Nodes without GPUs are left out.
func New(nodes []Node, pods []Pod) (*Workload, error) {
	w := &Workload{most: make(api.Resource, dimensions)}
	for _, n := range nodes {
		if n.GPUs > 0 {
			w.nodes = append(w.nodes, n)
			w.gpus += n.GPUs * fragmentation.Whole
			for d, amount := range n.resources() {
				w.most[d] = max(w.most[d], amount)
			}
		}
	}
	sortByName(w.nodes, func(n *Node) string { return n.Name })
	sortByName(pods, func(p *Pod) string { return p.Name })
	classes, counts := w.classify(pods)
	if w.gpus == 0 || len(classes) == 0 {
		return nil, fmt.Errorf("there must be nodes with GPUs, and pods: there are %d GPUs and %d pods", w.gpus/fragmentation.Whole, len(pods))
	}
	w.paper = w.measure(classes, frequent(withoutMemory(classes, typesOf(classes, counts, true))))
	w.known = w.measure(classes, fragmentation.Popular(typesOf(classes, counts, false)))
	return w, nil
}

func (n *Node) resources() api.Resource {
	return api.Resource{cpu: n.CPU, memory: n.Memory, gpu: n.GPUs * fragmentation.Whole}
}
