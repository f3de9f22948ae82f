// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package gpucards is an example of a plugin. It chooses nodes by the memory, the clock and the free number of their GPUs: the
// least memory, the highest clock, and the fewest free cards come first. It needs no agent on the nodes.
//
// What cards are there comes from the labels of GPU feature discovery, or from what a driver of dynamic resource allocation
// publishes. How many are free comes from the model of the scheduler, which contains every placement as soon as it is made, also
// those of the same session. Labels and metrics show a placement only minutes later: two pods that are placed in between would
// get the same card.
//
// What a pod needs is in its spec: the number of cards in its request, and their memory in required node affinity or in a claim.
// The scheduler filters nodes by these, so that the plugin only scores.
package gpucards

import (
	"strconv"

	v1 "k8s.io/api/core/v1"
	resourcelisters "k8s.io/client-go/listers/resource/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

// Name is the name of the plugin in configurations.
const Name = "gpucards"

// Labels of GPU feature discovery. The memory is that of one card in MiB.
const (
	labelProduct = "nvidia.com/gpu.product"
	labelMemory  = "nvidia.com/gpu.memory"
	labelCount   = "nvidia.com/gpu.count"
)

// A card with this memory, in bytes, or this clock, in MHz, has half of the score, and so has one of which it is unknown.
const (
	halfMemory = 64 << 30
	halfClock  = 1500
)

// plugin lives as long as the configuration.
type plugin struct {
	arguments arguments
	slices    resourcelisters.ResourceSliceLister // nil without informers
}

// Spec registers the plugin. New requests the informers that the plugin needs; the scheduler starts them.
func Spec() framework.PluginSpec {
	return framework.PluginSpec{
		New: func(d *conf.Decoder, handle framework.Handle) (framework.Plugin, error) {
			p := &plugin{arguments: decode(d)}
			if handle.Informers != nil {
				p.slices = handle.Informers.Resource().V1().ResourceSlices().Lister()
			}
			return p, nil
		},
		Check:        func(d *conf.Decoder) { decode(d) },
		NeverPermits: []conf.Point{conf.Preemptable, conf.Reclaimable},
	}
}

func (*plugin) Name() string { return Name }

// OnSessionOpen makes what lives for one session.
func (p *plugin) OnSessionOpen(ssn *framework.Session) {
	s := &scores{plugin: p, cards: ssn.Cluster().Dims().Index(p.arguments.resource)}
	ssn.AddNodeOrderFn(Name, s.score)
}

func (*plugin) OnSessionClose(*framework.Session) {}

// scores are the scores of one session.
type scores struct {
	*plugin
	cards     int             // the dimension
	published map[string]card // by node name; nil until a pod requests cards
}

// card is what is known of the cards of a node; 0 is unknown.
type card struct {
	memory int64 // in bytes
	clock  int64 // in MHz
}

// score reads of the pod only its signature, as the contract of framework.ScoreFn requires.
func (s *scores) score(t *api.TaskInfo, n *api.NodeInfo) api.Score {
	requested := t.Signature.Request.At(s.cards)
	if requested == 0 || n.Node == nil {
		return 0
	}
	c := s.cardOf(n.Node)
	memory, clock := api.OneScore/2, api.OneScore/2
	if c.memory > 0 {
		memory = api.ScoreOf(halfMemory, halfMemory+c.memory)
	}
	if c.clock > 0 {
		clock = api.ScoreOf(c.clock, c.clock+halfClock)
	}
	return s.arguments.memory*memory + s.arguments.clock*clock + s.arguments.free*s.packed(n, requested)
}

// packed returns the fraction of the cards of a node that are in use once the pod runs there. Idle is what the placements of
// this session have left.
func (s *scores) packed(n *api.NodeInfo, requested int64) api.Score {
	whole := number(n.Node, labelCount)
	if whole == 0 {
		whole = n.Allocatable.At(s.cards)
	}
	if whole == 0 {
		return 0
	}
	return api.OneScore - api.ScoreOf(n.Idle.At(s.cards)-requested, whole)
}

// cardOf returns what labels say about the cards of a node, and where they say nothing, what a driver publishes.
func (s *scores) cardOf(node *v1.Node) card {
	if s.published == nil {
		s.published = s.readSlices()
	}
	published := s.published[node.Name]
	c := card{memory: number(node, labelMemory) << 20, clock: s.arguments.clocks[node.Labels[labelProduct]]}
	if c.memory == 0 {
		c.memory = published.memory
	}
	if c.clock == 0 {
		c.clock = published.clock
	}
	return c
}

// maxNumber is more than any label counts, so that products stay in 64 bits.
const maxNumber = 1 << 30

// number returns the number in a label; 0 if there is none.
func number(node *v1.Node, label string) int64 {
	n, err := strconv.ParseInt(node.Labels[label], 10, 64)
	if err != nil || n < 0 || n > maxNumber {
		return 0
	}
	return n
}
