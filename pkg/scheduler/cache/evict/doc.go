// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package evict carries out the eviction plans that the scheduler commits.
//
// A Plan is the evictions of one committed statement: it frees resources for one preemptor, and is
// of no use in part. Plans are executed one after the other, each in three steps:
//
//  1. Dry run. All evictions of the plan are sent as dry runs, several at a time. If the API
//     server refuses one, because a disruption budget does not allow it for example, none of the
//     plan is made.
//  2. Evict. Victims are evicted one by one, grouped by job. Before each job the evictor checks
//     that the preemptor still needs the resources, for it may have found another node meanwhile. A
//     job that has lost one pod loses the others of the plan too, so that the plan never evicts a
//     job in part, unless an eviction is refused after all. Then the rest of the plan is dropped.
//  3. Back-off. A victim whose eviction was refused is excluded from plans for a while, longer
//     after each refusal: 2 s, 4 s, up to 64 s.
//
// The evictor reports victims that stay to its Handler. It does not report those that were
// evicted: the watch shows them.
package evict
