// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import "slices"

// first keeps the n first of many values, as a heap with the last of them at its root.
type first[T any] struct {
	n       int
	compare func(a, b T) int
	heap    []T
}

func (f *first[T]) add(v T) {
	switch {
	case len(f.heap) < f.n:
		f.heap = append(f.heap, v)
		for i := len(f.heap) - 1; i > 0 && f.compare(f.heap[(i-1)/2], f.heap[i]) < 0; i = (i - 1) / 2 {
			f.heap[i], f.heap[(i-1)/2] = f.heap[(i-1)/2], f.heap[i]
		}
	case f.compare(v, f.heap[0]) < 0:
		f.heap[0] = v
		f.sink()
	}
}

// sink moves the root down to its place.
func (f *first[T]) sink() {
	for i := 0; ; {
		child := 2*i + 1
		if child >= len(f.heap) {
			return
		}
		if child+1 < len(f.heap) && f.compare(f.heap[child+1], f.heap[child]) > 0 {
			child++
		}
		if f.compare(f.heap[i], f.heap[child]) >= 0 {
			return
		}
		f.heap[i], f.heap[child] = f.heap[child], f.heap[i]
		i = child
	}
}

// last returns the n-th value; false if there were fewer.
func (f *first[T]) last() (v T, ok bool) {
	if len(f.heap) < f.n {
		return v, false
	}
	return f.heap[0], true
}

// sorted returns the values in order. No more may be added.
func (f *first[T]) sorted() []T {
	slices.SortFunc(f.heap, f.compare)
	return f.heap
}
