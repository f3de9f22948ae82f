// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// GPUsPerNode is how many GPUs a node has. Jobs with more have several pods, on a node each.
const GPUsPerNode = 8

// Large is the beginning of the names of jobs of at least GPUsPerNode GPUs.
const Large = "large-"

// Month are jobs whose sizes are like those of the Philly trace (Jeon et al., USENIX ATC '19). They arrive at any time, and most
// of them are short. Equal months have equal jobs.
type Month struct {
	Nodes, Jobs int
	MostGPUs    int     // of a job, at most 64
	Load        float64 // the GPU time of all jobs, as a part of that of the nodes
	Queues      int     // 0: jobs name no queue
	Seed        uint64
}

const seconds = 30 * 86_400

type job struct {
	at, seconds float64
	gpus, queue int
}

// sizes are the GPUs of 2,000 jobs.
func (m *Month) sizes() (sizes []int) {
	for _, s := range [...]struct{ gpus, jobs int }{{1, 975}, {2, 47}, {4, 321}, {8, 543}, {16, 106}, {32, 6}, {64, 2}} {
		if s.gpus <= m.MostGPUs {
			sizes = append(sizes, slices.Repeat([]int{s.gpus}, s.jobs)...)
		}
	}
	return sizes
}

// draw returns the jobs in the order of their arrival. Run times are scaled so that all of them together are the load.
func (m *Month) draw() []job {
	random := rand.New(rand.NewPCG(m.Seed, 0)) //nolint:gosec // equal seeds give equal jobs
	sizes, list, work := m.sizes(), make([]job, m.Jobs), 0.0
	for i := range list {
		j := job{at: random.Float64() * seconds, gpus: sizes[random.IntN(len(sizes))]}
		if m.Queues > 0 {
			j.queue = random.IntN(m.Queues)
		}
		j.seconds = min(math.Exp(8.5+1.5*random.NormFloat64()), 7*86_400)
		list[i], work = j, work+float64(j.gpus)*j.seconds
	}
	scale := m.Load * float64(m.Nodes*GPUsPerNode) * seconds / work
	for i := range list {
		list[i].seconds = max(list[i].seconds*scale, 1)
	}
	slices.SortStableFunc(list, func(a, b job) int { return cmp.Compare(a.at, b.at) })
	return list
}

// Trace returns the jobs in the format jsonl.
func (m *Month) Trace() ([]byte, error) {
	type object = map[string]any
	var text bytes.Buffer
	lines := json.NewEncoder(&text)
	for q := range m.Queues {
		if err := lines.Encode(object{"t": 0, "queue": object{"name": queueName(q), "spec": object{"weight": 1 + q%3}}}); err != nil {
			return nil, err
		}
	}
	for i, j := range m.draw() {
		perPod, name := min(j.gpus, GPUsPerNode), "small-"
		if j.gpus >= GPUsPerNode {
			name = Large
		}
		submit := object{
			"name": fmt.Sprint(name, i), "min": j.gpus / perPod, "duration": int(j.seconds),
			"request": object{"cpu": fmt.Sprint(4 * perPod), "nvidia.com/gpu": fmt.Sprint(perPod)},
		}
		if m.Queues > 0 {
			submit["queue"] = queueName(j.queue)
		}
		if err := lines.Encode(object{"t": int(j.at), "submit": submit}); err != nil {
			return nil, err
		}
	}
	return text.Bytes(), nil
}

func queueName(q int) string { return fmt.Sprint("vc", q) }

// NodeSpec returns the nodes for the flag --nodes.
func (m *Month) NodeSpec() string {
	return fmt.Sprintf("count=%d,cpu=64,memory=512Gi,nvidia.com/gpu=%d", m.Nodes, GPUsPerNode)
}
