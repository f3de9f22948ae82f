// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"context"
	"testing"

	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/actions/allocate"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/actions/backfill"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/actions/preempt"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/actions/reclaim"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// TestActionsEndActivations asserts that no action leaves a current job behind, also if its context is cancelled: other
// jobs would then use what is reserved for that job.
func TestActionsEndActivations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		left := rapid.IntRange(1, 9).Draw(t, "activations until the context is cancelled")
		observer := &activations{observe: func() {
			if left--; left == 0 {
				cancel()
			}
		}}
		registry := BuiltIn(t)
		if err := registry.AddComponent(framework.ComponentSpec{Name: observer.Name(), New: observer.component}); err != nil {
			t.Fatal(err)
		}
		ssn := RandomSession(t, registry, defaultTiers(t))
		actions := map[string]framework.Action{}
		for _, action := range append(ssn.Actions(), allocate.New(), backfill.New(), preempt.New(), reclaim.New()) {
			actions[action.Name()] = action
		}
		name := rapid.SampledFrom([]string{"nominated", "reservation", "allocate", "backfill", "preempt", "reclaim"}).Draw(t, "action")
		_ = actions[name].Execute(ctx, ssn)
		if observer.current != nil {
			t.Fatalf("after action %s job %s is the current job", name, observer.current.Key)
		}
	})
}

// activations is a component that observes which job is the current one.
type activations struct {
	observe func()
	current *api.JobInfo
}

func (a *activations) component(framework.Environment) (framework.Plugin, framework.Action) {
	return a, nil
}

func (*activations) Name() string { return "activations" }

func (a *activations) OnSessionOpen(ssn *framework.Session) {
	ssn.AddReservationFns("activations", framework.ReservationFns{Activate: func(j *api.JobInfo) {
		a.current = j
		a.observe()
	}})
}

func (*activations) OnSessionClose(*framework.Session) {}
