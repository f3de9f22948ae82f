// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package schedtest

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// amounts parses a list such as "2cpu 8Gi 1gpu 10pods example.com/fpga=2". A bare quantity is memory; gpu is an
// abbreviation of nvidia.com/gpu.
func amounts(text string) (v1.ResourceList, error) {
	list := v1.ResourceList{}
	for _, word := range strings.Fields(text) {
		name, number := nameAndNumber(word)
		quantity, err := resource.ParseQuantity(number)
		if err != nil {
			return nil, fmt.Errorf("amount %q: %w", word, err)
		}
		if _, twice := list[name]; twice {
			return nil, fmt.Errorf("amounts %q: %s is given twice", text, name)
		}
		list[name] = quantity
	}
	return list, nil
}

func nameAndNumber(word string) (v1.ResourceName, string) {
	if name, number, ok := strings.Cut(word, "="); ok {
		return v1.ResourceName(name), number
	}
	for _, unit := range []struct {
		suffix string
		name   v1.ResourceName
	}{{"cpu", v1.ResourceCPU}, {"pods", v1.ResourcePods}, {"gpu", "nvidia.com/gpu"}} {
		if number, ok := strings.CutSuffix(word, unit.suffix); ok {
			return unit.name, number
		}
	}
	return v1.ResourceMemory, word
}
