// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	componentbaseconfig "k8s.io/component-base/config"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// errLeaseLost ends a replica that could not renew its lease: another replica may lead already.
var errLeaseLost = errors.New("lost the leader lease: it could not be renewed in time; ending so that another replica takes over")

// election makes one of several replicas the leader.
type election struct {
	config   componentbaseconfig.LeaderElectionConfiguration
	client   kubernetes.Interface
	clock    clock.Clock
	watchDog *leaderelection.HealthzAdaptor
}

func newElection(config componentbaseconfig.LeaderElectionConfiguration, client kubernetes.Interface, clk clock.Clock) *election {
	return &election{
		config: config,
		client: client,
		clock:  clk,
		// A process that still leads this long after its lease has expired is stuck.
		watchDog: leaderelection.NewLeaderHealthzAdaptor(20 * time.Second),
	}
}

// healthy returns an error if this replica leads although its lease has expired.
func (e *election) healthy() error {
	return e.watchDog.Check(nil)
}

// The stages of a candidacy.
const (
	standby int32 = iota
	leading
	withdrawn
)

// run blocks until this replica leads and then calls lead, once, with a context that ends when ctx ends or the lease
// is lost.
//
// When ctx ends, run releases the lease only after lead has returned, so that two leaders never act at the same time.
// When the lease is lost, lead has the rest of the lease duration to return, and run fails with errLeaseLost.
// Otherwise run returns the result of lead, or nil if ctx ended before this replica led.
func (e *election) run(ctx context.Context, lead func(context.Context) error) error {
	// The lease outlives ctx; release ends it.
	held, release := context.WithCancel(context.WithoutCancel(ctx))
	defer release()

	var stage atomic.Int32
	result := make(chan error, 1)
	elector, err := e.elector(ctx, func(held context.Context) {
		if ctx.Err() != nil || !stage.CompareAndSwap(standby, leading) {
			return // withdrawn, or soon to be
		}
		work, cancel := context.WithCancel(ctx)
		defer cancel()
		watched := context.AfterFunc(held, func() {
			klog.FromContext(ctx).Info("Leader lease lost")
			cancel()
		})
		err := lead(work)
		watched() // from here on, the lease ends on purpose
		if held.Err() != nil {
			err = errors.Join(errLeaseLost, err)
		}
		result <- err
		release()
	})
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() {
		if stage.CompareAndSwap(standby, withdrawn) {
			release()
		}
	})()

	elector.Run(held)
	if stage.CompareAndSwap(standby, withdrawn) || stage.Load() == withdrawn {
		if ctx.Err() == nil {
			return errLeaseLost
		}
		return nil
	}
	return e.await(result)
}

// await returns the result of lead, or errLeaseLost if lead does not return before the lease duration is over.
func (e *election) await(result <-chan error) error {
	remaining := e.clock.NewTimer(e.config.LeaseDuration.Duration - e.config.RenewDeadline.Duration)
	defer remaining.Stop()
	select {
	case err := <-result:
		return err
	case <-remaining.C():
		return errLeaseLost
	}
}

func (e *election) elector(ctx context.Context, lead func(context.Context)) (*leaderelection.LeaderElector, error) {
	identity, err := newIdentity()
	if err != nil {
		return nil, err
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: e.config.ResourceNamespace, Name: e.config.ResourceName},
			Client:     e.client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		},
		LeaseDuration:   e.config.LeaseDuration.Duration,
		RenewDeadline:   e.config.RenewDeadline.Duration,
		RetryPeriod:     e.config.RetryPeriod.Duration,
		ReleaseOnCancel: true, // run cancels after lead has returned
		Name:            e.config.ResourceName,
		WatchDog:        e.watchDog,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: lead,
			OnStoppedLeading: func() {},
			OnNewLeader: func(leader string) {
				klog.FromContext(ctx).Info("Leader elected", "leader", leader, "self", identity)
			},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("leader election: %w", err)
	}
	e.watchDog.SetLeaderElection(elector)
	return elector, nil
}

// newIdentity returns a name that is unique among replicas, also among those on one host.
func newIdentity() (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("naming this replica: %w", err)
	}
	return host + "_" + uuid.NewString(), nil
}
