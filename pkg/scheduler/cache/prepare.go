package cache

import (
	"context"
	"errors"
	"fmt"
	"sync"

	v1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// Some pods need more than room: their volumes have to be bound, and their devices allocated, before they are
// bound. That takes seconds, at times minutes, and may fail. So a unit with reservations is prepared first, on
// goroutines of its own, which mostly wait; it joins the queue of binds when all of its reservations are fulfilled.
// If one is not, nothing of the unit is bound, and its job is put off for a while.

// accept takes over a unit: to be prepared, or to be bound at once. Whatever is decided for a gang that is not
// complete before its first unit is prepared shares the fate of that. The caller holds mu.
func (b *binder) accept(u *unit) {
	first := b.forming[u.job]
	switch {
	case first != nil:
		first.followers = append(first.followers, u)
	case !u.reserves:
		b.submit(u)
	default:
		if u.forms {
			b.forming[u.job] = u
		}
		b.unprepared = append(b.unprepared, u)
		b.changed.Broadcast()
	}
}

// prepareAll prepares units until ctx is done, each on its own.
func (b *binder) prepareAll(ctx context.Context) {
	var running sync.WaitGroup
	for u := b.nextUnprepared(); u != nil; u = b.nextUnprepared() {
		running.Go(func() { b.prepare(ctx, u) })
	}
	running.Wait()
}

// nextUnprepared waits until there is a unit to prepare. It returns nil when the binder is draining.
func (b *binder) nextUnprepared() *unit {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.unprepared) == 0 {
		if b.draining {
			return nil
		}
		b.changed.Wait()
	}
	u := b.unprepared[0]
	b.unprepared = b.unprepared[1:]
	return u
}

// prepare fulfils what a unit has reserved. If that fails, it puts the job off.
func (b *binder) prepare(ctx context.Context, u *unit) {
	err := u.fulfil(ctx)
	if err == nil && b.prepared(u) {
		return
	}
	failed := b.unprepare(u)
	if ctx.Err() != nil {
		b.log.Info("Gave up preparing a gang because the scheduler is stopping", "first", u.flights[0].String(), "pods", len(u.flights))
		return
	}
	delay := b.backoff.When(err.flight.uid)
	b.log.Info("Preparing pods failed, none of them is bound", "pod", err.flight.String(), "pods", len(failed), "retryIn", delay, "err", err)
	b.recorder.add(unprepared(u, err))
	b.tower.putOff(u.job, failed, err.Error())
	timer := b.clock.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C():
		b.tower.readmitted(u.job)
	case <-ctx.Done():
	}
}

// unfulfilled is why a unit is not bound.
type unfulfilled struct {
	flight *flight
	error
}

// fulfil fulfils all reservations of a unit at the same time, and returns the first failure, which ends the
// others.
func (u *unit) fulfil(ctx context.Context) *unfulfilled {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var running sync.WaitGroup
	for _, f := range u.flights {
		for _, r := range f.reservations {
			running.Go(func() {
				if err := r.Commit(ctx); err != nil {
					fail(&unfulfilled{f, err})
				}
			})
		}
	}
	running.Wait()
	var first *unfulfilled
	switch cause := context.Cause(ctx); {
	case errors.As(cause, &first):
	case cause != nil: // the scheduler is stopping
		first = &unfulfilled{u.flights[0], cause}
	}
	return first
}

// prepared lets the unit be bound, and those that had to wait for it go on; except if the binder is draining, of
// which it tells.
func (b *binder) prepared(u *unit) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.draining {
		return false
	}
	b.settleForming(u)
	b.submit(u)
	for _, follower := range u.followers {
		b.accept(follower)
	}
	return true
}

// unprepare gives back what the unit and its followers have reserved, and returns their flights, none of which
// has begun.
func (b *binder) unprepare(u *unit) []*flight {
	b.mu.Lock()
	b.settleForming(u)
	b.mu.Unlock()
	flights := u.flights
	for _, follower := range u.followers {
		flights = append(flights, follower.flights...)
	}
	var running sync.WaitGroup
	for _, f := range flights {
		running.Go(f.cancel)
	}
	running.Wait()
	return flights
}

// cancel gives back what the flight has reserved.
func (f *flight) cancel() {
	for _, r := range f.reservations {
		r.Release()
	}
}

// settleForming lets nobody follow the unit any more. The caller holds mu.
func (b *binder) settleForming(u *unit) {
	if b.forming[u.job] == u {
		delete(b.forming, u.job)
	}
}

// unprepared says why a gang, or a pod without group, was not bound.
func unprepared(u *unit, err *unfulfilled) note {
	about := v1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: err.flight.namespace, Name: err.flight.name, UID: err.flight.uid}
	if u.group != nil {
		about = *u.group
	}
	return note{
		about: about, kind: v1.EventTypeWarning, reason: v1alpha1.ReasonClaimsNotReady, action: "Binding",
		text: err.Error(), key: fmt.Sprint(about.UID, "/", v1alpha1.ReasonClaimsNotReady, "/", err.flight.uid),
	}
}
