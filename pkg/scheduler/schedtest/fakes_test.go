// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package schedtest

import (
	"context"
	"fmt"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

// act is an action implemented by a function.
type act func(*framework.Session)

func (act) Name() string { return "act" }

func (a act) Execute(_ context.Context, ssn *framework.Session) error {
	a(ssn)
	return nil
}

// registryOf returns a registry with one action and no plugin.
func registryOf(t T, a act) *framework.Registry {
	r := framework.NewRegistry()
	if err := r.AddAction(a); err != nil {
		t.Fatal(err)
	}
	return r
}

var actAlone = WithConfig("actions: act\ntiers: []\n")

// firstFit places every job as a whole on the first nodes, by name, with enough resources.
func firstFit(ssn *framework.Session) {
	for _, j := range ssn.Jobs() {
		stmt := ssn.Statement()
		for _, t := range ssn.WaitingTasks(j) {
			if n := firstNode(ssn, t, api.Now); n != nil {
				stmt.Allocate(t, n)
			} else if n := firstNode(ssn, t, api.Future); n != nil {
				stmt.Pipeline(t, n)
			}
		}
		if ssn.JobPipelined(j) && j.Pipelined() {
			stmt.Commit()
			continue
		}
		stmt.Discard()
		ssn.Explain(j, &api.Verdict{Reason: "Unplaced", Detail: fmt.Sprintf("needs %d", j.MinMember)})
	}
}

func firstNode(ssn *framework.Session, t *api.TaskInfo, when api.When) *api.NodeInfo {
	var best *api.NodeInfo
	for _, n := range ssn.Cluster().Nodes() {
		if n.Fits(t, when) && t.Job.Queue.CapAllows(t.Request, when) < 0 && (best == nil || n.Name < best.Name) {
			best = n
		}
	}
	return best
}

// stopped is the value with which a recorder panics where a test would end.
type stopped struct{ text string }

// recorder is a T that ends by a panic.
type recorder struct{}

func (recorder) Helper() {}

func (recorder) Fatal(args ...any) { panic(stopped{fmt.Sprint(args...)}) }

func (recorder) Fatalf(format string, args ...any) { panic(stopped{fmt.Sprintf(format, args...)}) }

func (recorder) Context() context.Context { return context.Background() }

// failure runs f and returns the failure of the test in it; empty if it passed.
func failure(f func(T)) (text string) {
	defer func() {
		if r := recover(); r != nil {
			s, ok := r.(stopped)
			if !ok {
				panic(r)
			}
			text = s.text
		}
	}()
	f(recorder{})
	return ""
}
