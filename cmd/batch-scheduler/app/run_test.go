// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/metrics"
)

// deadline bounds the duration of a test that fails; passing tests are much faster.
const deadline = 30 * time.Second

const thirdPartyPolicy = "actions: defragment\ntiers: [{plugins: [{name: acme}]}]\n"

// offline returns options of a process without an API server: no election, no requests.
func offline(t *testing.T) *Options {
	t.Helper()
	opts := NewOptions()
	opts.Master = "http://127.0.0.1:1"
	opts.SchedulerConf = file(t, "scheduler.yaml", thirdPartyPolicy)
	opts.LeaderElection.LeaderElect = false
	opts.SecurePort = 0
	return opts
}

// runProgram runs a program with a third-party plugin and action and a fake scheduler.
func runProgram(ctx context.Context, s *fakeScheduler, opts *Options) error {
	return newProgram([]Option{withThirdParty(), withScheduler(s)}).run(ctx, opts)
}

func TestRunStartsSchedulesAndStops(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	opts := offline(t)
	opts.SchedulerNames, opts.DefaultQueue, opts.BindWorkers, opts.SchedulePeriod = []string{"s", "t"}, "q", 7, 3*time.Second
	s := &fakeScheduler{work: func(ctx context.Context) error {
		stop()
		<-ctx.Done()
		return nil
	}}
	if err := runProgram(ctx, s, opts); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"start", "run", "ran"}, s.noted()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	b := s.built
	got := fmt.Sprint(b.SchedulerNames, b.DefaultQueue, b.BindWorkers, b.Period, b.Config.Actions)
	if want := "[st]q73s[defragment]"; strings.ReplaceAll(got, " ", "") != want {
		t.Errorf("the scheduler was made from %s, want %s", got, want)
	}
	if b.Kube == nil || b.Batch == nil || b.Registry == nil || b.Metrics == nil || b.Clock == nil {
		t.Errorf("the scheduler was made from %+v, a field is nil", b)
	}
}

func TestRunFails(t *testing.T) {
	broken := errors.New("broken")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for name, tc := range map[string]struct {
		opts      func(*Options)
		scheduler *fakeScheduler
		want      string // part of the error
	}{
		"when the configuration is invalid": {
			opts: func(o *Options) { o.SchedulerConf = file(t, "f", "actions: x") },
			want: `no such action`,
		},
		"when the port is taken": {
			opts: func(o *Options) {
				o.BindAddress, o.SecurePort = "127.0.0.1", taken.Addr().(*net.TCPAddr).Port
			},
			want: "address already in use",
		},
		"when the scheduler does not start": {
			scheduler: &fakeScheduler{start: func(context.Context) error { return broken }},
			want:      "starting the scheduler: broken",
		},
		"when the scheduler fails": {
			scheduler: &fakeScheduler{work: func(context.Context) error { return broken }},
			want:      "broken",
		},
	} {
		t.Run(name, func(t *testing.T) {
			opts := offline(t)
			if tc.opts != nil {
				tc.opts(opts)
			}
			if tc.scheduler == nil {
				tc.scheduler = &fakeScheduler{}
			}
			err := runProgram(t.Context(), tc.scheduler, opts)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want %s", err, tc.want)
			}
		})
	}
}

