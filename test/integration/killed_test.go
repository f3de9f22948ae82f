// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/test/faults"
	"github.com/batch-scheduler/batch-scheduler/test/scheduler"
)

var rounds = flag.Int("rounds", 10, "how many leaders TestKilled kills")

// The gangs of a round fill the cluster completely, so that leaked resources keep a gang from starting.
const (
	killedGangs = 20
	killedSize  = 5
	killedPods  = killedGangs * killedSize
)

// TestKilled is A23: a leader is killed while it binds twenty gangs, after a number of binds that
// is drawn by lot, and before it hears of the last of them. The replica that stood by has to finish
// what was begun, to start the rest, and to bind nothing twice; then it is killed in its turn.
func TestKilled(t *testing.T) {
	h := newHarness(t, noControllers)
	h.do(nodes("n", 20, "5cpu"))
	p, args := h.newProxy()
	k := &failoverTest{harness: h, proxy: p, random: rand.New(rand.NewPCG(*seed, 0)), args: append(args,
		"--leader-elect=true", "--bind-workers=4", "--leader-elect-lease-duration=2s", "--leader-elect-renew-deadline=1500ms", "--leader-elect-retry-period=200ms")}
	k.leader = h.startScheduler(k.args...)
	h.eventually(k.hasLeader)
	k.standby = h.startScheduler(k.args...)
	for k.killed < *rounds {
		k.round(fmt.Sprint("round-", k.killed+k.resigned+1))
		if k.resigned > *rounds {
			t.Fatalf("%d leaders have lost their lease before they could be killed", k.resigned)
		}
	}
	h.must(p.BoundTwice())
	t.Logf("killed %d leaders with -seed %d; %d of them left gangs half bound, %d in all", k.killed, *seed, k.partialGangs, k.halfBound)
	for _, s := range []*scheduler.Scheduler{k.leader, k.standby} {
		h.must(s.Stop(waitTimeout))
	}
}

type failoverTest struct {
	*harness
	proxy           *faults.Proxy
	random          *rand.Rand
	args            []string
	leader, standby *scheduler.Scheduler

	killed, resigned        int // leaders; on a busy machine one may lose its lease before it is killed
	partialGangs, halfBound int // leaders that left gangs half bound, and how many gangs
}

func (k *failoverTest) hasLeader() error {
	lease, err := k.client.CoordinationV1().Leases(scheduler.Namespace).Get(k.ctx, "batch-scheduler", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if ptr.Deref(lease.Spec.HolderIdentity, "") == "" {
		return errors.New("no scheduler leads")
	}
	return nil
}

// round kills a leader and lets the next one do the rest.
func (k *failoverTest) round(job string) {
	k.t.Helper()
	last := 1 + k.random.IntN(killedPods-1)
	leader := k.leader
	var killed atomic.Bool
	k.proxy.OnBind(func(n int) {
		if n == last && killed.CompareAndSwap(false, true) {
			leader.Kill()
		}
	})
	k.gangs(job)
	select {
	case <-leader.Done():
	case <-time.After(waitTimeout):
		k.t.Fatalf("%s: the leader did not bind %d pods", job, last)
	}
	ended := time.Now()
	how := k.count(leader, killed.Swap(true), last)
	bound, halves := k.leftovers()
	k.leader, k.standby = k.standby, k.startScheduler(k.args...)
	k.eventually(func() error {
		return differs(fmt.Sprintf("%s: %d Running Scheduled; %d running", job, killedGangs, killedPods), k.view.snapshot(""))
	})
	k.must(k.view.invariants())
	k.t.Logf("%s: %s; %d pods were bound then, %d gangs half; all was well %s later",
		job, how, bound, halves, time.Since(ended).Round(time.Second/10))
	k.clear()
}

// count counts a leader that has ended, and says how: killed, or because its lease was lost, which ends
// it with an error.
func (k *failoverTest) count(leader *scheduler.Scheduler, killed bool, last int) string {
	k.t.Helper()
	if killed {
		k.killed++
		return fmt.Sprint("killed at bind ", last)
	}
	if code, err := leader.Wait(); code != 1 || !strings.Contains(err.Error(), "lost the leader lease") {
		k.t.Fatalf("the leader has ended before it was killed: %v", err)
	}
	k.resigned++
	return "lost its lease"
}

// gangs makes the gangs of a round: the pods first, so that the groups start close together.
func (k *failoverTest) gangs(job string) {
	k.t.Helper()
	var groups []row
	for i := range killedGangs {
		name := fmt.Sprintf("%s-%02d", job, i)
		parts := []part{pods(killedSize, "1cpu"), labelled(job)}
		members(name, parts...)(k.harness)
		groups = append(groups, group(name, killedSize, parts...))
	}
	k.do(groups...)
}

// leftovers counts what a leader has left: pods that are bound, and gangs of which some are. The
// view may lag behind, so it reads from the API server.
func (k *failoverTest) leftovers() (bound, halves int) {
	k.t.Helper()
	list, err := k.client.CoreV1().Pods(namespace).List(k.ctx, metav1.ListOptions{})
	k.must(err)
	gangs := map[string]int{}
	for _, p := range list.Items {
		if p.Spec.NodeName != "" {
			bound++
			gangs[p.Labels[v1alpha1.LabelPodGroup]]++
		}
	}
	for _, n := range gangs {
		if n < killedSize {
			halves++
		}
	}
	if halves > 0 {
		k.partialGangs++
		k.halfBound += halves
	}
	return bound, halves
}

// clear deletes all gangs.
func (k *failoverTest) clear() {
	k.t.Helper()
	now, all := metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}, metav1.ListOptions{}
	k.must(k.client.CoreV1().Pods(namespace).DeleteCollection(k.ctx, now, all))
	k.must(k.batch.SchedulingV1alpha1().PodGroups(namespace).DeleteCollection(k.ctx, now, all))
	k.eventually(func() error {
		pods, _ := k.view.pods.List(labels.Everything())
		groups, _ := k.view.groups.List(labels.Everything())
		if len(pods)+len(groups) > 0 {
			return fmt.Errorf("%d pods and %d groups are still there", len(pods), len(groups))
		}
		return nil
	})
}
