// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package schedtest

import (
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/builtin"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

// AllActions is a policy with the four actions and the built-in tiers. The built-in policy does not evict.
const AllActions = `
actions: "reclaim, allocate, backfill, preempt"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
`

// BuiltIn returns a registry of the built-in plugins, actions and policies.
func BuiltIn(t T) *framework.Registry {
	t.Helper()
	r, err := builtin.NewRegistry()
	if err != nil {
		t.Fatal(err)
	}
	return r
}
