// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"time"

	"k8s.io/utils/clock"
)

// epoch is the time at which traces begin. Objects need a date.
var epoch = time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC) //nolint:gochecknoglobals // a constant of a struct type

// virtual is a clock that stands still until it is set.
type virtual struct {
	at time.Duration // since epoch
}

var _ clock.PassiveClock = &virtual{}

// Now implements clock.PassiveClock.
func (c *virtual) Now() time.Time { return epoch.Add(c.at) }

// Since implements clock.PassiveClock.
func (c *virtual) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
