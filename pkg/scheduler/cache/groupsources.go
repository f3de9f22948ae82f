// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/cache/groups"
)

// newGroups returns the watcher of the PodGroups of other APIs; nil without a client for them.
func newGroups(c *Cache) *groups.Watcher {
	if c.options.Dynamic == nil {
		return nil
	}
	return groups.New(groups.Options{
		Dynamic: c.options.Dynamic, Discovery: c.options.Kube.Discovery(),
		Handler: handler(c, otherGroupKind()), Failed: func(ctx context.Context, resource string, err error) { groupWatchFailed(ctx, c, resource, err) },
		Clock: c.options.Clock, Log: c.log,
	})
}

// groupWatchFailed records that a list or a watch of groups of another API has failed.
func groupWatchFailed(ctx context.Context, c *Cache, resource string, err error) {
	s := &source{name: resource, log: c.log.WithValues("resource", resource), failures: c.failures, metrics: c.options.Metrics}
	s.failed(ctx, nil, err)
}
