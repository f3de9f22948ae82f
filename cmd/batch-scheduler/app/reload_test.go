// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/metrics"
)

func TestReload(t *testing.T) {
	const header = `
# HELP batch_scheduler_config_last_success_timestamp_seconds [ALPHA] Time when the active configuration was loaded, in seconds since 1970.
# TYPE batch_scheduler_config_last_success_timestamp_seconds gauge
# HELP batch_scheduler_config_reloads_total [ALPHA] Reloads of the configuration file. After a failed reload the previous configuration stays active.
# TYPE batch_scheduler_config_reloads_total counter
`
	for name, tc := range map[string]struct {
		err     error // of the file
		reject  error // of the scheduler
		calls   []string
		event   string
		metrics string
	}{
		"a valid file is applied": {
			calls: []string{"configure"},
			event: "Normal ConfigurationReloaded The changed configuration is in force",
			metrics: `batch_scheduler_config_last_success_timestamp_seconds 100
batch_scheduler_config_reloads_total{result="failure"} 0
batch_scheduler_config_reloads_total{result="success"} 1`,
		},
		"an invalid file leaves the old configuration": {
			err:   &conf.Error{Source: "f", Problems: []conf.Problem{{Line: 3, Path: "actions", Text: "wrong"}}},
			event: "Warning ConfigurationRefused The old configuration stays in force: f:3: actions: wrong",
			metrics: `batch_scheduler_config_last_success_timestamp_seconds 0
batch_scheduler_config_reloads_total{result="failure"} 1
batch_scheduler_config_reloads_total{result="success"} 0`,
		},
		"a configuration that the scheduler cannot use is rejected": {
			reject: errors.New("plugin acme: no database"),
			calls:  []string{"configure"},
			event:  "Warning ConfigurationRefused The old configuration stays in force: plugin acme: no database",
			metrics: `batch_scheduler_config_last_success_timestamp_seconds 0
batch_scheduler_config_reloads_total{result="failure"} 1
batch_scheduler_config_reloads_total{result="success"} 0`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			registry := prometheus.NewRegistry()
			scheduler := &fakeScheduler{reject: tc.reject}
			recorder := events.NewFakeRecorder(10)
			r := &reloader{file: "f", scheduler: scheduler, metrics: metrics.New(registry), events: recorder,
				clock: clocktesting.NewFakePassiveClock(time.Unix(100, 0)), self: selfReference(NewOptions())}
			r.reload(t.Context(), &conf.Configuration{}, nil, tc.err)
			if diff := cmp.Diff(tc.calls, scheduler.noted()); diff != "" {
				t.Errorf("calls of the scheduler (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.event, <-recorder.Events); diff != "" {
				t.Errorf("event (-want +got):\n%s", diff)
			}
			err := testutil.GatherAndCompare(registry, strings.NewReader(header+tc.metrics+"\n"),
				"batch_scheduler_config_last_success_timestamp_seconds", "batch_scheduler_config_reloads_total")
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestSelfReference(t *testing.T) {
	for name, tc := range map[string]struct {
		given map[string]string
		want  string
	}{
		"the pod of the downward API": {
			given: map[string]string{"POD_NAME": "p", "POD_NAMESPACE": "n", "POD_UID": "u"},
			want:  "Pod n/p u",
		},
		"the lease outside of a pod": {
			given: map[string]string{"POD_NAME": "", "POD_NAMESPACE": ""},
			want:  "Lease batch-scheduler-system/batch-scheduler ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			for key, value := range tc.given {
				t.Setenv(key, value)
			}
			ref := selfReference(NewOptions())
			if got := ref.Kind + " " + ref.Namespace + "/" + ref.Name + " " + string(ref.UID); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestShorten(t *testing.T) {
	for name, tc := range map[string]struct {
		given string
		want  string
	}{
		"a text that fits stays":      {given: "12345678", want: "12345678"},
		"a longer text is cut":        {given: "123456789", want: "12345..."},
		"no character is cut in half": {given: "1234ööö", want: "1234..."},
	} {
		t.Run(name, func(t *testing.T) {
			if got := shorten(tc.given, 8); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
