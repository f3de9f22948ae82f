// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"testing"

	"pgregory.net/rapid"
)

// FuzzModel is TestModelEqualsOneBuiltAfresh, led by what the code covers.
func FuzzModel(f *testing.F) {
	f.Add([]byte("a sequence of events"))
	f.Fuzz(rapid.MakeFuzz(modelEqualsOneBuiltAfresh))
}
