// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// month is a month of jobs whose sizes are like those of the Philly trace (Jeon et al., USENIX ATC '19), up to 16 GPUs. They
// arrive at any time, and most of them are short.
type month struct {
	nodes, jobs int
	seed        uint64
}

const (
	gpusPerNode = 8
	load        = 0.9
	seconds     = 30 * 86_400
)

// large and small are the beginnings of the names of jobs of at least 8 GPUs, and of others.
const large, small = "large-", "small-"

type job struct {
	at, seconds float64
	gpus        int
}

// draw returns the jobs. Run times are scaled so that all of them together are the load.
func (m month) draw() []job {
	var sizes []int
	for _, s := range [...]struct{ gpus, jobs int }{{1, 975}, {2, 47}, {4, 321}, {8, 543}, {16, 106}} {
		sizes = append(sizes, slices.Repeat([]int{s.gpus}, s.jobs)...)
	}
	random := rand.New(rand.NewPCG(m.seed, 0)) //nolint:gosec // equal seeds give equal jobs
	list, work := make([]job, m.jobs), 0.0
	for i := range list {
		list[i] = job{
			at: random.Float64() * seconds, gpus: sizes[random.IntN(len(sizes))], seconds: min(math.Exp(8.5+1.5*random.NormFloat64()), 7*86_400),
		}
		work += float64(list[i].gpus) * list[i].seconds
	}
	scale := load * float64(m.nodes*gpusPerNode) * seconds / work
	for i := range list {
		list[i].seconds = max(list[i].seconds*scale, 1)
	}
	return list
}

// trace returns the jobs in the format jsonl.
func (m month) trace() ([]byte, error) {
	type object map[string]any
	var text bytes.Buffer
	lines := json.NewEncoder(&text)
	for i, j := range m.draw() {
		perPod, name := min(j.gpus, gpusPerNode), small
		if j.gpus >= gpusPerNode {
			name = large
		}
		err := lines.Encode(object{"t": int(j.at), "submit": object{
			"name": fmt.Sprint(name, i), "min": j.gpus / perPod, "duration": int(j.seconds),
			"request": object{"cpu": fmt.Sprint(4 * perPod), "nvidia.com/gpu": fmt.Sprint(perPod)},
		}})
		if err != nil {
			return nil, err
		}
	}
	return text.Bytes(), nil
}
