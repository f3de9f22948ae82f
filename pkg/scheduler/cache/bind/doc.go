// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package bind sends the binds that the scheduler commits to the API server.
//
// The unit of work is a Unit: the binds of one committed statement, mostly those of a gang. Each
// unit passes through these steps:
//
//		Enqueue ──> prepare ──> send ──> done
//		               │          │ error
//		               │          └──> verify ──> done, BindFailed or PodVanished
//		               └──> JobBackoff, later JobRequeued
//
//	 1. Enqueue takes the unit over and returns at once.
//	 2. prepare, only for units with external reservations: the volumes and devices of all pods are
//	    bound before the first pod is. If one fails, no pod of the unit is bound.
//	 3. send: a fixed number of workers sends the binds, unit after unit, in the order of the
//	    commits. Once the first bind of a unit is sent, all are, also while the scheduler stops.
//	 4. verify, only for binds that returned an error: an error does not prove that the bind has no
//	    effect, so the binder reads the pod until it knows.
//
// The binder reports failures to its Handler. It does not report success: the watch shows it.
package bind
