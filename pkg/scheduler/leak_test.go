// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain fails if a scheduler that was stopped leaves a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
