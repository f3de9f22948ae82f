// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package cache connects the model with the API server. It feeds the model with what informers show,
// and hands what cycles decide to the packages below it:
//
//		informers ── handlers ──> eventQueue ── Apply ──> model ──> cycle ── Commit ──> bind, evict
//		    ^                         ^                               └──── Publish ──> status
//		    └── API server            └──────── failed binds and evictions ─────┘
//
//	  - bind sends binds and finds out what became of those that failed;
//	  - evict carries out eviction plans;
//	  - status writes the status of PodGroups, Queues and pods;
//	  - events records Kubernetes events.
//
// The four do not know each other, nor the model. The cache passes each of them the small
// interfaces that it needs.
//
// Handlers only append to the event queue. The model belongs to the scheduling goroutine: it alone
// calls Model, Apply, Rebuild, Commit and Publish, and none of them waits for the API server.
// Everything that waits runs on the goroutines of Run.
package cache
