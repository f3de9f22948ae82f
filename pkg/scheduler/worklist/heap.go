// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package worklist

import "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"

// heap keeps jobs so that the best is first. A job that is returned is usually the last in the order, which costs
// one comparison here; in a sorted list all others would have to move.
type heap struct {
	compare func(a, b *api.JobInfo) int
	jobs    []*api.JobInfo
}

func (h *heap) push(j *api.JobInfo) {
	h.jobs = append(h.jobs, j)
	for i := len(h.jobs) - 1; i > 0; {
		parent := (i - 1) / 2
		if h.compare(h.jobs[parent], h.jobs[i]) <= 0 {
			return
		}
		h.jobs[parent], h.jobs[i] = h.jobs[i], h.jobs[parent]
		i = parent
	}
}

// pop takes out the first.
func (h *heap) pop() {
	last := len(h.jobs) - 1
	h.jobs[0] = h.jobs[last]
	h.jobs[last] = nil
	h.jobs = h.jobs[:last]
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			return
		}
		if right := child + 1; right < last && h.compare(h.jobs[right], h.jobs[child]) < 0 {
			child = right
		}
		if h.compare(h.jobs[i], h.jobs[child]) <= 0 {
			return
		}
		h.jobs[i], h.jobs[child] = h.jobs[child], h.jobs[i]
		i = child
	}
}
