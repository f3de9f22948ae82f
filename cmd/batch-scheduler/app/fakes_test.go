// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

// fakeScheduler replaces the scheduler, which has its own tests, and records the calls.
type fakeScheduler struct {
	mu     sync.Mutex
	calls  []string
	synced bool

	sick   error                       // what Healthy returns
	reject error                       // what SetConfiguration returns
	work   func(context.Context) error // what Run does; nil: block until the context ends
	built  scheduler.Options           // what it was made from
	set    func(*conf.Configuration)   // called by SetConfiguration, unless nil
	start  func(context.Context) error // what Start does, unless nil
}

func (s *fakeScheduler) note(call string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, call)
}

func (s *fakeScheduler) noted() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.calls...)
}

func (s *fakeScheduler) Start(ctx context.Context) error {
	s.note("start")
	if s.start != nil {
		return s.start(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.synced = true
	return nil
}

func (s *fakeScheduler) Run(ctx context.Context) error {
	s.note("run")
	defer s.note("ran")
	if s.work != nil {
		return s.work(ctx)
	}
	<-ctx.Done()
	return nil
}

func (s *fakeScheduler) SetConfiguration(_ context.Context, c *conf.Configuration) error {
	s.note("configure")
	if s.set != nil {
		s.set(c)
	}
	return s.reject
}

func (s *fakeScheduler) Synced() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.synced
}

func (s *fakeScheduler) Healthy() error {
	return s.sick
}

// withScheduler runs a fake in place of the scheduler.
func withScheduler(s *fakeScheduler) Option {
	return func(p *program) {
		p.newScheduler = func(built scheduler.Options) (Scheduler, error) {
			s.built = built
			return s, nil
		}
	}
}

// withThirdParty adds a plugin and an action that do nothing.
func withThirdParty() Option {
	return func(p *program) {
		WithPlugin("acme", framework.PluginSpec{New: func(*conf.Decoder, framework.Handle) (framework.Plugin, error) {
			return fakePlugin{}, nil
		}})(p)
		WithAction(fakeAction{})(p)
	}
}

type fakePlugin struct{}

func (fakePlugin) Name() string                      { return "acme" }
func (fakePlugin) OnSessionOpen(*framework.Session)  {}
func (fakePlugin) OnSessionClose(*framework.Session) {}

type fakeAction struct{}

func (fakeAction) Name() string                                      { return "defragment" }
func (fakeAction) Execute(context.Context, *framework.Session) error { return nil }

// file writes a file, which the end of the test deletes, and returns its path.
func file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
