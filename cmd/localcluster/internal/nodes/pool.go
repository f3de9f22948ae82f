// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Pool is a number of equal nodes.
type Pool struct {
	// Name is the prefix of the node names: "gpu" gives gpu-0, gpu-1 and so on.
	Name string

	// Count is the number of nodes.
	Count int

	// Resources is the capacity and the allocatable amount of each node.
	Resources corev1.ResourceList
}

// DefaultSpec is the default capacity of a node.
const DefaultSpec = "cpu=32,memory=256Gi,pods=110"

const (
	defaultName = "node"
	nameKey     = "name"
	countKey    = "count"
)

// ParsePool parses a pool from a list such as "cpu=32,memory=256Gi,nvidia.com/gpu=8". Every key is a resource except
// name (default "node") and count (default: the argument). Missing values of cpu, memory and pods are taken from
// DefaultSpec.
func ParsePool(spec string, count int) (Pool, error) {
	pool := Pool{Name: defaultName, Count: count, Resources: corev1.ResourceList{}}
	if err := pool.read(DefaultSpec); err != nil {
		return Pool{}, fmt.Errorf("default node: %w", err)
	}
	if err := pool.read(spec); err != nil {
		return Pool{}, fmt.Errorf("node %q: %w", spec, err)
	}
	return pool, nil
}

func (p *Pool) read(spec string) error {
	seen := map[string]bool{}
	for part := range strings.SplitSeq(spec, ",") {
		key, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok || key == "" || value == "" {
			return fmt.Errorf("%q is not of the form resource=quantity", part)
		}
		if seen[key] {
			return fmt.Errorf("%s is given twice", key)
		}
		seen[key] = true
		if err := p.set(key, value); err != nil {
			return err
		}
	}
	return nil
}

func (p *Pool) set(key, value string) error {
	switch key {
	case nameKey:
		if problems := validation.IsDNS1123Label(value); len(problems) > 0 {
			return fmt.Errorf("name %q: %s", value, strings.Join(problems, "; "))
		}
		p.Name = value
		return nil
	case countKey:
		count, err := strconv.Atoi(value)
		if err != nil || count < 0 {
			return fmt.Errorf("count %q is not a whole number of nodes", value)
		}
		p.Count = count
		return nil
	}
	return p.setResource(corev1.ResourceName(key), value)
}

// setResource rejects what the API server would reject, and names without a domain that it would accept as extended
// resources, such as a misspelt "mem".
func (p *Pool) setResource(name corev1.ResourceName, value string) error {
	if !known(name) {
		return fmt.Errorf("%q is not a resource: want cpu, memory, pods, ephemeral-storage, hugepages-<size> or a name with a domain such as nvidia.com/gpu", name)
	}
	quantity, err := resource.ParseQuantity(value)
	if err != nil {
		return fmt.Errorf("%s=%s: want a quantity such as 4, 500m or 16Gi", name, value)
	}
	if quantity.Sign() < 0 {
		return fmt.Errorf("%s=%s is negative", name, value)
	}
	p.Resources[name] = quantity
	return nil
}

func known(name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods, corev1.ResourceEphemeralStorage:
		return true
	}
	if size, ok := strings.CutPrefix(string(name), corev1.ResourceHugePagesPrefix); ok {
		_, err := resource.ParseQuantity(size)
		return err == nil
	}
	return strings.Contains(string(name), "/") && len(validation.IsQualifiedName(string(name))) == 0
}
