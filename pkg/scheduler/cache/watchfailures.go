// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
)

// Log lines about failed watches.
const (
	// collectFailures is how long a line waits for other resources that fail for the same cause.
	collectFailures = 2 * time.Second
	// Between two lines about the same cause and resources is this pause, which doubles up to the maximum.
	firstPause, maxPause = time.Minute, 16 * time.Minute
	// recentFailure is for how long a resource counts as failing. Informers retry every 30 seconds at most.
	recentFailure = 2 * time.Minute
)

// watchFailures logs why lists and watches fail. One cause, such as a missing ClusterRole, fails every informer, and again at
// each retry, so a line names all resources with the same cause, and lines about the same resources become rare.
type watchFailures struct {
	log   logr.Logger
	clock clock.WithTicker

	mu     sync.Mutex
	causes map[string]*failureCause
}

// failureCause is a cause with the resources for which it was seen.
type failureCause struct {
	hint      string
	err       error                // the first since the last line
	failed    map[string]time.Time // by resource, the last failure since the last line
	logged    map[string]struct{}  // resources that a line has named
	last      time.Time            // of the last line
	pause     time.Duration        // after the last line
	scheduled bool                 // a goroutine is going to write a line
}

func newWatchFailures(log logr.Logger, c clock.WithTicker) *watchFailures {
	return &watchFailures{log: log, clock: c, causes: map[string]*failureCause{}}
}

// add records a failure. The context is that of the informer: nothing is logged after it has ended.
func (w *watchFailures) add(ctx context.Context, resource string, err error, hint string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := causeOf(err, hint)
	c := w.causes[name]
	if c == nil {
		w.forget()
		c = &failureCause{hint: hint, failed: map[string]time.Time{}, logged: map[string]struct{}{}}
		w.causes[name] = c
	}
	if len(c.failed) == 0 {
		c.err = err
	}
	c.failed[resource] = w.clock.Now()
	if _, known := c.logged[resource]; c.scheduled || known && w.clock.Since(c.last) < c.pause {
		return
	}
	c.scheduled = true
	timer := w.clock.NewTimer(collectFailures)
	go func() {
		defer timer.Stop()
		select {
		case <-ctx.Done():
		case <-timer.C():
		}
		w.write(ctx, c)
	}()
}

// forget drops the causes that no line was about for a long time: texts of errors may be different each time.
func (w *watchFailures) forget() {
	maps.DeleteFunc(w.causes, func(_ string, c *failureCause) bool { return !c.scheduled && w.clock.Since(c.last) > 2*maxPause })
}

// write logs what was recorded.
func (w *watchFailures) write(ctx context.Context, c *failureCause) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c.scheduled = false
	if ctx.Err() != nil {
		return
	}
	now := w.clock.Now()
	if now.Sub(c.last) > 2*maxPause { // the first line, or there was no failure for a long time
		c.pause = firstPause
		clear(c.logged)
	} else {
		c.pause = min(2*c.pause, maxPause)
	}
	var resources []string
	for _, resource := range slices.Sorted(maps.Keys(c.failed)) {
		if now.Sub(c.failed[resource]) < recentFailure {
			resources = append(resources, resource)
			c.logged[resource] = struct{}{}
		}
	}
	values := []any{"resources", strings.Join(resources, ",")}
	if c.hint != "" {
		values = append(values, "hint", c.hint)
	}
	w.log.Error(c.err, "Watch failed", values...)
	c.last = now
	clear(c.failed)
}

// causeOf returns what errors for the same cause have in common: their texts contain the resource or the address of the
// request.
func causeOf(err error, hint string) string {
	if hint != "" {
		return hint
	}
	if reason := apierrors.ReasonForError(err); reason != metav1.StatusReasonUnknown {
		return string(reason)
	}
	var connection *net.OpError
	if errors.As(err, &connection) {
		return connection.Op + ": " + connection.Err.Error() // without the port of the connection
	}
	var request *url.Error
	if errors.As(err, &request) {
		return request.Err.Error()
	}
	return err.Error()
}
