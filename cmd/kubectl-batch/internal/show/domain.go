// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package show

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/batch-scheduler/batch-scheduler/internal/text"
)

// HeldDomain is a topology domain for which a PodGroup waits, and what its nodes are used for.
type HeldDomain struct {
	Level    string              `json:"level"`
	Resource corev1.ResourceName `json:"resource"` // of all quantities
	DomainUsage
}

// Main returns the PodGroups that Text names: those that hold the most of the resource.
func (d *HeldDomain) Main() []Holder {
	count := 0
	for count < min(len(d.Holders), mostHolders) && d.Holders[count].Held.Sign() > 0 {
		count++
	}
	return d.Holders[:count]
}

// Text says how much of the domain is free, and who holds the rest.
func (d *HeldDomain) Text(now time.Time) string {
	line := fmt.Sprintf("%s %s (%s, %s of %s %s free) is held by ", d.Level, d.Name, text.Count(d.Nodes, "node", "nodes"),
		d.amount(d.Free), d.amount(d.Total), d.Resource)
	var parts []string
	for _, h := range d.Main() {
		part := h.PodGroup + " (" + d.amount(h.Held)
		if h.ExpectedEnd != nil {
			part += ", expected to end in " + duration.HumanDuration(h.ExpectedEnd.Sub(now))
		}
		parts = append(parts, part+")")
	}
	more, count := resource.Quantity{}, 0
	for _, h := range d.Holders[len(parts):] {
		if h.Held.Sign() > 0 {
			more.Add(h.Held)
			count++
		}
	}
	if count > 0 {
		parts = append(parts, fmt.Sprintf("%d more (%s)", count, d.amount(more)))
	}
	if d.OtherHeld.Sign() > 0 {
		parts = append(parts, "other pods ("+d.amount(d.OtherHeld)+")")
	}
	if len(parts) == 0 {
		parts = append(parts, "no pods")
	}
	line += strings.Join(parts, ", ")
	if d.Cordoned > 0 {
		line += "; " + text.Count(d.Cordoned, "node is", "nodes are") + " cordoned"
	}
	if d.NotReady > 0 {
		line += "; " + text.Count(d.NotReady, "node is", "nodes are") + " not ready"
	}
	return line
}

func (d *HeldDomain) amount(q resource.Quantity) string {
	return amount(corev1.ResourceList{d.Resource: q}, d.Resource)
}
