// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package framework is what plugins and actions are written against.
//
// A Session is one cycle over the model. When it opens, every plugin of the configuration, in order, registers
// functions at extension points. Actions then read the model, call the extension points, and change the model
// through a Statement, which is committed or undone as a whole. Effects carries out what a committed statement
// decided. When the session closes, everything that was not committed is undone.
//
// Plugins may keep in their fields what lives as long as the configuration. What lives for one
// session belongs into a value made in OnSessionOpen.
//
// A session reports three moments: Opened, when jobs are validated and no action has run; Committed, for each statement
// that is committed; Closed, after the last action. Components are policies that are part of every configuration. They
// take part in sessions as plugins do, may have an action of their own, and are made again for a rebuilt model.
package framework
