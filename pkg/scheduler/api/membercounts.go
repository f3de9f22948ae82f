// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api

// MemberCounts are numbers of members: of a job, or of one of its subgroups.
type MemberCounts struct {
	Counts [NumStatus]int32 // by status
	Gated  int32            // pending members with scheduling gates
	Lost   int32            // in a holding status, but on no existing node
	// Disrupted counts failed members that did not fail by themselves, see TaskTracking.
	Disrupted int32
}

// Add adds t if sign is +1, and subtracts it if sign is −1.
func (c *MemberCounts) Add(t *TaskInfo, sign int32) {
	c.Counts[t.Status] += sign
	if t.Status == Pending && t.Gated {
		c.Gated += sign
	}
	if t.Status.Holding() && !t.Holds() {
		c.Lost += sign
	}
	if t.Status == Failed && t.Tracking.Disrupted {
		c.Disrupted += sign
	}
}

// Waiting returns how many members could be placed.
func (c *MemberCounts) Waiting() int32 { return c.Counts[Pending] - c.Gated }

// Holding returns how many members hold resources of existing nodes.
func (c *MemberCounts) Holding() int32 {
	return c.Counts[Allocated] + c.Counts[Binding] + c.Counts[Bound] + c.Counts[Running] - c.Lost
}

// ReadyCount counts members that hold their resources or have succeeded.
func (c *MemberCounts) ReadyCount() int32 { return c.Holding() + c.Counts[Succeeded] }

// PipelinedCount counts members that are ready once resources that are being released are free.
func (c *MemberCounts) PipelinedCount() int32 { return c.ReadyCount() + c.Counts[Pipelined] }

// ValidCount counts members that run, have succeeded, or could be placed.
func (c *MemberCounts) ValidCount() int32 { return c.PipelinedCount() + c.Waiting() }

// Running counts members that the API server shows on an existing node: unlike Holding it leaves out
// binds in flight.
func (c *MemberCounts) Running() int32 {
	return max(c.Counts[Bound]+c.Counts[Running]-c.Lost, 0)
}

// members counts all.
func (c *MemberCounts) members() int32 {
	n := int32(0)
	for _, of := range c.Counts {
		n += of
	}
	return n
}
