// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package evict carries out the eviction plans that the scheduler commits.
//
// A Plan is the evictions of one committed statement: it frees resources for one preemptor, and is
// of no use in part. Plans are executed at the same time; together they have a fixed number of
// requests in flight, because the API server may need 0.1 s for an eviction, but serves many at
// the same time. Each plan is executed in these steps:
//
//  1. Validate. All evictions of the plan are sent as dry runs. A dry run shows only that a
//     disruption budget allows one eviction, so the budgets of several victims are read. If
//     anything refuses an eviction, none of the plan is made.
//  2. Evict the victims that disruption budgets cover. The evictions that concern one budget are
//     sent one after the other, also those of several plans: at the same time they would conflict.
//     They come first because they are refused most likely.
//  3. Evict the others: of each job one victim, and when that is certain all the rest of the job.
//  4. Back-off. A victim whose eviction was refused is excluded from plans for a while, longer
//     after each refusal: 2 s, 4 s, up to 64 s.
//
// Before a job loses its first pod, the evictor checks that no eviction of the plan was refused,
// and that the preemptor still needs the resources, for it may have found another node meanwhile;
// one such check is for several small jobs. A job that has lost a pod loses the others of the plan
// too, also while the evictor stops, so that the plan never evicts a job in part, unless an
// eviction of that very job is refused after all.
//
// For example, a plan evicts a-0, a-1, b-0, b-1 and c-0, and a budget covers a-0 and b-0. The
// evictions are a-0; b-0; a-1, b-1 and c-0 at the same time. If b-0 is refused, a-1 is evicted
// because its job has lost a-0, and b-1 and c-0 stay.
//
// The evictor reports victims that stay to its Handler. It does not report those that were
// evicted: the watch shows them.
package evict
