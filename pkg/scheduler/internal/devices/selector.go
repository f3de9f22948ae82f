// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"context"
	"errors"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
)

// Selector evaluates the selectors of device classes and claims.
type Selector struct{ compiled *cel.Cache }

// compiledExpressions is how many expressions a Selector keeps; as many as kube-scheduler's plugin.
const compiledExpressions = 10

// NewSelector returns a Selector.
func NewSelector() *Selector { return &Selector{cel.NewCache(compiledExpressions, cel.Features{})} }

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
		compiled := s.compiled.GetOrCompile(selector.CEL.Expression)
		if compiled.Error != nil {
			return false, compiled.Error
		}
		matches, _, err := compiled.DeviceMatches(context.Background(), cel.Device{
			Driver: driver, AllowMultipleAllocations: device.AllowMultipleAllocations, Attributes: device.Attributes, Capacity: device.Capacity,
		})
		if err != nil || !matches {
			return false, err
		}
	}
	return true, nil
}

var errUnknownSelector = errors.New("a selector is of an unknown kind")

// Accessible reports whether a node can access a device of a slice.
func Accessible(slice *resourcev1.ResourceSlice, device *resourcev1.Device, node *v1.Node) bool {
	name, all, selector := slice.Spec.NodeName, slice.Spec.AllNodes, slice.Spec.NodeSelector
	if ptr.Deref(slice.Spec.PerDeviceNodeSelection, false) {
		name, all, selector = device.NodeName, device.AllNodes, device.NodeSelector
	}
	matches, err := structured.NodeMatches(structured.Features{}, node, ptr.Deref(name, ""), ptr.Deref(all, false), selector)
	return err == nil && matches
}
