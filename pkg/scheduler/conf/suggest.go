// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"fmt"
	"slices"
	"strings"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// suggest returns the closest known name, or all known names if none is close. The kind is the plural noun for the
// names.
func suggest(name, kind string, known []string) string {
	if best, ok := api.Closest(name, known); ok {
		return fmt.Sprintf("did you mean %q?", best)
	}
	if len(known) == 0 {
		return "there are no " + kind
	}
	return fmt.Sprintf("known %s: %s", kind, strings.Join(slices.Sorted(slices.Values(known)), ", "))
}
