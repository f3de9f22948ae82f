// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// termIndex holds the affinity terms of all signatures in use. Lookup by one required label keeps
// the cost of a class at the number of a pod's labels, not at the number of terms.
type termIndex struct {
	byKey   map[string]*activeTerm
	byLabel map[string][]*activeTerm // by Term.RequiredLabel
	others  []*activeTerm
	next    uint64
	// generation changes whenever the set of terms does, or the labels of a namespace: older classes are then invalid.
	generation uint64
}

type activeTerm struct {
	api.Term
	number uint64
	refs   int
}

func newTermIndex() *termIndex {
	return &termIndex{byKey: map[string]*activeTerm{}, byLabel: map[string][]*activeTerm{}}
}

func (ti *termIndex) add(terms []api.Term) {
	for _, t := range terms {
		active, ok := ti.byKey[t.Key()]
		if !ok {
			active = &activeTerm{Term: t, number: ti.next}
			ti.next++
			ti.generation++
			ti.byKey[t.Key()] = active
			if label := t.RequiredLabel(); label == "" {
				ti.others = append(ti.others, active)
			} else {
				ti.byLabel[label] = append(ti.byLabel[label], active)
			}
		}
		active.refs++
	}
}

func (ti *termIndex) remove(terms []api.Term) {
	for _, t := range terms {
		active := ti.byKey[t.Key()]
		if active.refs--; active.refs > 0 {
			continue
		}
		ti.generation++
		delete(ti.byKey, t.Key())
		removed := func(other *activeTerm) bool { return other == active }
		if label := t.RequiredLabel(); label == "" {
			ti.others = slices.DeleteFunc(ti.others, removed)
		} else if rest := slices.DeleteFunc(ti.byLabel[label], removed); len(rest) > 0 {
			ti.byLabel[label] = rest
		} else {
			delete(ti.byLabel, label)
		}
	}
}

// selecting returns the numbers of the terms that select pod, in order, as a key.
func (ti *termIndex) selecting(pod *v1.Pod, namespaceLabels labels.Set) string {
	if len(ti.byKey) == 0 {
		return ""
	}
	var numbers []uint64
	try := func(candidates []*activeTerm) {
		for _, t := range candidates {
			if t.Selects(pod, namespaceLabels) {
				numbers = append(numbers, t.number)
			}
		}
	}
	try(ti.others)
	for name, value := range pod.Labels {
		try(ti.byLabel[name+"="+value])
	}
	slices.Sort(numbers)
	var key []byte
	for _, n := range numbers {
		key = append(strconv.AppendUint(key, n, 36), ',')
	}
	return string(key)
}
