// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestLogAtDefaultVerbosity: without --v, the log names each eviction, and each starvation reservation with its end. An
// administrator reads it when the events have expired.
func TestLogAtDefaultVerbosity(t *testing.T) {
	h := newHarness(t, noControllers)
	h.do(threeNodes, queue("qa", 1), queue("qb", 1), gang("vict", 12, pods(12, "1cpu"), in("qa")))
	h.start("--v=0", "--scheduler-conf="+h.file("policy.yaml", "starvationAfter: 1s\n"+evictingPolicy))
	h.awaitStable(`vict: Running Scheduled; 12 running`, "")
	h.do(gang("rival", 6, pods(6, "1cpu"), in("qb")))
	h.eventually(func() error {
		return h.logs(`"Pods evicted"`, `job="default/vict"`, `queue="qa"`, `pods=12`, `gang=true`, `frees="12 cpu`, `action="reclaim"`, `preemptor="default/rival"`, `preemptorQueue="qb"`)
	})
	h.eventually(func() error { return h.groupIs("rival", "Running Scheduled: 0 pending, 6 running") })

	h.do(gang("big", 12, pods(12, "1cpu"), in("qb")))
	h.eventually(func() error {
		return h.logs(`"Reservation created"`, `job="default/big"`, `queue="qb"`, `pods=12`, `nodes=3`)
	})
	h.remove(jobLabel+"=rival", 1)
	h.eventually(func() error { return h.logs(`"Reservation released"`, `job="default/big"`, `started=true`) })
}

// logs returns an error unless a line of the scheduler's log has all parts.
func (h *harness) logs(parts ...string) error {
	log, err := os.ReadFile(h.scheduler.Log)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(log)) {
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) }) {
			return nil
		}
	}
	return fmt.Errorf("no line has all of %q in:\n%s", parts, log)
}
