// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package framework is what plugins and actions are written against.
//
// A Session stands for one cycle over the model. Opening it asks every plugin of the
// configuration, in order, to register functions at extension points; actions then read the
// model, ask the extension points, and change the model through a Statement, which is
// committed or undone as a whole. What a committed statement decided goes to Effects. When the
// session closes, everything that was not committed is undone.
//
// Plugins may keep in their fields what lives as long as the configuration. What lives for one
// session belongs into a value made in OnSessionOpen.
//
// A session reports three moments: Opened, when jobs are validated and no action has run; Committed, for each statement
// that is committed; Closed, after the last action. Components are policies that are part of every configuration. They
// take part in sessions as plugins do, may have an action of their own, and are made again for a rebuilt model.
package framework
