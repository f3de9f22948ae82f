// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"testing"

	"pgregory.net/rapid"
)

// TestAvailable compares what is available on a node with vectors that are added and subtracted, and what is derived from it
// dimension by dimension with the same from the vector.
func TestAvailable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vector := func(label string, least int64) Resource {
			return rapid.SliceOfN(rapid.Int64Range(least, 9), 0, fixedDimensions+2).Draw(t, label)
		}
		n := &NodeInfo{
			Idle: vector("idle", -3), Pipelined: vector("pipelined", 0), Reserved: vector("reserved", 0),
			Releasing: vector("releasing", 0), Foreign: vector("foreign", 0),
			Tracking: NodeTracking{Ready: rapid.Bool().Draw(t, "ready")},
		}
		for range rapid.IntRange(0, 2).Draw(t, "nominated") {
			n.Nominated = append(n.Nominated, &TaskInfo{Priority: rapid.Int32Range(0, 2).Draw(t, "priority"), Request: vector("request", 0)})
		}
		task := &TaskInfo{Priority: 1, Request: vector("request", 0)}
		for _, when := range []When{Now, Future} {
			available := n.Idle.Clone()
			for _, other := range n.Nominated {
				if other.Priority >= task.Priority {
					available.Sub(other.Request)
				}
			}
			committed := n.Pipelined.Plus(n.Reserved)
			if n.Ready() && when == Future {
				available.Add(n.Releasing)
			} else if n.Ready() {
				committed = committed.beyond(n.Releasing)
			}
			available.Sub(committed)
			if got := n.Available(task.Priority, when); !got.Equal(available) {
				t.Fatalf("available is %v, want %v", got, available)
			}
			if got, want := n.InsufficientDimension(task, when), task.Request.InsufficientDimension(available); got != want {
				t.Fatalf("the insufficient dimension is %d, want %d", got, want)
			}
		}
		compareNow(t, n, task)
	})
}

// compareNow compares what is only asked for the present.
func compareNow(t *rapid.T, n *NodeInfo, task *TaskInfo) {
	available, deficit := n.Available(task.Priority, Now), int64(0)
	for d, asked := range task.Request {
		if missing := min(asked-available.At(d), asked); missing > 0 {
			deficit += (missing*1000 + asked - 1) / asked
		}
	}
	if got := n.Deficit(task); got != deficit {
		t.Fatalf("the deficit is %d, want %d", got, deficit)
	}
	fits := !n.Foreign.IsZero() && task.Request.Fits(available.Plus(n.Foreign))
	if got := n.FitsWithoutForeignPods(task); got != fits {
		t.Fatalf("fits without foreign pods: %t, want %t", got, fits)
	}
}
