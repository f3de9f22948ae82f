// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

// bursts are full clusters of low priority in which one gang of high priority needs an eighth of the capacity.
func bursts(nodes int) []benchmark {
	gang := job{name: "gang", queue: "a", class: high, min: nodes, size: nodes, gpus: 1}
	burst := func(name, about string, min, size int) benchmark {
		victims := nodes
		if min > 1 {
			victims = (nodes + min - 1) / min * min // whole gangs
		}
		return benchmark{
			name: "preempt-burst/" + name, about: about, evicts: true,
			build: func() *fixture {
				w := newFixture(nodes)
				w.addQueue("a", 1)
				for i := range w.gpus() / size {
					w.add(job{name: fmt.Sprintf("low-%05d", i), queue: "a", class: low, min: min, size: size, gpus: 1}.running())
				}
				w.add(gang)
				return w
			},
			cycles: []cycle{{
				want:   outcome{"a low": {victims: victims}, "a high": {pipelined: nodes}},
				limits: []limit{{name: "cycle", most: 200}},
			}},
		}
	}
	return []benchmark{
		burst("singles", "a gang takes an eighth of a full cluster from jobs of one pod", 1, 1),
		burst("surplus", "the same from jobs of eight pods that need one", 1, 8),
		burst("gangs", "the same from gangs of eight", 8, 8),
	}
}
