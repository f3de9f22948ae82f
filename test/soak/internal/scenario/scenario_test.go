// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package scenario_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/batch-scheduler/batch-scheduler/test/soak/internal/scenario"
)

// TestSeed checks that the same seed generates the same scenario, and another seed another one.
func TestSeed(t *testing.T) {
	t.Parallel()
	const length = 10 * time.Minute
	if diff := cmp.Diff(scenario.Draw(7, length), scenario.Draw(7, length)); diff != "" {
		t.Errorf("the same seed (-first +second):\n%s", diff)
	}
	if cmp.Equal(scenario.Draw(7, length), scenario.Draw(8, length)) {
		t.Error("two seeds generate the same scenario")
	}
}

// TestDraw checks that scenarios of ten minutes have steps of every kind, in order, and that nodes return.
func TestDraw(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		kinds, away := map[scenario.Kind]int{}, map[string]bool{}
		last := time.Duration(0)
		for _, s := range scenario.Draw(seed, 10*time.Minute) {
			if s.At < last {
				t.Fatalf("seed %d: %s at %s comes after %s", seed, s, s.At, last)
			}
			last = s.At
			kinds[s.Kind]++
			switch s.Kind {
			case scenario.NodeLoss, scenario.Delete, scenario.Cordon:
				if away[s.Name] {
					t.Errorf("seed %d: at %s, node %s is lost already", seed, s.At, s.Name)
				}
				away[s.Name] = true
			case scenario.NodeReturn:
				delete(away, s.Name)
			case scenario.Term, scenario.Kill:
				if s.At > 7*time.Minute {
					t.Errorf("seed %d: a restart at %s leaves no time to check the last scheduler", seed, s.At)
				}
			}
			if len(away) > 3 {
				t.Errorf("seed %d: at %s, %d nodes are lost", seed, s.At, len(away))
			}
		}
		for _, kind := range scenario.Kinds() {
			if kinds[kind] == 0 {
				t.Errorf("seed %d: no step of the kind %q", seed, kind)
			}
		}
	}
}

func TestKeep(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		given []scenario.Job
		want  []bool
	}{
		"jobs that fit":           {[]scenario.Job{{Size: 1, Milli: 1000}, {Size: 2, Milli: 500, GPU: 1}}, []bool{true, true}},
		"too much cpu, then less": {[]scenario.Job{{Size: 30, Milli: 1000}, {Size: 30, Milli: 1000}, {Size: 8, Milli: 1000}}, []bool{true, false, true}},
		"too many GPUs":           {[]scenario.Job{{Size: 3, GPU: 2}, {Size: 1, GPU: 1}}, []bool{true, false}},
		"too much for a zone":     {[]scenario.Job{{Size: 12, Milli: 1000, Zone: "zone-a"}, {Size: 1, Milli: 1000, Zone: "zone-a"}, {Size: 1, Milli: 1000, Zone: "zone-b"}}, []bool{true, false, true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := scenario.Keep(test.given); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
