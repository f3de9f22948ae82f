// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/builtin"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/trace"
)

// newInput returns a trace on nodes with the built-in policy.
func newInput(tr *trace.Trace, nodes string) (in Input, err error) {
	in.Trace = tr
	if in.Registry, err = builtin.NewRegistry(); err != nil {
		return in, err
	}
	if in.Config, err = conf.Default(in.Registry.Catalog()); err != nil {
		return in, err
	}
	in.Nodes, err = trace.Nodes(nodes)
	return in, err
}
