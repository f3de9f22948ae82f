// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
)

func TestWatchFailuresAreLoggedByCause(t *testing.T) {
	t.Parallel()
	forbidden := func(resource string) error {
		return fmt.Errorf("failed to list: %w", apierrors.NewForbidden(v1.Resource(resource), "", errors.New("no")))
	}
	unreachable := func(resource string) error {
		return &url.Error{Op: "Get", URL: "https://127.0.0.1:1/api/v1/" + resource, Err: errors.New("connection refused")}
	}
	reset := func(port int) func(string) error {
		return func(resource string) error {
			connection := &net.OpError{Op: "read", Net: "tcp", Source: &net.TCPAddr{Port: port}, Err: errors.New("connection refused")}
			return &url.Error{Op: "Get", URL: "https://127.0.0.1:1/api/v1/" + resource, Err: connection}
		}
	}
	type failure struct {
		after    time.Duration
		resource string
		err      func(resource string) error
		hint     string
	}
	everyHalfMinute := func(until time.Duration, resources ...string) []failure {
		var list []failure
		for at := time.Duration(0); at < until; at += 30 * time.Second {
			for i, resource := range resources {
				list = append(list, failure{at + time.Duration(i)*time.Millisecond, resource, forbidden, "role"})
			}
		}
		return list
	}
	const pods, both = `forbidden resources=pods hint=role`, `forbidden resources=nodes,pods hint=role`
	for name, test := range map[string]struct {
		given []failure
		want  string // one a line: when, err, resources, hint
	}{
		"resources that fail for one cause share a line": {
			given: []failure{{0, "pods", forbidden, "role"}, {time.Second, "nodes", forbidden, "role"}},
			want:  "2s " + both,
		},
		"the same resources are logged less and less often": {
			given: everyHalfMinute(10*time.Minute, "pods", "nodes"), // pauses of 1, 2, 4 and 8 minutes
			want:  "2s " + both + "\n1m32s " + both + "\n4m2s " + both + "\n8m32s " + both,
		},
		"another resource does not wait for the pause": {
			given: []failure{{0, "pods", forbidden, "role"}, {10 * time.Second, "nodes", forbidden, "role"}},
			want:  "2s " + pods + "\n12s forbidden resources=nodes hint=role",
		},
		"resources that take turns are logged once": {
			given: []failure{{0, "pods", forbidden, "role"}, {10 * time.Second, "nodes", forbidden, "role"}, {20 * time.Second, "pods", forbidden, "role"}, {30 * time.Second, "nodes", forbidden, "role"}},
			want:  "2s " + pods + "\n12s forbidden resources=nodes hint=role",
		},
		"a resource that has recovered is not named": {
			given: []failure{{0, "pods", forbidden, "role"}, {10 * time.Second, "pods", forbidden, "role"}, {5 * time.Minute, "nodes", forbidden, "role"}},
			want:  "2s " + pods + "\n5m2s forbidden resources=nodes hint=role",
		},
		"after a long time without failures the pauses begin again": {
			given: append(everyHalfMinute(2*time.Minute, "pods"), failure{2 * time.Hour, "pods", forbidden, "role"}, failure{2*time.Hour + 65*time.Second, "pods", forbidden, "role"}),
			want:  "2s " + pods + "\n1m32s " + pods + "\n2h0m2s " + pods + "\n2h1m7s " + pods,
		},
		"an address in the error is no cause": {
			given: []failure{{0, "pods", unreachable, ""}, {time.Second, "nodes", unreachable, ""}},
			want:  "2s refused resources=nodes,pods",
		},
		"a port in the error is no cause": {
			given: []failure{{0, "pods", reset(1001), ""}, {time.Second, "nodes", reset(1002), ""}},
			want:  "2s refused resources=nodes,pods",
		},
		"two causes are two lines": {
			given: []failure{{0, "pods", forbidden, "role"}, {time.Second, "nodes", unreachable, ""}},
			want:  "2s " + pods + "\n3s refused resources=nodes",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var got []string
				log := funcr.New(func(_, args string) {
					got = append(got, time.Since(began).Truncate(time.Second).String()+" "+shortLine(args))
				}, funcr.Options{})
				w := newWatchFailures(log, clock.RealClock{})
				for _, f := range test.given {
					time.Sleep(f.after - time.Since(began))
					w.add(t.Context(), f.resource, f.err(f.resource), f.hint)
				}
				time.Sleep(time.Hour)
				synctest.Wait()
				if diff := cmp.Diff(test.want, strings.Join(got, "\n")); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			})
		})
	}
}

// shortLine shortens a line of the log to the last word of the error's cause, the resources and the hint.
func shortLine(line string) string {
	cause := "forbidden"
	if strings.Contains(line, "connection refused") {
		cause = "refused"
	}
	_, values, _ := strings.Cut(line, ` "resources"=`)
	return cause + " resources=" + strings.ReplaceAll(strings.ReplaceAll(values, `"hint"`, "hint"), `"`, "")
}

func TestWatchFailuresAreNotLoggedAfterTheInformers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lines := 0
		w := newWatchFailures(funcr.New(func(_, _ string) { lines++ }, funcr.Options{}), clock.RealClock{})
		ctx, cancel := context.WithCancel(t.Context())
		w.add(ctx, "pods", errors.New("no"), "")
		cancel()
		synctest.Wait()
		time.Sleep(time.Minute)
		synctest.Wait()
		if lines > 0 {
			t.Errorf("%d lines", lines)
		}
	})
}

// TestWatchFailuresForgetCauses: each error has another text, so that the causes of a long time would be many.
func TestWatchFailuresForgetCauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWatchFailures(logr.Discard(), clock.RealClock{})
		for i := range 1000 {
			w.add(t.Context(), "pods", fmt.Errorf("request %d failed", i), "")
			time.Sleep(time.Hour)
		}
		synctest.Wait()
		if n := len(w.causes); n > 3 {
			t.Errorf("%d causes are kept", n)
		}
	})
}
