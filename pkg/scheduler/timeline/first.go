// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/internal/heap"
)

// first keeps the n first of many values.
type first[T any] struct {
	n       int
	compare func(a, b T) int
	kept    heap.Heap[T] // the last of them first
}

func newFirst[T any](n int, compare func(a, b T) int) first[T] {
	return first[T]{n, compare, heap.New(func(a, b T) int { return compare(b, a) })}
}

// reset begins again, with another number of values.
func (f *first[T]) reset(n int) {
	f.n = n
	f.kept.Clear()
}

func (f *first[T]) add(v T) {
	switch {
	case f.kept.Len() < f.n:
		f.kept.Push(v)
	case f.compare(v, f.kept.First()) < 0:
		f.kept.Replace(v)
	}
}

// last returns the n-th value; false if there were fewer.
func (f *first[T]) last() (v T, ok bool) {
	if f.kept.Len() < f.n {
		return v, false
	}
	return f.kept.First(), true
}

// sorted returns the values in order. No more may be added before reset.
func (f *first[T]) sorted() []T {
	slices.SortFunc(f.kept.Items(), f.compare)
	return f.kept.Items()
}
