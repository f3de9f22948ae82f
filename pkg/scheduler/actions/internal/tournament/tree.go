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
	// rounds are, by place, those who take part in each: in the first the place is the node's index, in
	// the others the number of the match that was won. The last has one place.
	rounds [][]entry[V]
	again  []matches // to be played again, by round
}

type entry[V any] struct {
	worth V
	rank  int32 // the node's
	index int32 // the node's; nobody for an empty place
}

const nobody = -1

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

// New returns an empty tree.
func New[V any](compare func(a, b V) int) *Tree[V] { return &Tree[V]{compare: compare} }

// Fill replaces what is in the tree by all nodes that add is called with.
func (t *Tree[V]) Fill(each func(add func(*api.NodeInfo, V))) {
	for _, round := range t.rounds {
		vacate(round)
	}
	each(t.Set)
}

func vacate[V any](round []entry[V]) {
	for i := range round {
		round[i].index = nobody
	}
}

// Best returns the best node and its worth; nil if the tree is empty.
func (t *Tree[V]) Best() (*api.NodeInfo, V) {
	t.play()
	if len(t.rounds) > 0 {
		if best := &t.rounds[len(t.rounds)-1][0]; best.index != nobody {
			return t.nodes[best.index], best.worth
		}
	}
	var none V
	return nil, none
}

// Set adds a node, or changes its worth.
func (t *Tree[V]) Set(n *api.NodeInfo, worth V) {
	if n.Index >= len(t.nodes) {
		t.grow(n.Index + 1)
	}
	t.nodes[n.Index] = n
	t.rounds[0][n.Index] = entry[V]{worth, n.Rank, int32(n.Index)}
	t.again[0].add(n.Index / width)
}

// Remove takes a node out, if it is in.
func (t *Tree[V]) Remove(n *api.NodeInfo) {
	if n.Index < len(t.nodes) && t.rounds[0][n.Index].index != nobody {
		t.rounds[0][n.Index].index = nobody
		t.again[0].add(n.Index / width)
	}
}

// grow makes place for at least so many nodes, and for twice as many as before. All is played again.
func (t *Tree[V]) grow(places int) {
	places = max(places, 2*len(t.nodes), width)
	t.nodes = append(t.nodes, make([]*api.NodeInfo, places-len(t.nodes))...)
	first := make([]entry[V], places)
	vacate(first)
	if len(t.rounds) > 0 {
		copy(first, t.rounds[0])
	}
	t.rounds, t.again = [][]entry[V]{first}, nil
	for places > 1 {
		places = (places + width - 1) / width
		round := make([]entry[V], places)
		vacate(round)
		t.rounds = append(t.rounds, round)
		t.again = append(t.again, matches{listed: make([]bool, places)})
	}
	for i := range t.again[0].listed {
		t.again[0].add(i)
	}
}

// play plays the matches that somebody new takes part in, round by round.
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
	best := entry[V]{index: nobody}
	for i := range participants {
		if p := &participants[i]; p.index != nobody && (best.index == nobody || t.better(p, &best)) {
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
