// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/batch-scheduler/batch-scheduler/test/cluster"
)

// scenario is a case that consists of rows and expected states.
type scenario struct {
	cluster cluster.Options
	config  string // the policy; empty: the built-in one
	evicts  bool   // with the policy that evicts
	args    []string

	given []row // made before the scheduler starts
	step        // what comes of it
	then  []step
}

// step is something done and the state that comes of it.
type step struct {
	do     []row // nothing in the first step
	want   string
	by     string            // the node label that want tells places by
	prints map[string]string // by job: part of the message about why it waits
	runs   bool              // want is about the pods that run alone

	// short is a group of which fewer than minMember pods may run, because it has started with
	// a smaller minMember.
	short string
}

// play runs each scenario on a cluster of its own, beside those of other tests.
func play(t *testing.T, scenarios map[string]scenario) {
	t.Parallel()
	for name, s := range scenarios {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, s.cluster)
			h.do(s.given...)
			args := s.args
			if s.evicts {
				s.config = evictingPolicy
			}
			if s.config != "" {
				args = append(args, "--scheduler-conf="+h.file("policy.yaml", s.config))
			}
			h.start(args...)
			for i, step := range append([]step{s.step}, s.then...) {
				h.do(step.do...)
				if err := h.await(func() error { return step.refusal(h.view) }); err != nil {
					t.Fatalf("step %d: %v", i+1, err)
				}
				if err := h.view.invariants(step.short); err != nil {
					t.Errorf("after step %d: %v", i+1, err)
				}
			}
		})
	}
}

// waiting is what a picture says of pods that wait, behind what runs.
var waiting = regexp.MustCompile(`(?m), \d+ waiting.*$`)

// refusal returns how the cluster differs from the state that the step expects; nil if it does not.
func (s *step) refusal(v *observer) error {
	picture := v.snapshot(s.by)
	if s.runs {
		picture = waiting.ReplaceAllString(picture, "")
	}
	if err := differs(canonical(s.want), picture); err != nil {
		return err
	}
	for job, part := range s.prints {
		if message := v.message(job); !strings.Contains(message, part) {
			return fmt.Errorf("the message about %s is %q\nwhich does not contain %q", job, message, part)
		}
	}
	return nil
}

// file writes a file for the scheduler to read, and returns its path.
func (h *harness) file(name, content string) string {
	h.t.Helper()
	path := filepath.Join(h.dir, name)
	h.must(os.WriteFile(path, []byte(content), 0o600))
	return path
}
