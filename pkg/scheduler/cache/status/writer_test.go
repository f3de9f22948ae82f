// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"
)

// laggingObject is an object of one word whose watch lags.
type laggingObject struct {
	mu                  sync.Mutex
	stored, shown       string
	version, seen       int
	comparisons, writes int
	lag, differFor      time.Duration
}

func (s *laggingObject) patch(want string) (*patch, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.comparisons++
	if s.shown == want {
		return nil, true
	}
	return &patch{base: strconv.Itoa(s.seen), differFor: s.differFor, send: func(context.Context) (string, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.writes++
		s.stored = want
		s.version++
		go func() {
			time.Sleep(s.lag)
			s.mu.Lock()
			defer s.mu.Unlock()
			s.shown, s.seen = s.stored, s.version
		}()
		return strconv.Itoa(s.version), nil
	}}, true
}

func TestWriter(t *testing.T) {
	tests := map[string]struct {
		lag, differFor   time.Duration
		wants            []string // one every 10 ms
		compared, writes int
	}{
		"an equal desired status is not compared": {
			wants:    []string{"a", "a", "a", "a"},
			compared: 2, writes: 1, // before and after yielding to binds
		},
		"each desired status is written if the watch does not lag": {
			wants:    []string{"a", "b"},
			compared: 4, writes: 2,
		},
		"nothing is written twice if the watch lags": {
			lag:      time.Second,
			wants:    []string{"a", "b"},
			compared: 14, writes: 2, // every 100 ms while the watch lags
		},
		"the first desired status is written at once, and later ones when they have differed for a time": {
			differFor: time.Second,
			wants:     []string{"a", "b", "c", "d"},
			compared:  7, writes: 2,
		},
		"a desired status that the object shows again is not written": {
			differFor: time.Second,
			wants:     []string{"a", "b", "a"},
			compared:  5, writes: 1,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &laggingObject{lag: test.lag, differFor: test.differFor}
				w := newWriter(Options{Clock: clock.RealClock{}, Yield: noBinds}, &writer[string]{equal: equalValues[string], patch: s.patch, reason: func(string) string { return "" }})
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() {
					w.run(ctx)
					close(done)
				}()
				for _, want := range test.wants {
					w.set("it", want)
					time.Sleep(10 * time.Millisecond)
				}
				time.Sleep(5 * time.Second)
				stop()
				<-done
				s.mu.Lock()
				defer s.mu.Unlock()
				if last := test.wants[len(test.wants)-1]; s.stored != last {
					t.Errorf("it shows %q in the end, want %q", s.stored, last)
				}
				if diff := cmp.Diff([]int{test.compared, test.writes}, []int{s.comparisons, s.writes}); diff != "" {
					t.Errorf("comparisons and writes (-want +got):\n%s", diff)
				}
			})
		})
	}
}
