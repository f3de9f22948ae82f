// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/audit"
)

// However many pods ask for however much, the accounts are right again when they are gone.
func TestOutOfRangeRequestsLeaveNoTraces(t *testing.T) {
	c := newTestCluster()
	c.Events().SetQueue(aQueue("default"))
	c.Events().SetNode(aNode("n", "cpu", "4", "memory", "8Gi"))
	c.Events().Recompute()
	before := audit.Dump(c)
	const pods = 9_000 // at 1 << 50 each, an int64 holds 8191
	name := func(i int) string { return fmt.Sprint("p", i) }
	for i := range pods {
		c.Events().SetPod(aPod(name(i), requesting("cpu", "1e30", "memory", "9e40"), ownedBy("rs"), on("n")))
	}
	c.Events().Recompute()
	if held := c.Queues()["default"].Allocated.At(api.CPU); held != pods*api.MaxRequest {
		t.Errorf("the queue holds %d", held)
	}
	if err := audit.Model(c); err != nil {
		t.Error(err)
	}
	for i := range pods {
		c.Events().DeletePod(types.UID("uid-" + name(i)))
	}
	c.Events().Recompute()
	if diff := cmp.Diff(before, audit.Dump(c)); diff != "" {
		t.Errorf("traces are left:\n%s", diff)
	}
}
