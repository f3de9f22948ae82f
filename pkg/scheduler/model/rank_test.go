// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

// Ranks order nodes as their names do.
func TestRanksAgainstNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := model.NewCluster(model.Options{SchedulerNames: []string{"ours"}, DefaultQueue: "default"})
		for range rapid.IntRange(1, 12).Draw(t, "changes") {
			name := fmt.Sprintf("n%d", rapid.IntRange(0, 12).Draw(t, "node"))
			switch rapid.IntRange(0, 3).Draw(t, "change") {
			case 0:
				c.Events().DeleteNode(name)
			case 1:
				c.Events().Recompute()
			default:
				c.Events().SetNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
			}
			for _, a := range c.Nodes() {
				for _, b := range c.Nodes() {
					if a != nil && b != nil && a.Rank > 0 && b.Rank > 0 && (a.Rank < b.Rank) != (a.Name < b.Name) {
						t.Fatalf("%s is %d, %s is %d", a.Name, a.Rank, b.Name, b.Rank)
					}
				}
			}
		}
		c.Events().Recompute()
		for _, n := range c.Nodes() {
			if n != nil && n.Rank == 0 {
				t.Fatalf("%s has no rank", n.Name)
			}
		}
	})
}
