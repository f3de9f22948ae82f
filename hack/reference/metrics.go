// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/metrics"
)

const introduction = "# Metrics\n\n" +
	"All metrics that the scheduler serves on `/metrics`. `make generate` writes this page from the code.\n" +
	"[Monitoring](monitoring.md) explains how to collect them, and has a dashboard and alerts.\n\n" +
	"Durations are in seconds, cpu is in cores, memory in bytes; everything else is a count. When a queue is deleted, its\n" +
	"series are deleted too. Only the leader has series of queues and PodGroups. The scheduler also serves the usual\n" +
	"`go_*` and `process_*` metrics of Go programs.\n" +
	"The stability level ALPHA means that names and labels may change in any release.\n"

func writeMetrics() {
	fmt.Print(introduction + "\n")
	fmt.Println("| Metric | Type | Stability | Labels | Meaning |")
	fmt.Println("|---|---|---|---|---|")
	for _, d := range metrics.Descriptions() {
		fmt.Printf("| `%s` | %s | %s | %s | %s |\n", d.Name, d.Type, d.Stability, labels(d.Labels), d.Help)
	}
}

// labels returns a cell of the table.
func labels(list []metrics.Label) string {
	var cells []string
	for _, l := range list {
		meaning := l.Meaning
		if len(l.Values) > 0 {
			meaning = "`" + strings.Join(l.Values, "`, `") + "`"
		}
		cells = append(cells, fmt.Sprintf("`%s`: %s", l.Name, meaning))
	}
	return strings.Join(cells, "; ")
}
