// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

// smallest keeps the n smallest of many times, as a heap with the greatest of them first.
type smallest struct {
	n    int
	heap []int64
}

func newSmallest(n int) *smallest { return &smallest{n: n} }

func (s *smallest) add(at int64) {
	switch {
	case len(s.heap) < s.n:
		s.heap = append(s.heap, at)
		for i := len(s.heap) - 1; i > 0 && s.heap[(i-1)/2] < s.heap[i]; i = (i - 1) / 2 {
			s.heap[i], s.heap[(i-1)/2] = s.heap[(i-1)/2], s.heap[i]
		}
	case at < s.heap[0]:
		s.heap[0] = at
		s.sink()
	}
}

// sink moves the first entry down to its place.
func (s *smallest) sink() {
	for i := 0; ; {
		child := 2*i + 1
		if child >= len(s.heap) {
			return
		}
		if child+1 < len(s.heap) && s.heap[child+1] > s.heap[child] {
			child++
		}
		if s.heap[i] >= s.heap[child] {
			return
		}
		s.heap[i], s.heap[child] = s.heap[child], s.heap[i]
		i = child
	}
}

// last returns the n-th smallest time; NoEnd if there were fewer.
func (s *smallest) last() int64 {
	if len(s.heap) < s.n {
		return NoEnd
	}
	return s.heap[0]
}
