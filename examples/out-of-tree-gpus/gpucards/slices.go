// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package gpucards

import (
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
)

// What devices have: a capacity, and attributes.
const (
	capacityMemory   = resourcev1.QualifiedName("memory")
	attributeClock   = resourcev1.QualifiedName("clock")       // in MHz, an integer; drivers may publish it
	attributeProduct = resourcev1.QualifiedName("productName") // a key of the argument clocks
)

// readSlices returns the cards that drivers publish for single nodes. Of different cards of a node, the least memory and the
// lowest clock count, so that the order of slices makes no difference.
func (s *scores) readSlices() map[string]card {
	cards := map[string]card{}
	if s.slices == nil {
		return cards
	}
	list, err := s.slices.List(labels.Everything())
	if err != nil { // listers of informers do not fail
		return cards
	}
	for _, slice := range list {
		node := ptr.Deref(slice.Spec.NodeName, "")
		if node == "" {
			continue
		}
		for i := range slice.Spec.Devices {
			device := s.read(&slice.Spec.Devices[i])
			if device.memory == 0 { // no card
				continue
			}
			c := cards[node]
			cards[node] = card{memory: least(c.memory, device.memory), clock: least(c.clock, device.clock)}
		}
	}
	return cards
}

func (s *scores) read(device *resourcev1.Device) card {
	var c card
	if capacity, has := device.Capacity[capacityMemory]; has {
		c.memory = min(max(capacity.Value.Value(), 0), maxNumber<<20)
	}
	if c.clock = ptr.Deref(device.Attributes[attributeClock].IntValue, 0); c.clock <= 0 || c.clock > maxNumber {
		c.clock = s.arguments.clocks[ptr.Deref(device.Attributes[attributeProduct].StringValue, "")]
	}
	return c
}

// least returns the smaller one of two numbers, of which 0 is unknown.
func least(a, b int64) int64 {
	if a == 0 || b == 0 {
		return a + b
	}
	return min(a, b)
}
