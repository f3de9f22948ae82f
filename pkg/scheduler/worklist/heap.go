// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package worklist

// heap keeps items so that the best is first. A job that is returned is usually the last in the order, which costs
// one comparison here; in a sorted list all others would have to move.
type heap[T any] struct {
	compare func(a, b T) int
	items   []T
}

func (h *heap[T]) empty() bool { return len(h.items) == 0 }

func (h *heap[T]) first() T { return h.items[0] }

func (h *heap[T]) push(item T) {
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

// pop takes out the first.
func (h *heap[T]) pop() {
	var none T
	last := len(h.items) - 1
	h.items[0] = h.items[last]
	h.items[last] = none
	h.items = h.items[:last]
	h.sink()
}

// sink moves the first to its place, after it has become worse.
func (h *heap[T]) sink() {
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
