// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"

	"github.com/go-logr/logr"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

// Hooks are what a caller of Profile.Run adds to a session. The zero value adds nothing.
type Hooks struct {
	// Around runs a step of the session: "open", the actions under their names, "close". It calls run once, with ctx or
	// a context made from it.
	Around func(ctx context.Context, step string, run func(context.Context))
	// AfterOpen is called before the first action.
	AfterOpen func(*Session)
	// AfterAction is called with the error of each action. If it returns an error, no other action runs. Nil returns
	// the error of the action.
	AfterAction func(*Session, Action, error) error
	// BeforeClose is called after the last action; the model still contains placements that wait for resources.
	BeforeClose func(*Session)
	// Watch observes the statements that the session commits.
	Watch []WatchFn
}

// Run runs one session: it opens the session, runs the actions in their order, closes the session, and recomputes the
// model. It returns the closed session and the jobs that have changed. The error is that of AfterAction; the session is
// closed in any case. The scheduler, simulations, scenario tests and benchmarks all run sessions with it.
func (p *Profile) Run(ctx context.Context, cluster *model.Cluster, effects Effects, log logr.Logger, h Hooks) (ssn *Session, changed []*api.JobInfo, err error) {
	around := h.Around
	if around == nil {
		around = func(ctx context.Context, _ string, run func(context.Context)) { run(ctx) }
	}
	around(ctx, "open", func(context.Context) { ssn = p.Open(cluster, effects, log, h.Watch...) })
	if h.AfterOpen != nil {
		h.AfterOpen(ssn)
	}
	log = ssn.Log
	for _, action := range ssn.Actions() {
		ssn.Log = logOf(action, log)
		around(ctx, action.Name(), func(ctx context.Context) { err = action.Execute(ctx, ssn) })
		ssn.Log = log
		if h.AfterAction != nil {
			err = h.AfterAction(ssn, action, err)
		}
		if err != nil {
			break
		}
	}
	if h.BeforeClose != nil {
		h.BeforeClose(ssn)
	}
	around(ctx, "close", func(context.Context) {
		ssn.Close()
		changed = cluster.Events().Recompute()
	})
	logPending(ssn)
	return ssn, changed, err
}
