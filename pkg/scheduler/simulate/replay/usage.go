// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/batch-scheduler/batch-scheduler/internal/text"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/trace"
)

// usage adds up which part of the cluster pods hold over time.
type usage struct {
	names   []v1.ResourceName
	held    []float64                  // now
	usable  []float64                  // now
	heldFor []float64                  // integral over time, in units times seconds
	total   []float64                  // integral of usable
	up      map[string]v1.ResourceList // what the nodes have that are up
	counts  bool                       // whether time counts: from the first submission on
}

// newUsage returns the usage of a cluster before any pod exists, with the resources of the nodes and of those that the trace
// adds later. The number of pods is not a resource here.
func newUsage(nodes []*v1.Node, t *trace.Trace) *usage {
	all := v1.ResourceList{}
	see := func(allocatable v1.ResourceList) {
		for name, q := range allocatable {
			if name != v1.ResourcePods && !q.IsZero() {
				all[name] = q
			}
		}
	}
	for _, n := range nodes {
		see(n.Status.Allocatable)
	}
	for i := range t.Nodes {
		see(t.Nodes[i].Allocatable)
	}
	u := &usage{names: text.Resources(all), up: map[string]v1.ResourceList{}}
	for _, list := range []*[]float64{&u.held, &u.usable, &u.heldFor, &u.total} {
		*list = make([]float64, len(u.names))
	}
	return u
}

// setNode adds a node, or changes what it has.
func (u *usage) setNode(n *v1.Node) {
	if has, up := u.up[n.Name]; up && equality.Semantic.DeepEqual(has, n.Status.Allocatable) {
		return
	}
	u.removeNode(n.Name)
	u.up[n.Name] = n.Status.Allocatable
	u.addTo(u.usable, n.Status.Allocatable, 1)
}

// removeNode removes a node if it is there.
func (u *usage) removeNode(name string) {
	u.addTo(u.usable, u.up[name], -1)
	delete(u.up, name)
}

// isUp reports whether a node exists.
func (u *usage) isUp(node string) bool {
	_, up := u.up[node]
	return up
}

// add adds the request of a pod to what is held; with the sign -1, it subtracts it.
func (u *usage) add(request v1.ResourceList, sign float64) { u.addTo(u.held, request, sign) }

func (u *usage) addTo(sums []float64, list v1.ResourceList, sign float64) {
	for i, name := range u.names {
		if q, there := list[name]; there {
			sums[i] += sign * q.AsApproximateFloat64()
		}
	}
}

// advance lets time pass.
func (u *usage) advance(by time.Duration) {
	if !u.counts {
		return
	}
	for i := range u.names {
		u.heldFor[i] += u.held[i] * by.Seconds()
		u.total[i] += u.usable[i] * by.Seconds()
	}
}

// used are the integrals of the usage until some time.
type used struct{ held, total []float64 }

// snapshot returns the integrals until now.
func (u *usage) snapshot() used { return used{slices.Clone(u.heldFor), slices.Clone(u.total)} }

// utilisation returns the part of each resource that was held, or that some amounts of it are, in units times seconds.
func (u used) utilisation(names []v1.ResourceName, amounts []float64) []Utilisation {
	list := []Utilisation{}
	for i, name := range names {
		part := 0.0
		if u.total[i] > 0 {
			part = amounts[i] / u.total[i]
		}
		list = append(list, Utilisation{name, round(part)})
	}
	return list
}
