// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package arrivals

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/fragmentation"
)

// Mixes are the names of what Derive can make of the pods of a trace.
func Mixes() []string { return []string{"default", "gpushare100", "multigpu50", "gpuspec33", "cpu250"} }

// constraints are the models that pods with a constraint permit, with how many of 70 such pods have it, as in the first pods of
// the workload gpuspec33 of the paper.
var constraints = [...]struct {
	models string
	pods   int
}{
	{"T4", 33}, {"V100M16|V100M32", 13}, {"G2", 10}, {"P100", 5}, {"P100|V100M16|V100M32", 3}, {"G3", 2},
	{"P100|T4|V100M16|V100M32", 2}, {"G2|P100|T4|V100M16|V100M32", 2},
}

// Derive returns pods like those of a workload of the paper, of that name. The paper has drawn pods at random, so these are
// other ones:
//
//	default      all pods of the trace
//	gpushare100  pods with GPUs are drawn from those that share one, as many as before
//	multigpu50   pods with several GPUs are drawn and added, until such pods request half of the GPUs
//	gpuspec33    a third of the pods with GPUs permit only some models
//	cpu250       pods without GPUs are drawn, until they are a quarter of all pods
func Derive(mix string, pods []Pod) ([]Pod, error) {
	d := derivation{random: rand.New(rand.NewPCG(1, 0))} //nolint:gosec // the pods are the same each time
	without := func(p Pod) bool { return p.GPUs == 0 }
	shares := func(p Pod) bool { return p.GPUs > 0 && p.Share < fragmentation.Whole }
	several := func(p Pod) bool { return p.GPUs > 1 }
	switch mix {
	case "default":
		return pods, nil
	case "gpushare100":
		d.keep(pods, without)
		d.draw(pods, shares, func() bool { return len(d.pods) < len(pods) })
	case "multigpu50":
		d.keep(pods, func(Pod) bool { return true })
		d.draw(pods, several, func() bool { return requested(d.pods, several)*2 < requested(d.pods, func(Pod) bool { return true }) })
	case "gpuspec33":
		d.keep(pods, func(Pod) bool { return true })
		d.constrain()
	case "cpu250":
		d.keep(pods, func(p Pod) bool { return !without(p) })
		most := len(d.pods) * 4 / 3
		d.draw(pods, without, func() bool { return len(d.pods) < most })
	default:
		return nil, fmt.Errorf("there is no workload %q: want one of %s", mix, strings.Join(Mixes(), ", "))
	}
	for i := range d.pods {
		d.pods[i].Name = fmt.Sprintf("pod-%05d", i)
	}
	return d.pods, nil
}

type derivation struct {
	random *rand.Rand
	pods   []Pod
}

func (d *derivation) keep(pods []Pod, wanted func(Pod) bool) {
	for _, p := range pods {
		if wanted(p) {
			d.pods = append(d.pods, p)
		}
	}
}

// draw adds wanted pods, drawn with replacement, while more are needed.
func (d *derivation) draw(pods []Pod, wanted func(Pod) bool, more func() bool) {
	from := slices.DeleteFunc(slices.Clone(pods), func(p Pod) bool { return !wanted(p) })
	for len(from) > 0 && more() {
		d.pods = append(d.pods, from[d.random.IntN(len(from))])
	}
}

func (d *derivation) constrain() {
	var models []string
	for _, c := range constraints {
		models = append(models, slices.Repeat([]string{c.models}, c.pods)...)
	}
	for i := range d.pods {
		if p := &d.pods[i]; p.GPUs > 0 && d.random.IntN(3) == 0 {
			p.Models = strings.Split(models[d.random.IntN(len(models))], "|")
		}
	}
}

// requested returns how much of GPUs some pods request, in thousandths.
func requested(pods []Pod, of func(Pod) bool) (sum int64) {
	for _, p := range pods {
		if of(p) {
			sum += p.GPUs * p.Share
		}
	}
	return sum
}