func TestStopDuringTheStartIsNoError(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	s := &fakeScheduler{start: func(ctx context.Context) error {
		stop()
		return fmt.Errorf("waiting for informers: %w", ctx.Err())
	}}
	if err := runProgram(ctx, s, offline(t)); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"start"}, s.noted()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestRunServesWhileTheInformersSync(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	opts := offline(t)
	l, err := net.Listen("tcp", "127.0.0.1:0") // a port that is free now
	if err != nil {
		t.Fatal(err)
	}
	opts.BindAddress, opts.SecurePort = "127.0.0.1", l.Addr().(*net.TCPAddr).Port
	l.Close()

	client := &http.Client{Timeout: deadline, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	code := func(path string) int {
		resp, err := client.Get(fmt.Sprintf("https://%s:%d%s", opts.BindAddress, opts.SecurePort, path))
		if err != nil {
			t.Error(err)
			return 0
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	var got []int
	s := &fakeScheduler{
		start: func(context.Context) error {
			got = append(got, code("/healthz"), code("/readyz"), code("/metrics"))
			return nil
		},
		work: func(context.Context) error {
			stop()
			return nil
		},
	}
	if err := runProgram(ctx, s, opts); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]int{200, 503, 401}, got); diff != "" {
		t.Errorf("codes of /healthz, /readyz and /metrics (-want +got):\n%s", diff)
	}
}

func TestRunReloadsTheConfiguration(t *testing.T) {
	ctx, stop := context.WithTimeout(t.Context(), deadline)
	defer stop()
	opts := offline(t)
	changed := make(chan *conf.Configuration, 1)
	s := &fakeScheduler{set: func(c *conf.Configuration) { changed <- c }}
	s.work = func(ctx context.Context) error {
		if err := os.WriteFile(opts.SchedulerConf, []byte("actions: defragment\n"), 0o600); err != nil {
			t.Error(err)
		}
		select {
		case c := <-changed:
			if len(c.Tiers) != 0 {
				t.Errorf("got %v, want the file without tiers", c)
			}
		case <-ctx.Done():
			t.Error("the change was not reloaded")
		}
		stop()
		return nil
	}
	if err := runProgram(ctx, s, opts); err != nil {
		t.Error(err)
	}
}

// stubbornKey in the environment makes this test binary a program whose scheduler prints when it runs and when its
// context ends, and returns only if the value is "stops".
const stubbornKey = "APP_TEST_STUBBORN"

func TestMain(m *testing.M) {
	how, ok := os.LookupEnv(stubbornKey)
	if !ok {
		goleak.VerifyTestMain(m) // no program that has ended leaves a goroutine behind
		return
	}
	s := &fakeScheduler{work: func(ctx context.Context) error {
		fmt.Println("running")
		<-ctx.Done()
		fmt.Println("stopping")
		if how != "stops" {
			select {}
		}
		return nil
	}}
	cmd := NewSchedulerCommand(withThirdParty(), withScheduler(s))
	os.Exit(Execute(cmd))
}

func TestSignals(t *testing.T) {
	for name, tc := range map[string]struct {
		how    string
		first  os.Signal
		second os.Signal // nil: none
		code   int
		stderr string // its last line, empty: any
	}{
		"SIGTERM stops it gracefully": {how: "stops", first: syscall.SIGTERM, code: 0},
		"SIGINT stops it gracefully":  {how: "stops", first: os.Interrupt, code: 0},
		"a second signal ends it at once": {
			how: "hangs", first: syscall.SIGTERM, second: os.Interrupt,
			code: 1, stderr: "error: stopped by a second signal before everything was finished",
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			defer cancel()
			cmd := exec.CommandContext(ctx, os.Args[0], "--leader-elect=false", "--secure-port=0",
				"--master=http://127.0.0.1:1", "--scheduler-conf="+file(t, "scheduler.yaml", thirdPartyPolicy))
			cmd.Env = append(os.Environ(), stubbornKey+"="+tc.how)
			var stderr strings.Builder
			cmd.Stderr = &stderr
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			wantLine := func(want string) {
				t.Helper()
				var got string
				if _, err := fmt.Fscanln(stdout, &got); err != nil || got != want {
					cancel()
					_ = cmd.Wait()
					t.Fatalf("got line %q and error %v, want %q; stderr:\n%s", got, err, want, stderr.String())
				}
			}
			wantLine("running")
			if err := cmd.Process.Signal(tc.first); err != nil {
				t.Fatal(err)
			}
			wantLine("stopping")
			if tc.second != nil {
				if err := cmd.Process.Signal(tc.second); err != nil {
					t.Fatal(err)
				}
			}
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != tc.code {
				t.Errorf("exit code %d, want %d; stderr:\n%s", code, tc.code, stderr.String())
			}
			lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
			if last := lines[len(lines)-1]; tc.stderr != "" && last != tc.stderr {
				t.Errorf("the last line on stderr is %q, want %q", last, tc.stderr)
			}
		})
	}
}

func TestTheLeaderMetricIsSetWhileScheduling(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := metrics.New(registry)
	leads := func() string {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() == "batch_scheduler_leader" {
				return fmt.Sprint(f.GetMetric()[0].GetGauge().GetValue())
			}
		}
		return "nothing"
	}
	values := []string{leads()}
	p := &process{metrics: m, scheduler: &fakeScheduler{work: func(context.Context) error {
		values = append(values, leads())
		return nil
	}}}
	if err := p.lead(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"0", "1", "0"}, append(values, leads())); diff != "" {
		t.Errorf("before, while and after it schedules (-want +got):\n%s", diff)
	}
}
