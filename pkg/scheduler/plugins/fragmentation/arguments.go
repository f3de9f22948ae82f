// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package fragmentation

import (
	"fmt"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/fragmentation"
)

// maxWeight is the largest weight of the plugin, as of the scorers of nodeorder.
const maxWeight = 100

// maxTypeWeight is the largest weight of a type.
const maxTypeWeight = 1000

// ofMembers is the value of the argument types for the types of the members of queues.
const ofMembers = "members"

// Arguments are the arguments of the plugin.
type Arguments struct {
	// Weight is the weight of the score; 0: the plugin does nothing.
	Weight int64
	// Resource is the extended resource of the devices.
	Resource v1.ResourceName
	// Types are given by the policy; none: those of the members of queues.
	Types []Type
	// WithCPU makes types of members that request no device.
	WithCPU bool
}

// Type is a type of pods that the policy names.
type Type struct {
	Request v1.ResourceList
	Weight  int64
}

// SetDefaults sets the defaults.
func (a *Arguments) SetDefaults() { *a = Arguments{Weight: 10, Resource: "nvidia.com/gpu"} }

// decode reads arguments over the defaults.
func decode(d *conf.Decoder) Arguments {
	var a Arguments
	a.SetDefaults()
	a.Weight = d.Int("fragmentation.weight", a.Weight, 0, maxWeight, "prefers nodes where the pod leaves fewer devices that other pods cannot use")
	a.Resource = v1.ResourceName(d.String("fragmentation.resource", string(a.Resource), "the extended resource of the devices"))
	d.Parse("fragmentation.types", ofMembers, ofMembers+", or types as in nvidia.com/gpu=1,cpu=8,weight=3; nvidia.com/gpu=8,cpu=96,weight=1",
		"which pods must find devices that they can use; "+ofMembers+": those that run or wait in queues, by their number", a.parseTypes)
	a.WithCPU = d.Bool("fragmentation.withCPU", false, "whether members that request no device count too; devices are of no use to them, so fuller nodes are preferred")
	return a
}

// parseTypes reads types that are separated by semicolons.
func (a *Arguments) parseTypes(text string) error {
	a.Types = nil
	for item := range strings.SplitSeq(text, ";") {
		t, err := parseType(item)
		if err != nil {
			return err
		}
		a.Types = append(a.Types, t)
	}
	if len(a.Types) > fragmentation.MaxTypes {
		return fmt.Errorf("must be at most %d types", fragmentation.MaxTypes)
	}
	return nil
}

func parseType(text string) (Type, error) {
	t := Type{Request: v1.ResourceList{}, Weight: 1}
	for part := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok {
			return t, fmt.Errorf("%q is not KEY=VALUE, as in nvidia.com/gpu=8,cpu=96,weight=1", part)
		}
		if key == "weight" {
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil || n < 1 || n > maxTypeWeight {
				return t, fmt.Errorf("weight: %q is not a whole number from 1 to %d", value, maxTypeWeight)
			}
			t.Weight = n
			continue
		}
		q, err := resource.ParseQuantity(value)
		if err != nil || q.Sign() < 0 {
			return t, fmt.Errorf("%s: %q is not an amount, such as 8 or 512Gi", key, value)
		}
		t.Request[v1.ResourceName(key)] = q
	}
	return t, nil
}
