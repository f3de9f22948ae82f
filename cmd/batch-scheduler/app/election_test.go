// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// leaseServer is an API server with one lease. It records the holder after each write.
type leaseServer struct {
	*fake.Clientset
	down atomic.Bool // answers every write with an error

	mu  sync.Mutex
	log []string
}

func newLeaseServer(leases ...runtime.Object) *leaseServer {
	s := &leaseServer{Clientset: fake.NewClientset(leases...)}
	s.PrependReactor("*", "leases", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if s.down.Load() {
			return true, nil, errors.New("the server is down")
		}
		if write, ok := a.(clienttesting.UpdateAction); ok {
			lease := write.GetObject().(*coordinationv1.Lease)
			if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
				s.note("released")
			} else {
				s.note("held")
			}
		}
		return false, nil, nil
	})
	return s
}

func (s *leaseServer) note(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, what)
}

// noted returns the records without repetitions.
func (s *leaseServer) noted() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Compact(slices.Clone(s.log))
}

func (s *leaseServer) election() *election {
	return newElection(NewOptions().LeaderElection, s, clock.RealClock{})
}

// otherLease is held by another replica, which renews it until stop is called.
func otherLease() *coordinationv1.Lease {
	holder, seconds, now := "other", int32(15), metav1.NowMicro()
	options := NewOptions().LeaderElection
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: options.ResourceNamespace, Name: options.ResourceName},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, AcquireTime: &now, RenewTime: &now},
	}
}

// The tests of this file run on the fake time of synctest, with the default durations.

func TestLeaseIsReleasedAfterTheWorkIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newLeaseServer()
		logger := funcr.New(func(_, line string) {
			if strings.Contains(line, "Lost") {
				server.note("logs that the lease is lost")
			}
		}, funcr.Options{})
		ctx, stop := context.WithCancel(klog.NewContext(t.Context(), logger))
		err := server.election().run(ctx, func(work context.Context) error {
			server.note("leads")
			time.AfterFunc(time.Minute+time.Second, stop) // never at the time of a renewal, which is every other second
			<-work.Done()
			server.note("stopping")
			<-time.After(30 * time.Second) // a slow stop: the lease is renewed all the time
			server.note("stopped")
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		synctest.Wait()
		want := []string{"held", "leads", "held", "stopping", "held", "stopped", "released"}
		if diff := cmp.Diff(want, server.noted()); diff != "" {
			t.Errorf("order (-want +got):\n%s", diff)
		}
	})
}

func TestLostLeaseEndsTheWorkAndIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newLeaseServer()
		var lost time.Duration
		err := server.election().run(t.Context(), func(work context.Context) error {
			server.down.Store(true)
			start := time.Now()
			<-work.Done()
			lost = time.Since(start)
			return nil
		})
		if !errors.Is(err, errLeaseLost) {
			t.Errorf("got error %v, want that the lease is lost", err)
		}
		if options := NewOptions().LeaderElection; lost >= options.LeaseDuration.Duration {
			t.Errorf("the work was stopped after %v, but another replica may lead after %v", lost, options.LeaseDuration)
		}
	})
}

func TestLostLeaseDoesNotWaitForWorkThatDoesNotStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newLeaseServer()
		hang := make(chan struct{})
		defer close(hang)
		start := time.Now()
		err := server.election().run(t.Context(), func(context.Context) error {
			server.down.Store(true)
			<-hang
			return nil
		})
		if !errors.Is(err, errLeaseLost) {
			t.Errorf("got error %v, want that the lease is lost", err)
		}
		// The last renewal was at most one retry period before the server went down.
		options := NewOptions().LeaderElection
		if took, limit := time.Since(start), options.LeaseDuration.Duration+options.RetryPeriod.Duration; took > limit {
			t.Errorf("ended after %v, want at most %v", took, limit)
		}
	})
}

func TestStandbyNeverLeadsAndStopsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newLeaseServer(otherLease())
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Second, stop) // before the other lease runs out
		start := time.Now()
		err := server.election().run(ctx, func(context.Context) error {
			t.Error("leads although another replica holds the lease")
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("stopped after %v, want 10s", took)
		}
		if got := server.noted(); len(got) != 0 {
			t.Errorf("the lease of the other replica was written: %v", got)
		}
	})
}

func TestStandbyAcquiresAnExpiredLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newLeaseServer(otherLease())
		led := false
		err := server.election().run(t.Context(), func(context.Context) error {
			led = true
			return nil
		})
		if err != nil || !led {
			t.Errorf("led is %v and the error %v, want true and none", led, err)
		}
	})
}

func TestFailedWorkReleasesTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newLeaseServer()
		broken := errors.New("broken")
		err := server.election().run(t.Context(), func(context.Context) error { return broken })
		if err != broken { //nolint:errorlint // the error itself, not wrapped
			t.Errorf("got error %v, want %v", err, broken)
		}
		if got := server.noted(); len(got) == 0 || got[len(got)-1] != "released" {
			t.Errorf("got %v, want the lease released in the end", got)
		}
	})
}

func TestStopBeforeTheElectionDoesNotLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		stop()
		err := newLeaseServer().election().run(ctx, func(context.Context) error {
			t.Error("leads after the stop")
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}
