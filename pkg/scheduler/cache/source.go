// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/cache/internal/kindwatch"
)

// source is one informer that feeds the model or that plugins read.
type source struct {
	name     string // the resource, as kubectl names it
	custom   bool   // the resource is defined by this project
	role     string // the directory with the ClusterRole that allows to read it; config/default if empty
	log      logr.Logger
	failures *watchFailures // of all sources
	metrics  Metrics

	synced toolscache.DoneChecker // done when the handler has received every object of the first list

	mu   sync.Mutex
	last string // why the last list or watch failed, with a hint; empty if none did
}

// failed records why a list or watch failed. It is the watch error handler of the informer's
// reflector, which retries by itself, every 30 s at most. Watches that end or expire are normal.
func (s *source) failed(ctx context.Context, _ *toolscache.Reflector, err error) {
	switch {
	case apierrors.IsResourceExpired(err) || apierrors.IsGone(err):
		s.log.V(4).Info("Watch expired", "err", err)
		return
	case errors.Is(err, io.EOF):
		return
	case errors.Is(err, io.ErrUnexpectedEOF):
		s.log.V(1).Info("Watch interrupted", "err", err)
		return
	}
	s.metrics.WatchFailed(s.name, 1)
	text, hint := err.Error(), s.hint(err)
	if hint != "" {
		text += "; " + hint
	}
	s.mu.Lock()
	s.last = text
	s.mu.Unlock()
	s.failures.add(ctx, s.name, err, hint)
}

func (s *source) lastError() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// hint returns what an administrator can do about an error; empty if nothing is known to help.
func (s *source) hint(err error) string {
	switch {
	case apierrors.IsNotFound(err) && s.custom:
		return "the custom resources are not installed: kubectl apply -k config/crd"
	case apierrors.IsForbidden(err):
		if s.role != "" {
			return "the scheduler has no ClusterRole that allows it; pods of these objects wait: kubectl apply -k the directory of the kind in " + s.role
		}
		return "the scheduler's ClusterRole does not allow it, or the API server has just been started and has not read it yet: kubectl apply -k config/default"
	case apierrors.IsUnauthorized(err):
		return "the API server does not accept the credentials: check --kubeconfig or the service account"
	}
	return ""
}

// kindOptions returns the parts of a watcher of kinds that the API server need not serve. The role is that of their sources.
func kindOptions(c *Cache, handler toolscache.ResourceEventHandler, role string) kindwatch.Options {
	return kindwatch.Options{
		Dynamic: c.options.Dynamic, Discovery: c.options.Kube.Discovery(), Handler: handler,
		Failed: func(ctx context.Context, resource string, err error) {
			s := &source{name: resource, role: role, log: c.log.WithValues("resource", resource), failures: c.failures, metrics: c.options.Metrics}
			s.failed(ctx, nil, err)
		},
		Clock: c.options.Clock, Log: c.log,
	}
}
