// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"time"

	"github.com/batch-scheduler/batch-scheduler/cmd/demo/internal/snapshot"
	"github.com/batch-scheduler/batch-scheduler/cmd/demo/internal/verify"
)

// drawPeriod is the interval of screen updates. The verifier sees every change.
const drawPeriod = 500 * time.Millisecond

// ending is a process without which the demo cannot go on.
type ending struct {
	what string
	done <-chan struct{}
	wait func() (int, error) // says how it ended; nil if there is no more to say
}

// follower passes the state of the cluster to the screen and to the verifier.
type follower struct {
	out     output
	watcher *snapshot.Watcher
	endings []ending
	start   time.Time
}

func newFollower(out output, watcher *snapshot.Watcher, endings []ending) *follower {
	return &follower{out: out, watcher: watcher, endings: endings, start: time.Now()}
}

func (f *follower) elapsed() time.Duration { return time.Since(f.start) }

// untilComplete follows the samples until no check is open, or until the timeout.
func (f *follower) untilComplete(ctx context.Context, timeout time.Duration) (verify.Verdict, error) {
	j := verify.New(verify.Samples())
	over := time.NewTimer(timeout)
	defer over.Stop()
	ticker := time.NewTicker(drawPeriod)
	defer ticker.Stop()
	view := f.out.view()
	for {
		if err := f.ended(ctx); err != nil {
			return nil, err
		}
		select {
		case <-ctx.Done():
		case <-f.watcher.Changed():
			j.Observe(time.Now(), f.watcher.Snapshot())
		case <-ticker.C:
			s := f.watcher.Snapshot()
			j.Observe(time.Now(), s)
			view(s, f.elapsed())
			if verdict := j.Verdict(); verdict.Complete() {
				return verdict, nil
			}
		case <-over.C:
			return j.Verdict(), nil
		}
	}
}

// untilCancelled shows what changes, line by line.
func (f *follower) untilCancelled(ctx context.Context) error {
	view := f.out.changes(f.watcher.Snapshot())
	ticker := time.NewTicker(drawPeriod)
	defer ticker.Stop()
	for {
		if err := f.ended(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
			view(f.watcher.Snapshot(), f.elapsed())
		}
	}
}

// ended returns why following cannot go on, or nil.
func (f *follower) ended(ctx context.Context) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for _, e := range f.endings {
		select {
		case <-e.done:
			if e.wait != nil {
				if _, err := e.wait(); err != nil {
					return fmt.Errorf("%s ended: %w", e.what, err)
				}
			}
			return fmt.Errorf("%s ended", e.what)
		default:
		}
	}
	return nil
}
