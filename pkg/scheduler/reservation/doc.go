// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package reservation contains the policies that run with every configuration. Each keeps state of its own from session
// to session:
//
//   - nominations: resources that pods were evicted for are kept for the preemptor, and a preemptor whose evictions
//     had no effect evicts again only after a backoff (action nominated);
//   - starvation reservations: resources are kept for gangs that have waited long (action reservation);
//   - degraded gangs: one of the gangs that have lost members is evicted so that another can start (action degraded);
//   - overdue terminations: pods that should have ended long ago do not count as resources that are being released.
//
// A policy learns what statements decide at the extension point Committed, and never looks into another policy. What the
// policies remember is about one model: framework makes new ones when the model is rebuilt. After a restart nominations
// are read from the API server's objects; everything else begins again.
package reservation
