// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"context"
	"errors"
	"sync"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
)

// Selector evaluates the selectors of device classes and claims. It may be used concurrently.
type Selector struct {
	compiled *cel.Cache

	mu     sync.Mutex
	memory map[string]*results // by expression
}

// results are the results of an expression for devices that were seen.
type results struct {
	references
	understood bool
	byKey      map[string]result
}

type result struct {
	selected bool
	err      error
}

const (
	// compiledExpressions is how many expressions a Selector keeps; as many as kube-scheduler's plugin.
	compiledExpressions = 10
	// rememberedExpressions is for how many expressions a Selector keeps results, and rememberedResults is how many of each.
	rememberedExpressions = 64
	rememberedResults     = 1024
)

// NewSelector returns a Selector.
func NewSelector() *Selector {
	return &Selector{compiled: cel.NewCache(compiledExpressions, cel.Features{}), memory: map[string]*results{}}
}

// Selects reports whether all selectors select a device. One that cannot be evaluated selects none.
func (s *Selector) Selects(selectors []resourcev1.DeviceSelector, driver string, device *resourcev1.Device) bool {
	selected, err := s.Evaluate(selectors, driver, device)
	return err == nil && selected
}

// Evaluate reports whether all selectors select a device. It fails if one of them cannot be evaluated.
func (s *Selector) Evaluate(selectors []resourcev1.DeviceSelector, driver string, device *resourcev1.Device) (bool, error) {
	for _, selector := range selectors {
		if selector.CEL == nil {
			return false, errUnknownSelector
		}
		if matches, err := s.result(selector.CEL.Expression, driver, device); err != nil || !matches {
			return false, err
		}
	}
	return true, nil
}

var errUnknownSelector = errors.New("a selector is of an unknown kind")

// result returns the result of an expression. It evaluates the expression once for devices that do not differ in what the
// expression reads.
func (s *Selector) result(expression, driver string, device *resourcev1.Device) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.memory[expression]
	if known == nil {
		if len(s.memory) >= rememberedExpressions {
			clear(s.memory)
		}
		known = &results{byKey: map[string]result{}}
		known.references, known.understood = referencesOf(expression)
		s.memory[expression] = known
	}
	if !known.understood {
		return s.evaluate(expression, driver, device)
	}
	key := known.key(driver, device)
	if key == "" {
		return s.evaluate(expression, driver, device)
	}
	r, ok := known.byKey[key]
	if !ok {
		if len(known.byKey) >= rememberedResults {
			clear(known.byKey)
		}
		r.selected, r.err = s.evaluate(expression, driver, device)
		known.byKey[key] = r
	}
	return r.selected, r.err
}

func (s *Selector) evaluate(expression, driver string, device *resourcev1.Device) (bool, error) {
	compiled := s.compiled.GetOrCompile(expression)
	if compiled.Error != nil {
		return false, compiled.Error
	}
	matches, _, err := compiled.DeviceMatches(context.Background(), cel.Device{
		Driver: driver, AllowMultipleAllocations: device.AllowMultipleAllocations, Attributes: device.Attributes, Capacity: device.Capacity,
	})
	return matches, err
}

// Accessible reports whether a node can access a device of a slice.
func Accessible(slice *resourcev1.ResourceSlice, device *resourcev1.Device, node *v1.Node) bool {
	name, all, selector := slice.Spec.NodeName, slice.Spec.AllNodes, slice.Spec.NodeSelector
	if ptr.Deref(slice.Spec.PerDeviceNodeSelection, false) {
		name, all, selector = device.NodeName, device.AllNodes, device.NodeSelector
	}
	matches, err := structured.NodeMatches(structured.Features{}, node, ptr.Deref(name, ""), ptr.Deref(all, false), selector)
	return err == nil && matches
}
