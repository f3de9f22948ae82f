// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !invariants

package scheduler

import (
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

// auditModel and planAudits do nothing without the build tag invariants.
func auditModel(*model.Cluster) {}

func planAudits() []framework.WatchFn { return nil }
