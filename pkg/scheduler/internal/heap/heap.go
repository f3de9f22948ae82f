// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package heap has a binary heap of any type.
package heap

// Heap keeps items so that the first in order is at hand. An item that is pushed is usually the last in the order, which
// costs one comparison here; in a sorted list all others would have to move.
type Heap[T any] struct {
	compare func(a, b T) int
	items   []T
}

// New returns an empty heap.
func New[T any](compare func(a, b T) int) Heap[T] { return Heap[T]{compare: compare} }

// Len returns the number of items.
func (h *Heap[T]) Len() int { return len(h.items) }

// First returns the first item in order. The heap must not be empty.
func (h *Heap[T]) First() T { return h.items[0] }

// Items returns all items; only the first is in its place. They are the heap's own, and change with it.
func (h *Heap[T]) Items() []T { return h.items }

// Clear takes out all items and keeps their memory.
func (h *Heap[T]) Clear() {
	clear(h.items)
	h.items = h.items[:0]
}

// Push adds an item.
func (h *Heap[T]) Push(item T) {
	h.items = append(h.items, item)
	for i := len(h.items) - 1; i > 0; {
		parent := (i - 1) / 2
		if h.compare(h.items[parent], h.items[i]) <= 0 {
			return
		}
		h.items[parent], h.items[i] = h.items[i], h.items[parent]
		i = parent
	}
}

// Pop takes out the first item.
func (h *Heap[T]) Pop() {
	var none T
	last := len(h.items) - 1
	h.items[0] = h.items[last]
	h.items[last] = none
	h.items = h.items[:last]
	h.Fix()
}

// Replace puts an item in the place of the first one.
func (h *Heap[T]) Replace(item T) {
	h.items[0] = item
	h.Fix()
}

// Fix moves the first item to its place, after it has come to be later in order.
func (h *Heap[T]) Fix() {
	for i := 0; ; {
		child := 2*i + 1
		if child >= len(h.items) {
			return
		}
		if right := child + 1; right < len(h.items) && h.compare(h.items[right], h.items[child]) < 0 {
			child = right
		}
		if h.compare(h.items[i], h.items[child]) <= 0 {
			return
		}
		h.items[i], h.items[child] = h.items[child], h.items[i]
		i = child
	}
}
