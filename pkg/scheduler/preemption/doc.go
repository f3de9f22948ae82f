// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package preemption searches for victims: the pods to evict so that a claim fits. An action makes a Planner for a
// session, and calls Plan with a statement, a claim and the Rules of the action.
//
// Plan carries the claim out on the statement, task by task. In short, it first evicts until the task fits, and then
// reprieves in reverse order:
//
//  1. If the task fits on resources that are free or being released, Plan places it there.
//  2. Otherwise each node has a candidate, which is the cheapest victim set of that node. Units are added in the order
//     of the priority of their jobs, surplus pods before whole gangs, young before old, pods with a controller before
//     others of the same age, until the task fits. Then units without which the task still fits are reprieved, the last
//     one added first.
//  3. Plan evicts the candidate with the lowest cost, and places the task on its node. The cost is, in this order: the
//     highest victim priority, gangs broken, pods, running time lost, pods that no controller creates again, the name
//     of the node.
//  4. When all tasks are placed, Plan reprieves each unit without which all of them still fit, the last evicted first.
//     If gangs were broken, it prefers a plan of surplus pods alone whose victims have no higher priority.
//
// For example, two nodes are full. On n1, pod a of priority 1 holds 1 CPU, b of priority 2 holds 2 and c of priority 3
// holds 1. On n2, d of priority 3 holds 4. A preemptor of priority 9 requests 2 CPUs. On n1, the victim set becomes {a}
// with 1 CPU, and then {a, b} with 3 CPUs: the task fits. Without a, 2 CPUs remain, so a is reprieved, and the candidate
// of n1 is {b} with the highest victim priority 2. The candidate of n2 is {d} with the highest victim priority 3. So
// Plan evicts b, and places the preemptor on n1.
//
// A planner keeps candidates in order of cost, and computes again only those whose nodes have changed. Results for a
// claim hold for equivalent claims, and the negative plan cache of the session keeps across sessions that there is no
// plan. docs/design/evictions.md states the reasons.
package preemption
