// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// TestKnownRefusals runs many cycles of random clusters in which many gangs of few job classes are pending. In each cycle
// schedtest compares decisions and explanations with those of sessions that try and explain every job.
func TestKnownRefusals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &randomCluster{t: t}
		rows := append(r.rows(), Topology("default", "zone", v1.LabelHostname))
		r.drawTemplates()
		for range 4 + r.upTo(8, "gangs") {
			rows = append(rows, r.gangOfTemplate())
		}
		c := New(t, BuiltIn(t), rows, WithConfig(r.backlogPolicy()), WithShuffleSeed(rapid.Int64().Draw(t, "seed")))
		for range rapid.IntRange(2, 12).Draw(t, "cycles") {
			c.Cycle()
			for range rapid.IntRange(0, 2).Draw(t, "changes") {
				r.changeBacklog(c)
			}
		}
		c.Cycle()
	})
}

// backlogPolicy returns the built-in policy, perhaps with preempt or without a plugin.
func (r *randomCluster) backlogPolicy() string {
	text := conf.DefaultYAML()
	if r.oneOf("actions", "", "", "evict") != "" {
		text = strings.Replace(text, `"allocate, backfill"`, `"preempt, allocate, backfill"`, 1)
	}
	without := r.oneOf("without", "", "", "", "priority", "drf", "predicates")
	return strings.Replace(text, "  - name: "+without+"\n", "", 1)
}

// drawTemplates draws what gangOfTemplate chooses from.
func (r *randomCluster) drawTemplates() {
	for range 1 + r.upTo(2, "job classes") {
		size := 1 + r.upTo(3, "size")
		r.templates = append(r.templates, gangTemplate{
			min: int32(1 + r.upTo(size-1, "min")), size: size, request: r.oneOf("request", "1cpu", "2cpu 1Gi", "3cpu", "1gpu 1cpu", "5cpu"),
			priority: int32(r.upTo(1, "priority")), zone: r.oneOf("zone", "", "", "a"),
			required: r.oneOf("required", "", "zone", "zone", v1.LabelHostname), preferred: r.oneOf("preferred", "", "", v1.LabelHostname),
		})
	}
}

type gangTemplate struct {
	min      int32
	size     int
	request  string
	priority int32
	zone     string

	required, preferred string // topology levels
}

func (r *randomCluster) gangOfTemplate() Row {
	r.groups++
	drawn := rapid.SampledFrom(r.templates).Draw(r.t, "job class")
	options := []PodOption{Priority(drawn.priority)}
	if drawn.zone != "" {
		options = append(options, NodeSelector("zone", drawn.zone))
	}
	parts := []Part{Pending(drawn.size+r.upTo(1, "surplus"), drawn.request, options...)}
	if drawn.required != "" {
		parts = append(parts, Within(drawn.required))
	}
	if drawn.preferred != "" {
		parts = append(parts, Prefer(drawn.preferred, 0))
	}
	return Group(fmt.Sprintf("%s/g%d", r.oneOf("queue", r.queues...), r.groups), drawn.min, parts...)
}

func (r *randomCluster) changeBacklog(c *Scenario) {
	running := func() string {
		if pods := c.Pods(); len(pods) > 0 {
			return r.oneOf("pod", pods...)
		}
		return ""
	}
	switch r.oneOf("kind of change", "any", "any", "gang", "gang", "delete", "release", "foreign", "node") {
	case "any":
		r.change(c)
	case "gang":
		c.Add(r.gangOfTemplate())
	case "delete":
		if pod := running(); pod != "" {
			c.Delete(pod)
		}
	case "release":
		if pod := running(); pod != "" {
			c.Release(pod)
		}
	case "foreign":
		r.added++
		if len(r.nodes) > 0 {
			c.Add(Foreign(fmt.Sprintf("f%d", r.added), Running(1, "1cpu", r.oneOf("node", r.nodes...))))
		}
	case "node":
		c.Add(r.addedNode())
	}
}
