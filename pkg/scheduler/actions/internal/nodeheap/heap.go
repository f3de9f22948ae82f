// Package nodeheap keeps nodes in the order of what they are worth, where one node after the other
// changes its worth.
package nodeheap

import (
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// Heap is a binary heap of nodes with the best first. Nodes of equal worth are ordered by name.
type Heap[V any] struct {
	compare func(a, b V) int // negative if a is better
	list    []entry[V]
	at      []int32 // place in list by node index; -1 or beyond the end: not in it
}

type entry[V any] struct {
	worth V
	// Rank and index are the node's, copied because they are looked at often, and the node is elsewhere.
	rank, index int32
	node        *api.NodeInfo
}

// New returns an empty heap.
func New[V any](compare func(a, b V) int) *Heap[V] { return &Heap[V]{compare: compare} }

// Fill replaces what is in the heap by all nodes that add is called with, in time proportional to their
// number.
func (h *Heap[V]) Fill(each func(add func(*api.NodeInfo, V))) {
	for i := range h.list {
		h.at[h.list[i].index] = -1
	}
	h.list = h.list[:0]
	each(func(n *api.NodeInfo, worth V) {
		h.grow(n.Index)
		h.at[n.Index] = int32(len(h.list))
		h.list = append(h.list, entry[V]{worth, n.Rank, int32(n.Index), n})
	})
	for i := len(h.list)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

func (h *Heap[V]) grow(index int) {
	for index >= len(h.at) {
		h.at = append(h.at, -1)
	}
}

// Best returns the best node and its worth; nil if the heap is empty.
func (h *Heap[V]) Best() (*api.NodeInfo, V) {
	if len(h.list) == 0 {
		var none V
		return nil, none
	}
	return h.list[0].node, h.list[0].worth
}

// Set adds a node, or changes its worth.
func (h *Heap[V]) Set(n *api.NodeInfo, worth V) {
	h.grow(n.Index)
	i := int(h.at[n.Index])
	if i < 0 {
		i = len(h.list)
		h.list = append(h.list, entry[V]{worth, n.Rank, int32(n.Index), n})
		h.at[n.Index] = int32(i)
		h.up(i)
		return
	}
	h.list[i].worth = worth
	h.fix(i)
}

// Remove takes a node out, if it is in.
func (h *Heap[V]) Remove(n *api.NodeInfo) {
	if n.Index >= len(h.at) || h.at[n.Index] < 0 {
		return
	}
	i, last := int(h.at[n.Index]), len(h.list)-1
	h.at[n.Index] = -1
	if i != last {
		h.list[i] = h.list[last]
		h.at[h.list[i].index] = int32(i)
	}
	h.list = h.list[:last]
	if i != last {
		h.fix(i)
	}
}

func (h *Heap[V]) fix(i int) {
	if !h.down(i) {
		h.up(i)
	}
}

func (h *Heap[V]) less(i, j int) bool {
	a, b := &h.list[i], &h.list[j]
	if n := h.compare(a.worth, b.worth); n != 0 {
		return n < 0
	}
	if a.rank > 0 && b.rank > 0 {
		return a.rank < b.rank
	}
	return a.node.Name < b.node.Name
}

func (h *Heap[V]) swap(i, j int) {
	h.list[i], h.list[j] = h.list[j], h.list[i]
	h.at[h.list[i].index] = int32(i)
	h.at[h.list[j].index] = int32(j)
}

func (h *Heap[V]) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h.less(i, parent) {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h *Heap[V]) down(i int) (moved bool) {
	for {
		child := 2*i + 1
		if child >= len(h.list) {
			return moved
		}
		if right := child + 1; right < len(h.list) && h.less(right, child) {
			child = right
		}
		if !h.less(child, i) {
			return moved
		}
		h.swap(i, child)
		i, moved = child, true
	}
}
