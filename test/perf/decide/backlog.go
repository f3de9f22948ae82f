// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

// backlogQueues is the number of queues of a backlog benchmark, all of the same weight.
const backlogQueues = 8

// backlogs are full clusters with as many pending as running jobs, all of one pod with one GPU.
func backlogs(nodes int) []benchmark {
	perQueue := nodes * gpusPerNode / backlogQueues // deserved by each queue
	evenly := func(i int) int { return i % backlogQueues }
	alike := func(int) string { return low }
	return []benchmark{
		backlog("balanced", "every queue has what it deserves, so nothing is to be done", nodes, evenly, evenly, alike, outcome{}),
		backlog("unbalanced", "half of the queues hold everything, and the others wait", nodes,
			func(i int) int { return i % (backlogQueues / 2) },
			func(i int) int { return backlogQueues/2 + i%(backlogQueues/2) },
			alike, halves(perQueue)),
		backlog("priority", "every queue has what it deserves, and an eighth of what waits is of high priority", nodes, evenly, evenly,
			func(i int) string {
				if isHigh(i) {
					return high
				}
				return low
			},
			swapped(perQueue)),
	}
}

// isHigh distributes an eighth of the pending jobs over all queues and creation times.
func isHigh(i int) bool { return i/backlogQueues%8 == i%backlogQueues }

// backlog takes functions that return the queue of the i-th running and of the i-th pending job, and the class of the
// latter.
func backlog(name, about string, nodes int, runs, waits func(int) int, class func(int) string, want outcome) benchmark {
	return benchmark{
		name: "backlog/" + name, about: about, evicts: true,
		build: func() *fixture {
			w := newFixture(nodes)
			for q := range backlogQueues {
				w.addQueue(queueName(q), 1)
			}
			for i := range w.gpus() {
				w.add(single(fmt.Sprintf("running-%05d", i), queueName(runs(i)), low).running())
			}
			for i := range w.gpus() {
				w.add(single(fmt.Sprintf("waiting-%05d", i), queueName(waits(i)), class(i)))
			}
			return w
		},
		cycles: []cycle{{want: want, limits: []limit{{name: "cycle", most: 300}}}},
	}
}

func queueName(i int) string { return fmt.Sprintf("q%d", i) }

// halves returns the outcome in which the first half of the queues loses everything above its deserved share to the
// second half.
func halves(perQueue int) outcome {
	want := outcome{}
	for q := range backlogQueues {
		if q < backlogQueues/2 {
			want[queueName(q)+" "+low] = counts{victims: perQueue}
		} else {
			want[queueName(q)+" "+low] = counts{pipelined: perQueue}
		}
	}
	return want
}

// swapped returns the outcome in which each queue loses as many jobs of low priority as it has pending jobs of high
// priority.
func swapped(perQueue int) outcome {
	want := outcome{}
	for i := range perQueue * backlogQueues {
		if isHigh(i) {
			q := queueName(i % backlogQueues)
			want[q+" "+low] = want[q+" "+low].plus(counts{victims: 1})
			want[q+" "+high] = want[q+" "+high].plus(counts{pipelined: 1})
		}
	}
	return want
}
