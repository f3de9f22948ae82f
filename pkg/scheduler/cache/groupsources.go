// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/cache/groups"

// newGroups returns the watcher of the PodGroups of other APIs; nil without a client for them.
func newGroups(c *Cache) *groups.Watcher {
	if c.options.Dynamic == nil {
		return nil
	}
	return groups.New(kindOptions(c, handler(c, otherGroupKind()), "config/groupsources"))
}
