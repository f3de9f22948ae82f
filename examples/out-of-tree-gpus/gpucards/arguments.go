// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package gpucards

import (
	"fmt"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
)

// maxWeight is the largest weight of a score.
const maxWeight = 100

// arguments are those of the policy file. A weight of 0 disables a score.
type arguments struct {
	resource            v1.ResourceName
	memory, clock, free api.Score        // weights
	clocks              map[string]int64 // in MHz, by product
}

// decode reads the arguments, for New and for "config check".
func decode(d *conf.Decoder) arguments {
	weight := func(key, about string) api.Score { return api.Score(d.Int(key, 1, 0, maxWeight, about)) }
	a := arguments{
		resource: v1.ResourceName(d.String("resource", "nvidia.com/gpu", "the extended resource of the cards")),
		memory:   weight("memory.weight", "prefers nodes whose cards have less memory"),
		clock:    weight("clock.weight", "prefers nodes whose cards have a higher clock"),
		free:     weight("free.weight", "prefers nodes with fewer free cards"),
	}
	d.Parse("clocks", "", "as in NVIDIA-A100-SXM4-80GB=1410,NVIDIA-L40S=2520", "the clock of products in MHz, which labels do not tell", a.parseClocks)
	return a
}

func (a *arguments) parseClocks(text string) error {
	a.clocks = map[string]int64{}
	for item := range strings.SplitSeq(text, ",") {
		product, value, _ := strings.Cut(strings.TrimSpace(item), "=")
		clock, err := strconv.ParseInt(value, 10, 64)
		if err != nil || product == "" || clock < 1 || clock > maxNumber {
			return fmt.Errorf("%q is not PRODUCT=MHZ, as in NVIDIA-L40S=2520", item)
		}
		a.clocks[product] = clock
	}
	return nil
}
