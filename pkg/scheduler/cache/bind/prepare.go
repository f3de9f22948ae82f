// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package bind

import (
	"context"
	"errors"
	"sync"
)

// Some pods need more than resources of a node: their volumes have to be bound and their devices
// allocated before they are bound themselves. That takes seconds, at times minutes, and may fail.
// So a unit with external reservations is prepared first:
//
//   - Each unit is prepared on a goroutine of its own. It commits all its reservations at the same
//     time. Other units are bound meanwhile.
//   - If all succeed, the unit joins the queue of binds.
//   - If one fails, the others are cancelled, everything is released, no pod of the unit is bound,
//     and the job backs off.
//
// A gang starts with one unit, but surplus members may be committed while that unit is prepared.
// Those units follow the first: they go on when it is prepared, and are released with it when it
// fails. Otherwise a surplus member could be bound although its gang is not.

// accept queues a unit: to be prepared, to be bound, or behind the unit with which its gang starts.
// The caller holds mu.
func (b *Binder) accept(u *Unit) {
	first := b.preparing[u.Job]
	switch {
	case first != nil:
		first.followers = append(first.followers, u)
	case !u.hasExternal():
		b.submit(u)
	default:
		if u.StartsGang {
			b.preparing[u.Job] = u
		}
		b.toPrepare = append(b.toPrepare, u)
		b.changed.Broadcast()
	}
}

// prepareAll prepares units until ctx is done, each on a goroutine of its own.
func (b *Binder) prepareAll(ctx context.Context) {
	var running sync.WaitGroup
	for u := b.nextToPrepare(); u != nil; u = b.nextToPrepare() {
		running.Go(func() { b.prepare(ctx, u) })
	}
	running.Wait()
}

// nextToPrepare waits until there is a unit to prepare. It returns nil when the binder drains.
func (b *Binder) nextToPrepare() *Unit {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.toPrepare) == 0 {
		if b.draining {
			return nil
		}
		b.changed.Wait()
	}
	u := b.toPrepare[0]
	b.toPrepare = b.toPrepare[1:]
	return u
}

// prepare commits the reservations of a unit. If that fails, the job backs off, and is requeued
// afterwards unless the binder stops before.
func (b *Binder) prepare(ctx context.Context, u *Unit) {
	err := u.commitExternal(ctx)
	if err == nil && b.continuePrepared(u) {
		return
	}
	requests := b.releaseUnit(u)
	if ctx.Err() != nil {
		u.Requests[0].logger(b.Log).Info("Prepare cancelled", "reason", "stopping", "pods", len(u.Requests))
		return
	}
	delay := b.backoff.When(err.request.UID)
	err.request.logger(b.Log).V(1).Info("Prepare failed", "pods", len(requests), "retryIn", delay, "err", err.error)
	b.Events.PrepareFailed(err.request.reference(), u.PodGroup, err)
	b.Handler.JobBackoff(u.Job, requests, err.Error())
	timer := b.Clock.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C():
		b.Handler.JobRequeued(u.Job)
	case <-ctx.Done():
	}
}

// prepareError is the failure of one reservation.
type prepareError struct {
	request *Request
	error
}

// commitExternal commits all reservations of a unit at the same time. It returns the first
// failure, which cancels the others.
func (u *Unit) commitExternal(ctx context.Context) *prepareError {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var running sync.WaitGroup
	for _, r := range u.Requests {
		for _, reservation := range r.External {
			running.Go(func() {
				if err := reservation.Commit(ctx); err != nil {
					fail(&prepareError{r, err})
				}
			})
		}
	}
	running.Wait()
	var first *prepareError
	switch cause := context.Cause(ctx); {
	case errors.As(cause, &first):
	case cause != nil: // the scheduler stops
		first = &prepareError{u.Requests[0], cause}
	}
	return first
}

// continuePrepared queues the binds of a prepared unit, and accepts its followers. It returns
// false and does nothing if the binder drains.
func (b *Binder) continuePrepared(u *Unit) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.draining {
		return false
	}
	b.endFollowing(u)
	b.submit(u)
	for _, follower := range u.followers {
		b.accept(follower)
	}
	return true
}

// releaseUnit releases all reservations of the unit and its followers, and returns their
// requests, none of which was sent.
func (b *Binder) releaseUnit(u *Unit) []*Request {
	b.mu.Lock()
	b.endFollowing(u)
	b.mu.Unlock()
	requests := u.Requests
	for _, follower := range u.followers {
		requests = append(requests, follower.Requests...)
	}
	var running sync.WaitGroup
	for _, r := range requests {
		running.Go(r.releaseExternal)
	}
	running.Wait()
	return requests
}

// endFollowing lets no other unit follow this one. The caller holds mu.
func (b *Binder) endFollowing(u *Unit) {
	if b.preparing[u.Job] == u {
		delete(b.preparing, u.Job)
	}
}
