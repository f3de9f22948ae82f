// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package tournament keeps the best of many nodes, of which sometimes one changes its worth and
// sometimes many.
package tournament

import (
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// width is how many entries meet in a match. More make fewer rounds, but longer matches where a
// single node has changed.
const width = 8

// Tree is a tournament tree: in each round width neighbours meet, and the best of them goes on to the
// next, until one is left. Nodes of equal worth are ordered by name.
//
// Changes only note which matches have to be played again, which happens when the best is asked for.
// One change costs a match a round; any number of them at most one comparison for each node, and
// they walk through memory in order, where a heap would move each node through all of it.
type Tree[V any] struct {
	compare func(a, b V) int // negative if a is better
	nodes   []*api.NodeInfo  // by index
	// places are those of nodes in the first round, by index, in the order in which they first came; plus one,
	// so that zero is none. Few are those of a tree of NewOfFew.
	places []int32
	few    map[int]int32
	// rounds are the entries of each round, which but for the first are the winners of matches in the round
	// before. The last has one.
	rounds [][]entry[V]
	again  []matches // to be played again, by round
}

type entry[V any] struct {
	worth V
	rank  int32 // the node's
	index int32 // the node's; noEntry where a place is empty
}

const noEntry = -1

// matches are some matches of a round.
type matches struct {
	list   []int32
	listed []bool // by number of the match
}

func (m *matches) add(match int) {
	if !m.listed[match] {
		m.listed[match] = true
		m.list = append(m.list, int32(match))
	}
}

// New returns an empty tree for nodes that are given by index.
func New[V any](nodes []*api.NodeInfo, compare func(a, b V) int) *Tree[V] {
	return &Tree[V]{compare: compare, nodes: nodes, rounds: make([][]entry[V], 1)}
}

// NewOfFew returns an empty tree for so many of the nodes. It takes no memory for the others, and more time.
func NewOfFew[V any](nodes []*api.NodeInfo, compare func(a, b V) int, count int) *Tree[V] {
	t := New(nodes, compare)
	t.Grow(count)
	t.few = make(map[int]int32, count)
	return t
}

// Grow makes space for so many nodes, if the tree has had none yet.
func (t *Tree[V]) Grow(count int) {
	if t.places == nil {
		t.rounds[0] = make([]entry[V], 0, count)
	}
}

// Fill replaces what is in the tree by all nodes that add is called with.
func (t *Tree[V]) Fill(each func(add func(*api.NodeInfo, V))) {
	for _, round := range t.rounds {
		for i := range round {
			round[i].index = noEntry
		}
	}
	each(t.Set)
}

// Best returns the best node and its worth; nil if the tree is empty.
func (t *Tree[V]) Best() (*api.NodeInfo, V) {
	t.play()
	if last := t.rounds[len(t.rounds)-1]; len(last) > 0 && last[0].index != noEntry {
		return t.nodes[last[0].index], last[0].worth
	}
	var none V
	return nil, none
}

// Set adds a node, or changes its worth.
func (t *Tree[V]) Set(n *api.NodeInfo, worth V) {
	place := t.placeOf(n)
	if place == 0 {
		t.extend()
		place = int32(len(t.rounds[0]))
		if t.few != nil {
			t.few[n.Index] = place
		} else {
			t.places[n.Index] = place
		}
	}
	t.put(place, entry[V]{worth, n.Rank, int32(n.Index)})
}

func (t *Tree[V]) placeOf(n *api.NodeInfo) int32 {
	if t.few != nil {
		return t.few[n.Index]
	}
	if t.places == nil {
		t.places = make([]int32, len(t.nodes))
	}
	return t.places[n.Index]
}

// Remove takes a node out, if it is in.
func (t *Tree[V]) Remove(n *api.NodeInfo) {
	if len(t.rounds[0]) == 0 {
		return
	}
	if place := t.placeOf(n); place > 0 {
		t.put(place, entry[V]{index: noEntry})
	}
}

func (t *Tree[V]) put(place int32, e entry[V]) {
	t.rounds[0][place-1] = e
	if len(t.again) > 0 {
		t.again[0].add(int(place-1) / width)
	}
}

// extend adds a place to the first round, and to the others what that takes.
func (t *Tree[V]) extend() {
	for r, place := 0, len(t.rounds[0]); ; r, place = r+1, place/width {
		if r == len(t.rounds) {
			t.rounds, t.again = append(t.rounds, nil), append(t.again, matches{})
		}
		if place < len(t.rounds[r]) {
			return
		}
		t.rounds[r] = append(t.rounds[r], entry[V]{index: noEntry})
		if r > 0 {
			t.again[r-1].listed = append(t.again[r-1].listed, false)
		}
		if place == 0 {
			return
		}
	}
}

// play repeats the matches whose participants have changed, round by round.
func (t *Tree[V]) play() {
	for r := range t.again {
		again := &t.again[r]
		for _, match := range again.list {
			again.listed[match] = false
			from := int(match) * width
			t.rounds[r+1][match] = t.match(t.rounds[r][from:min(from+width, len(t.rounds[r]))])
			if r+1 < len(t.again) {
				t.again[r+1].add(int(match) / width)
			}
		}
		again.list = again.list[:0]
	}
}

// match returns the best of its participants.
func (t *Tree[V]) match(participants []entry[V]) entry[V] {
	best := entry[V]{index: noEntry}
	for i := range participants {
		if p := &participants[i]; p.index != noEntry && (best.index == noEntry || t.better(p, &best)) {
			best = *p
		}
	}
	return best
}

func (t *Tree[V]) better(a, b *entry[V]) bool {
	if n := t.compare(a.worth, b.worth); n != 0 {
		return n < 0
	}
	if a.rank > 0 && b.rank > 0 {
		return a.rank < b.rank
	}
	return t.nodes[a.index].Name < t.nodes[b.index].Name
}
