// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package timeline computes when gangs could start, and on which nodes, from when running tasks end.
//
// A Plan has starts: gangs with a time and with nodes. Nodes are chosen in the order of time, as if the plan were
// carried out. At the time of a start, the resources of a node are what is free now, and what tasks release until then,
// less what starts at that time or before have taken and not released. Nothing else starts, so what is free between two
// starts only grows, and one look at the time of a start is enough. If a gang is added whose start comes before others,
// the nodes of those are chosen again; it is added only where all of them keep their times.
//
// Of the resources that are free by the time of a start, it takes those that become free last, so that other jobs can
// use the others for as long as possible.
//
// Readings keep from session to session when more becomes free on each node, and since when how many tasks of a signature
// fit, until the node or the end of one of its tasks changes.
package timeline
