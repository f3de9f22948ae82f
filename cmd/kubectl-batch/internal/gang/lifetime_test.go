// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/cmd/kubectl-batch/internal/gang"
)

// ends sums up what ends a Job.
func ends(g gang.Gang) string {
	s := g.Job.Spec
	rules := 0
	if s.PodFailurePolicy != nil {
		rules = len(s.PodFailurePolicy.Rules)
	}
	limit := fmt.Sprint(ptr.Deref(s.BackoffLimit, -1))
	if s.BackoffLimitPerIndex != nil {
		limit += fmt.Sprintf(" (%d per index, %d indexes)", *s.BackoffLimitPerIndex, *s.MaxFailedIndexes)
	}
	return fmt.Sprintf("pods after %d s, backoffLimit %s, %d rules; warnings %q", ptr.Deref(s.Template.Spec.ActiveDeadlineSeconds, 0), limit, rules, g.Warnings())
}

func TestWhatEndsAJob(t *testing.T) {
	t.Parallel()
	g, err := gang.New(spec(func(w *gang.Spec) { w.Time = 90 * time.Minute }))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`pods after 5400 s, backoffLimit 0 (0 per index, 0 indexes), 1 rules; warnings []`, ends(g)); diff != "" {
		t.Errorf("with --time (-want +got):\n%s", diff)
	}
	if g, err = gang.New(spec()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`pods after 0 s, backoffLimit 6 (6 per index, 0 indexes), 1 rules; warnings []`, ends(g)); diff != "" {
		t.Errorf("without --time (-want +got):\n%s", diff)
	}
}

func TestRunTimeOfThePodGroup(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		limit, expected time.Duration
		want            string // or the error
	}{
		"neither":                    {0, 0, "limit -1, expected -1"},
		"a limit":                    {90 * time.Minute, 0, "limit 5400, expected -1"},
		"both":                       {time.Hour, time.Minute, "limit 3600, expected 60"},
		"an estimate":                {0, time.Minute, "limit -1, expected 60"},
		"an estimate above":          {time.Minute, time.Hour, "--expected-time: 3600 s exceed the limit of 60 s"},
		"an estimate that is no one": {0, time.Millisecond, "--expected-time: 1ms is invalid; it must be at least 1s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, err := gang.New(spec(func(w *gang.Spec) { w.Time, w.Expected = test.limit, test.expected }))
			got := fmt.Sprint(err)
			if err == nil {
				s := g.Group.Spec
				got = fmt.Sprintf("limit %d, expected %d", ptr.Deref(s.MaximumExecutionTimeSeconds, -1), ptr.Deref(s.ExpectedExecutionTimeSeconds, -1))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestWhatEndsAJobOfAFile(t *testing.T) {
	t.Parallel()
	const many = "parallelism: 12" // of 9 completions: 9 pods at a time
	const slow = `"after an eviction of its 9 pods, Job j waits for 10m before it creates them again; a Job waits for 10s if it has completionMode: Indexed, backoffLimit: 6, backoffLimitPerIndex: 6 and maxFailedIndexes: 0"`
	for name, test := range map[string]struct {
		given string // instead of "parallelism: 4"
		pod   string // instead of "restartPolicy: Never"
		time  time.Duration
		want  string // or the error
	}{
		"nothing given":            {given: many, want: `pods after 0 s, backoffLimit -1, 1 rules; warnings [` + slow + `]`},
		"an indexed Job":           {given: "completionMode: Indexed\n  backoffLimit: 2", want: `pods after 0 s, backoffLimit 2 (2 per index, 0 indexes), 1 rules; warnings []`},
		"a time":                   {given: many, time: time.Minute, want: `pods after 60 s, backoffLimit 0, 1 rules; warnings [` + slow + `]`},
		"a time and a limit":       {given: "backoffLimit: 3", time: time.Minute, want: `pods after 60 s, backoffLimit 3, 1 rules; warnings []`},
		"a time twice":             {pod: "restartPolicy: Never, activeDeadlineSeconds: 5", time: time.Minute, want: "--time: the pods of Job j already have activeDeadlineSeconds; remove one of both"},
		"a time that is too short": {time: time.Millisecond, want: "--time: 1ms is invalid; it must be at least 1s"},
		"a deadline of the Job":    {given: "activeDeadlineSeconds: 60", want: `pods after 0 s, backoffLimit -1, 1 rules; warnings ["the activeDeadlineSeconds of Job j also counts while its pods wait; set that of the pod template, or --time"]`},
		"containers restart":       {given: many, pod: "restartPolicy: OnFailure", want: `pods after 0 s, backoffLimit -1, 0 rules; warnings ["an eviction of its pods would end Job j: evicted pods count as failures, these would be 9, and its backoffLimit is 6"]`},
		"a policy of its own": {
			given: many + "\n  podFailurePolicy: {rules: [{action: FailJob, onExitCodes: {operator: NotIn, values: [0]}}, {action: Ignore, onPodConditions: [{type: DisruptionTarget}]}]}",
			want:  `pods after 0 s, backoffLimit -1, 2 rules; warnings ["an eviction of its pods would end Job j: its podFailurePolicy fails the Job when a pod is evicted"]`,
		},
		"pods are replaced at once": {given: "podReplacementPolicy: TerminatingOrFailed", want: `pods after 0 s, backoffLimit -1, 0 rules; warnings []`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := job
			if test.given != "" {
				file = strings.Replace(file, "parallelism: 4", test.given, 1)
			}
			if test.pod != "" {
				file = strings.Replace(file, "restartPolicy: Never", test.pod, 1)
			}
			g, err := gang.Read(strings.NewReader(file), gang.Grouping{}, gang.Lifetime{Time: test.time})
			got := fmt.Sprint(err)
			if err == nil {
				got = ends(g)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
