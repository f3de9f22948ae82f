// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package audit proves properties of the model and of plans in tests, and in builds with the tag "invariants": no
// other build contains it. Model is the dumb twin of package model: it shares no code with the functions that move the sums, and
// recomputes everything. Plan proves that a statement with evictions raises a potential. Dump writes a model as text for comparison.
package audit
