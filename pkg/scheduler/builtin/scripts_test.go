// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"testing"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// Several cycles, with what happens between them.
func TestScripts(t *testing.T) { schedtest.Scripts(t, schedtest.BuiltIn, "testdata/*.txt") }
