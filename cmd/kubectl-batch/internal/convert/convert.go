// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package convert translates Queues of Volcano and KAI Scheduler into Queues of batch-scheduler.
//
// A setting has one of three fates: it is written with the same meaning, it is reported as a Loss, or it makes the input
// invalid. The comments of volcano and kai state the translation.
package convert

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// Options configure the translation.
type Options struct {
	// GPU is the extended resource that the gpu settings of KAI Scheduler are about, such as nvidia.com/gpu.
	GPU string
}

// Loss is a setting that a Queue cannot express, or expresses with another meaning.
type Loss struct {
	Queue, Field, Text string
}

func (l Loss) String() string { return fmt.Sprintf("Queue %q: %s: %s", l.Queue, l.Field, l.Text) }

// Result is the outcome of a translation, in the order of the input.
type Result struct {
	Queues []v1alpha1.Queue
	Losses []Loss
}

// Converter collects the queues of several files. A queue can be the parent of queues in other files.
type Converter struct {
	options Options
	queues  []*queue
}

// queue is a queue of another scheduler, and its translation.
type queue struct {
	where    string // in the input, for errors
	api      string // the API group
	name     string
	parent   string // empty at the top
	isParent bool   // according to its status
	settings []string

	spec   v1alpha1.QueueSpec
	losses []Loss
}

// New returns a Converter without queues.
func New(o Options) *Converter { return &Converter{options: o} }

// Result translates all queues that were read.
//
// Queues of batch-scheduler have no tree. A queue with children holds no jobs in Volcano and KAI Scheduler, so it becomes
// no Queue. That is a loss, because its settings apply to no other Queue.
func (c *Converter) Result() (Result, error) {
	names := map[string]string{}
	children := map[[2]string][]string{} // by API group and parent
	for _, q := range c.queues {
		if first, ok := names[q.name]; ok {
			return Result{}, fmt.Errorf("%s: Queue %q is also in %s", q.where, q.name, first)
		}
		names[q.name] = q.where
		parent := [2]string{q.api, q.parent}
		children[parent] = append(children[parent], q.name)
	}
	var result Result
	for _, q := range c.queues {
		below := children[[2]string{q.api, q.name}]
		if q.isParent || len(below) > 0 {
			result.Losses = append(result.Losses, q.omitted(below)...)
			continue
		}
		result.Queues = append(result.Queues, v1alpha1.Queue{Spec: q.spec})
		result.Queues[len(result.Queues)-1].Name = q.name
		result.Losses = append(result.Losses, q.losses...)
	}
	return result, nil
}

// omitted returns what is lost when a queue with children is not translated.
func (q *queue) omitted(children []string) []Loss {
	if q.isVolcanoRoot() {
		return q.losses // Volcano creates it, usually without limits
	}
	text := "has child queues, which hold the jobs; no Queue is written"
	if len(children) > 0 {
		text = fmt.Sprintf("has child queues (%s), which hold the jobs; no Queue is written", strings.Join(children, ", "))
	}
	if len(q.settings) > 0 {
		text += ", and these settings apply to no Queue: " + strings.Join(q.settings, ", ")
	}
	return []Loss{{q.name, "spec", text}}
}

// setGuarantee sets the guarantee, as far as the capability allows: the API server rejects a larger one.
func (q *queue) setGuarantee(from string, guarantee corev1.ResourceList) {
	for _, name := range sorted(guarantee) {
		amount := guarantee[name]
		if limit, capped := q.spec.Capability[name]; capped && amount.Cmp(limit) > 0 {
			q.lose(from, "%s %s exceeds the limit, %s; the guarantee is the limit", name, amount.String(), limit.String())
			amount = limit
		}
		if amount.IsZero() {
			continue
		}
		if q.spec.Guarantee == nil {
			q.spec.Guarantee = corev1.ResourceList{}
		}
		q.spec.Guarantee[name] = amount
	}
}

func (q *queue) lose(field, format string, args ...any) {
	q.losses = append(q.losses, Loss{q.name, field, fmt.Sprintf(format, args...)})
}

// sorted returns the keys of a map in order.
func sorted[K cmp.Ordered, V any](of map[K]V) []K {
	keys := make([]K, 0, len(of))
	for key := range of {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
