// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package nodeindex

import "math/bits"

// NodeSet is a set of nodes, by index. The zero value is empty.
type NodeSet struct {
	bits []uint64
}

// Has reports whether the node with that index is in the set.
func (s *NodeSet) Has(index int) bool {
	return index/64 < len(s.bits) && s.bits[index/64]&(1<<(index%64)) != 0
}

// Len returns how many nodes are in the set.
func (s *NodeSet) Len() int {
	n := 0
	for _, word := range s.bits {
		n += bits.OnesCount64(word)
	}
	return n
}

// Each calls visit for every index in the set, in ascending order.
func (s *NodeSet) Each(visit func(index int)) {
	for w, word := range s.bits {
		for ; word != 0; word &= word - 1 {
			visit(w*64 + bits.TrailingZeros64(word))
		}
	}
}

// Until calls visit for every index in the set, in ascending order, until it returns true.
func (s *NodeSet) Until(visit func(index int) bool) {
	for w, word := range s.bits {
		for ; word != 0; word &= word - 1 {
			if visit(w*64 + bits.TrailingZeros64(word)) {
				return
			}
		}
	}
}

// set adds the index to the set or removes it.
func (s *NodeSet) set(index int, in bool) {
	if more := index/64 + 1 - len(s.bits); more > 0 {
		s.bits = append(s.bits, make([]uint64, more)...)
	}
	if in {
		s.bits[index/64] |= 1 << (index % 64)
	} else {
		s.bits[index/64] &^= 1 << (index % 64)
	}
}

// clear removes all indexes, and makes space for those below n.
func (s *NodeSet) clear(n int) {
	clear(s.bits)
	for len(s.bits) < (n+63)/64 {
		s.bits = append(s.bits, 0)
	}
}

// add adds an index for which clear has made space.
func (s *NodeSet) add(index int) { s.bits[index/64] |= 1 << (index % 64) }

// union adds all indexes of another set.
func (s *NodeSet) union(o *NodeSet) {
	for len(s.bits) < len(o.bits) {
		s.bits = append(s.bits, 0)
	}
	for w, word := range o.bits {
		s.bits[w] |= word
	}
}

// includes reports whether all indexes of another set are in the set.
func (s *NodeSet) includes(o *NodeSet) bool {
	for w, word := range o.bits {
		if w >= len(s.bits) && word != 0 || w < len(s.bits) && word&^s.bits[w] != 0 {
			return false
		}
	}
	return true
}
