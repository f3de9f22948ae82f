// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package schedtest

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

const (
	schedulerName = "batch-scheduler"
	defaultQueue  = "default"
)

// T is the part of a test that a Scenario needs; *testing.T and *rapid.T implement it.
type T interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Context() context.Context
}

// Scenario is a fake API server for a scheduler without clients. It has its objects and their changes, and adds what
// belongs to the scheduler: cycles, and binds and evictions in flight. It is not safe for concurrent use.
type Scenario struct {
	changes
	replicas replicas

	inFlight          []Bind             // decided, without a result yet
	deletedPods       map[string]*v1.Pod // deleted pods, by the name in tests
	evictionsInFlight []string           // pods whose eviction is decided, without a result yet
	last              *cycle
	skipConvergence   bool
}

// Option changes how a Scenario schedules.
type Option func(*settings)

type settings struct {
	config          string
	seed            int64
	skipConvergence bool
	log             logr.Logger
	dialects        func(title string) *Dialect
}

// WithConfig replaces the built-in configuration by a policy in YAML.
func WithConfig(yaml string) Option { return func(s *settings) { s.config = yaml } }

// WithShuffleSeed sets the seed for the order in which the second model receives the objects.
func WithShuffleSeed(seed int64) Option { return func(s *settings) { s.seed = seed } }

// WithoutConvergenceChecks disables the checks that each plan contributes to convergence, for tests of what happens without.
func WithoutConvergenceChecks() Option { return func(s *settings) { s.skipConvergence = true } }

// WithLog sets the log of the sessions of the first model. Other models log nothing.
func WithLog(log logr.Logger) Option { return func(s *settings) { s.log = log } }

// New creates a cluster from the rows, scheduled by the plugins and actions of the registry. The built-in
// configuration applies unless an option changes it. Invalid rows or options fail the test.
func New(t T, registry *framework.Registry, given []Row, options ...Option) *Scenario {
	t.Helper()
	set := settings{config: conf.DefaultYAML(), seed: 1, log: logr.Discard()}
	for _, option := range options {
		option(&set)
	}
	policy, _, err := conf.Parse("the configuration of the test", []byte(set.config), registry.Catalog())
	if err != nil {
		t.Fatal(err)
	}
	s := &Scenario{deletedPods: map[string]*v1.Pod{}, skipConvergence: set.skipConvergence}
	s.objects = newObjects(t, func(e event) { s.replicas.enqueue(e) })
	s.dialects = set.dialects
	cluster := model.Options{SchedulerNames: []string{schedulerName}, DefaultQueue: defaultQueue}
	if s.dialects != nil {
		cluster.GroupSources = api.AllGroupSources()
	}
	s.replicas = newReplicas(t, registry, policy, framework.Handle{Informers: s.informers, Clock: s.clock, GangGrace: time.Minute}, cluster, set.seed)
	s.replicas.ordered.log = set.log
	s.setNamespace(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})
	s.Add(given...)
	return s
}

// Run runs one cycle over the rows and returns the transcript.
func Run(t T, registry *framework.Registry, given []Row, options ...Option) string {
	t.Helper()
	return New(t, registry, given, options...).Cycle()
}

// Add declares more rows for the next cycle.
func (s *Scenario) Add(rows ...Row) {
	s.t.Helper()
	for _, row := range rows {
		row(s)
	}
}
