// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"
	clocktesting "k8s.io/utils/clock/testing"
)

// TestWaitingForTheAPIServer starts a scheduler whose informers sync after some time of an injected clock.
func TestWaitingForTheAPIServer(t *testing.T) {
	const line = `"msg"="Waiting for the API server" "server"="http://127.0.0.1:1" "after"="5s"`
	for name, test := range map[string]struct {
		after time.Duration
		want  bool
	}{
		"an API server that answers at once":         {},
		"an API server that answers after 4.999 s":   {after: 4999 * time.Millisecond},
		"an API server that has not answered in 5 s": {after: 5 * time.Second, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(time.Unix(0, 0))
			lines := make(chan string, 100)
			log := funcr.New(func(_, args string) { lines <- args }, funcr.Options{})
			ctx, stop := context.WithCancel(klog.NewContext(t.Context(), log))
			defer stop()
			var got []string
			s := &fakeScheduler{work: func(context.Context) error { return nil }}
			s.start = func(context.Context) error {
				clock.Step(test.after)
				for test.want && !slices.ContainsFunc(got, isWaiting) {
					select {
					case l := <-lines:
						got = append(got, l)
					case <-time.After(deadline):
						t.Error("no line about the API server")
						return nil
					}
				}
				return nil
			}
			p := newProgram([]Option{withThirdParty(), withScheduler(s), func(p *program) { p.clock = clock }})
			if err := p.run(ctx, offline(t)); err != nil {
				t.Fatal(err)
			}
			clock.Step(time.Hour)
			close(lines)
			for l := range lines {
				got = append(got, l)
			}
			got = slices.DeleteFunc(got, func(l string) bool { return !isWaiting(l) })
			if len(got) > 1 || (len(got) == 1) != test.want || test.want && !strings.Contains(got[0], line) {
				t.Errorf("lines about the API server: %q", got)
			}
		})
	}
}

func isWaiting(line string) bool { return strings.Contains(line, "Waiting for the API server") }
