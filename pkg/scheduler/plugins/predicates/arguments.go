// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package predicates

import (
	"errors"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/plugins/predicates/internal/upstream"
)

// Arguments of the plugin; arguments that kube-batch has keep their names.
type Arguments struct {
	// MemoryPressure, DiskPressure and PIDPressure reject nodes that report the condition. The
	// node lifecycle controller also taints such nodes, so this matters only without it.
	MemoryPressure, DiskPressure, PIDPressure bool
	// VolumeBindTimeout is how long binding the volumes and devices of a gang may take before the gang is scheduled
	// again.
	VolumeBindTimeout time.Duration
	// SmallestDevice is the weight of the score that prefers nodes with the smallest devices that satisfy the claims of a pod;
	// 0: there is no such score. Size is the capacity that is compared, and TypicalSize the one with the score 1/2.
	SmallestDevice int64
	Size           string
	TypicalSize    int64
}

// maxBindTimeoutSeconds is a day, which is longer than any provisioner needs.
const maxBindTimeoutSeconds = 24 * 60 * 60

// maxWeight is the largest weight of a score, as of the scorers of nodeorder.
const maxWeight = 100

// typicalSize is the default of TypicalSize, between the memory of small and of large GPUs.
const typicalSize = "64Gi"

func decode(d *conf.Decoder) Arguments {
	a := Arguments{
		MemoryPressure: d.Bool("predicate.MemoryPressureEnable", false, "refuses nodes that report memory pressure, also without a taint"),
		DiskPressure:   d.Bool("predicate.DiskPressureEnable", false, "the same for disk pressure"),
		PIDPressure:    d.Bool("predicate.PIDPressureEnable", false, "the same for process ids"),

		VolumeBindTimeout: time.Second * time.Duration(d.Int("predicate.VolumeBindTimeoutSeconds", 600, 1, maxBindTimeoutSeconds,
			"how many seconds the claims of a gang, for volumes or devices, may take to be bound before the gang is scheduled again")),

		SmallestDevice: d.Int("smallestdevice.weight", 0, 0, maxWeight, "prefers nodes with the smallest devices that satisfy the resource claims of the pod"),
		Size:           "memory",
		TypicalSize:    64 << 30,
	}
	d.Parse("smallestdevice.capacity", a.Size, "the name of a capacity", "the capacity of devices that is their size", func(text string) error {
		a.Size = text
		if problems := validation.IsQualifiedName(text); len(problems) > 0 {
			return errors.New(strings.Join(problems, "; "))
		}
		return nil
	})
	d.Parse("smallestdevice.typical", typicalSize, "an amount, such as 64Gi", "the size with the score 1/2; devices without the capacity count as typical", func(text string) error {
		q, err := resource.ParseQuantity(text)
		if a.TypicalSize = q.Value(); err != nil || a.TypicalSize < 1 || a.TypicalSize > upstream.MaxSize {
			return errors.New("must be an amount from 1 to 1Pi")
		}
		return nil
	})
	return a
}

// pressures returns the node conditions that reject a node.
func (a Arguments) pressures() []v1.NodeConditionType {
	var kinds []v1.NodeConditionType
	if a.MemoryPressure {
		kinds = append(kinds, v1.NodeMemoryPressure)
	}
	if a.DiskPressure {
		kinds = append(kinds, v1.NodeDiskPressure)
	}
	if a.PIDPressure {
		kinds = append(kinds, v1.NodePIDPressure)
	}
	return kinds
}
