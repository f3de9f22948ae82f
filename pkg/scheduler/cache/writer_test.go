package cache

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

// slate is an object of one word with a watch that lags.
type slate struct {
	mu            sync.Mutex
	word, shown   string
	version, seen int
	looks, writes int
	lag           time.Duration
}

func (s *slate) draft(want string) (*draft, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks++
	if s.shown == want {
		return nil, true
	}
	return &draft{base: strconv.Itoa(s.seen), send: func(context.Context) (string, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.writes++
		s.word = want
		s.version++
		go func() {
			time.Sleep(s.lag)
			s.mu.Lock()
			defer s.mu.Unlock()
			s.shown, s.seen = s.word, s.version
		}()
		return strconv.Itoa(s.version), nil
	}}, true
}

func TestWriter(t *testing.T) {
	tests := map[string]struct {
		lag           time.Duration
		wants         []string // one every 10 ms
		looks, writes int
	}{
		"the same wish again is not even looked at": {
			wants: []string{"a", "a", "a", "a"},
			looks: 2, writes: 1, // before and after giving way to binds
		},
		"wishes that differ are all written if the watch is quick": {
			wants: []string{"a", "b"},
			looks: 4, writes: 2,
		},
		"nothing is written twice because the watch lags": {
			lag:   time.Second,
			wants: []string{"a", "b"},
			looks: 14, writes: 2, // every 100 ms while the watch shows what was written over
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &Cache{options: Options{Clock: clock.RealClock{}, Metrics: noMetrics{}}}
				c.binder = newBinder(c.options, nil, nil)
				s := &slate{lag: test.lag}
				w := newWriter(c, &writer[string]{equal: equalValues[string], draft: s.draft, reason: func(string) string { return "" }})
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() {
					w.run(ctx)
					close(done)
				}()
				for _, want := range test.wants {
					w.want("it", want)
					time.Sleep(10 * time.Millisecond)
				}
				time.Sleep(5 * time.Second)
				stop()
				<-done
				s.mu.Lock()
				defer s.mu.Unlock()
				if last := test.wants[len(test.wants)-1]; s.word != last {
					t.Errorf("it shows %q in the end, want %q", s.word, last)
				}
				if diff := cmp.Diff([]int{test.looks, test.writes}, []int{s.looks, s.writes}); diff != "" {
					t.Errorf("looks and writes (-want +got):\n%s", diff)
				}
			})
		})
	}
}
