// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// idlePeriod is for how long TestIdle watches. The bound holds for 60s; the default keeps the
// tests short.
var idlePeriod = flag.Duration("idle", 15*time.Second, "how long TestIdle watches a cluster in which nothing happens")

// maxWrites is how many writes to the API server a scheduler may do in that time.
const maxWrites = 4

// TestIdle creates twenty gangs that wait for various reasons, and counts what the scheduler
// writes while nothing happens. The API server counts, so that writes without effect count too;
// the scheduler's own count must agree.
func TestIdle(t *testing.T) {
	h := newHarness(t, noControllers)
	h.do(threeNodes, queue("capped", 1, atMost("1cpu")), gang("running", 6, pods(6, "1cpu")))
	for i := range 4 {
		suffix := fmt.Sprint("-", i)
		h.do(
			gang("too-many"+suffix, 7, pods(7, "1cpu"), labelled("too-many")),
			gang("too-large"+suffix, 1, pods(2, "5cpu"), labelled("too-large")),
			gang("capped"+suffix, 2, pods(2, "1cpu"), in("capped"), labelled("capped")),
			gang("incomplete"+suffix, 3, pods(2, "1cpu"), labelled("incomplete")),
			gang("astray"+suffix, 2, pods(2, "1cpu"), in("nowhere"), labelled("astray")),
		)
	}
	metrics, args := h.newScraper()
	h.start(append(args, "--leader-elect=true", "--schedule-period=1s")...)
	h.awaitStable(`
		running: Running Scheduled; 6 running
		too-many: 4 Pending NotEnoughResources; 28 waiting Unschedulable
		too-large: 4 Pending ExceedsClusterCapacity; 4 waiting GangPending, 4 waiting Unschedulable
		capped: 4 Pending ExceedsQueueCapability; 8 waiting ExceedsQueueCapability
		incomplete: 4 Pending NotEnoughPods; 8 waiting NotEnoughPods
		astray: 4 Pending QueueNotFound; 8 waiting QueueNotFound`, "")

	outside, inside := h.writes(metrics)
	select {
	case <-time.After(*idlePeriod):
	case <-h.scheduler.Done():
		t.Fatal("the scheduler has ended")
	}
	outsideLater, insideLater := h.writes(metrics)
	t.Logf("%d writes within %s", outsideLater-outside, *idlePeriod)
	if n := outsideLater - outside; n > maxWrites || n != insideLater-inside {
		t.Errorf("%d writes within %s, by the scheduler's own count %d; want at most %d",
			n, *idlePeriod, insideLater-inside, maxWrites)
	}
}

// writes counts the requests so far, but for leases, that may have changed something: as the API
// server counts them for what schedulers write, and as the scheduler counts its own.
func (h *harness) writes(metrics scraper) (outside, inside int) {
	h.t.Helper()
	server, err := h.apiServerMetrics()
	h.must(err)
	outside = server.count("apiserver_request_total", func(l map[string]string) bool {
		return slices.Contains([]string{"pods", "events", "podgroups", "queues", "nodes"}, l["resource"]) &&
			slices.Contains([]string{"POST", "PUT", "PATCH", "APPLY", "DELETE"}, l["verb"])
	})
	own, err := metrics.read(h)
	h.must(err)
	inside = own.count("batch_scheduler_api_writes_total", func(l map[string]string) bool {
		return !strings.HasPrefix(l["resource"], "leases") && !strings.Contains(l["resource"], "reviews")
	})
	if outside == 0 || inside == 0 {
		h.t.Fatalf("counted %d writes from outside and %d from inside: the metrics have other names", outside, inside)
	}
	return outside, inside
}
