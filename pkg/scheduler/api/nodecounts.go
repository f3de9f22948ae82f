// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// NodeCounts is on how many nodes of the cluster one task fits, and why it does not fit on the others. Each node is counted
// once, so the numbers add up to Total.
type NodeCounts struct {
	Total, Available int
	Unfit            []UnfitCount // most frequent first, then by message

	// Nearest is not nil if the task fits on no node, and would fit on some if less were allocated there.
	Nearest *NearestNode
}

// NearestNode is the node with the smallest deficit for a task, and the resources that are missing there, or the
// devices, in words.
type NearestNode struct {
	Node      string
	Shortfall Resource
	Devices   string
}

// UnfitCount is a refusal with the number of nodes that give it.
type UnfitCount struct {
	Unfit
	Count int
}

// Count adds one node: unfit is nil if the task fits there.
func (c *NodeCounts) Count(unfit *Unfit) {
	c.Total++
	if unfit == nil {
		c.Available++
		return
	}
	for i := range c.Unfit {
		if c.Unfit[i].Unfit == *unfit {
			c.Unfit[i].Count++
			return
		}
	}
	c.Unfit = append(c.Unfit, UnfitCount{*unfit, 1})
}

// Sort sorts the refusals into the order in which they are reported.
func (c *NodeCounts) Sort() {
	slices.SortFunc(c.Unfit, func(a, b UnfitCount) int {
		if a.Count != b.Count {
			return b.Count - a.Count
		}
		return cmp.Or(strings.Compare(a.Message(), b.Message()), strings.Compare(a.Plugin, b.Plugin))
	})
}

// Suitable reports whether some node would fit if fewer pods ran on it.
func (c *NodeCounts) Suitable() bool {
	if c.Available > 0 {
		return true
	}
	for i := range c.Unfit {
		if c.Unfit[i].Resolvable() {
			return true
		}
	}
	return false
}

// maxUnfitReported bounds the length of messages; the rest is summed up.
const maxUnfitReported = 6

func (c *NodeCounts) message() string {
	if c.Total == 0 {
		return "no nodes available to schedule pods"
	}
	reported := make([]string, 0, maxUnfitReported+1)
	rest := 0
	for i := range c.Unfit {
		if i < maxUnfitReported {
			reported = append(reported, fmt.Sprintf("%d %s", c.Unfit[i].Count, c.Unfit[i].Message()))
		} else {
			rest += c.Unfit[i].Count
		}
	}
	if rest > 0 {
		reported = append(reported, fmt.Sprintf("%d for other reasons", rest))
	}
	text := fmt.Sprintf("%d/%d nodes are available", c.Available, c.Total)
	if len(reported) > 0 {
		text += ": " + strings.Join(reported, ", ")
	}
	return text
}
