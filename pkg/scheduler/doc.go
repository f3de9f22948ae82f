// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package scheduler runs the scheduling cycle. This is where to start reading: RunOnce is the cycle
// in five numbered steps.
//
// # The cycle
//
// A cycle applies the events since the last one to the model, opens a session, runs the configured
// actions on it, closes it, and publishes what it found out. A cycle runs when an event could let a
// task be placed, once per period otherwise, and returns early if nothing has changed. One goroutine,
// the scheduling goroutine, runs all cycles and owns the model: the model has no locks and is never
// copied. Nothing in a cycle waits for the API server.
//
// # The packages, from top to bottom
//
//	scheduler     the cycle, and the reports and metrics at its end
//	builtin       the list of plugins and actions
//	simulate      sessions on a copy of a cluster, without effects
//	cache         events in, decisions and reports out; wires the four below
//	  bind          sends binds, and verifies those that failed
//	  evict         carries out eviction plans: dry run, then evictions
//	  status        writes the status of PodGroups, Queues and pods
//	  events        records Kubernetes events
//	  groups        watches the PodGroups of other APIs
//	  owners        watches the objects that make gangs of their pods
//	actions       what a cycle does: allocate, preempt, reclaim, backfill
//	plugins       what decides for them: gang, priority, drf, proportion, predicates, nodeorder
//	reservation   policies that always run: nominations, planned starts, starvation reservations, degraded gangs
//	topology      refuses nodes outside of the topology domain that a gang requires
//	preemption    the search for victims; with place and worklist, what actions are built from
//	place         the best node for a task
//	worklist      the order in which actions take jobs
//	timeline      when gangs could start, and on which nodes, from the ends of running tasks
//	subgroups     which tasks a gang with subgroups needs, and which come next
//	framework     Session, Statement and the extension points between actions and plugins
//	nodeindex     per session: which nodes fit a task, and why the others do not
//	model         the live model: events in, in-flight binds and evictions
//	  grouptree   makes one gang of a tree of groups
//	conf          the policy file
//	metrics       what is measured
//	groupapi      reads and writes the PodGroups of other APIs
//	ownerapi      the rules by which objects of operators make gangs of their pods
//	api           tasks, jobs, nodes, queues, resource vectors, decisions, reasons
//
// Imports run downwards only; a test in internal/architecture holds that. An action or plugin knows
// the session and neither the cache nor other actions and plugins.
//
// # The path of a pod, from event to bind
//
//  1. The transform of the informer trims the pod (cache/trim.go), and its handler adds an event to
//     the queue and wakes the scheduler (cache/informers.go).
//  2. Run waits a few milliseconds for more events, then calls RunOnce.
//  3. Cache.Apply drains the queue and puts the pod into the model as a task of its job
//     (cache/cache.go, model.Events.SetPod).
//  4. Profile.Open lets the plugins register their functions, and validates the jobs.
//  5. The action allocate takes the jobs in the order of the plugins, and places the tasks of each
//     one in a Statement, node by node (actions/allocate). If the gang is complete, it commits the
//     statement, otherwise it rolls the statement back.
//  6. Statement.Commit hands the decisions to the cache. Cache.Commit makes a bind.Unit of them, and
//     the model assumes that the tasks run on their nodes (cache/commit.go).
//  7. The binder sends the binds of the unit on goroutines of its own (cache/bind). If one fails, it
//     finds out whether the pod was bound, and reports a BindFailed event to step 3 if not.
//  8. The watch shows the pod with its node. In the next cycle the model confirms the task.
//
// What keeps a gang pending is written to its conditions and those of its pods (report.go,
// cache/status).
//
// # The path of an eviction, from plan to the bound preemptor
//
//  1. The action preempt or reclaim calls Planner.Plan for the claim of a gang (preemption). The
//     plan is one Statement: the victims, and the placement of the gang on what they free.
//  2. Statement.Commit hands it to the cache and calls the functions at Committed. One of them,
//     in reservation/nomination.go, records which resources belong to the preemptor.
//  3. Cache.Commit makes an evict.Plan of the decisions, and the model marks the victims as
//     releasing (model.Ledger).
//  4. The evictor carries the plan out, at the same time as other plans: a dry run of all evictions,
//     then the evictions (cache/evict). A refusal becomes an EvictionFailed event, as a failed bind does.
//  5. The watch shows that the victims end. The action nominated, which runs first in each session,
//     places the preemptor on the resources that are nominated to it, and binds it when all are free
//     (reservation/nominated.go). From there on it is the path of a pod, step 6.
//
// # Where to look next
//
//   - RunOnce in this package, then actions/allocate, then a plugin such as plugins/gang.
//   - framework.Session for what actions and plugins can ask, framework.Statement for how a decision
//     is tried, undone and committed.
//   - schedtest for how a test describes a cluster and the expected decisions.
//   - CONTRIBUTING.md for the rules of the code, docs/design for the reasons.
package scheduler
