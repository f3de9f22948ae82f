package main

import (
	"fmt"
	"strings"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/metrics"
)

const introduction = "# Metrics\n\n" +
	"The metrics that the scheduler serves on `/metrics`. `make generate` writes this page from the code. How to collect\n" +
	"them, with a dashboard and alerts, is in [monitoring](monitoring.md). Times are in seconds, cpu in cores, memory in\n" +
	"bytes; all else is a count. A deleted queue leaves no series behind. Only the leader reports queues and PodGroups.\n" +
	"The scheduler also serves the usual `go_*` and `process_*` metrics of Go programs. The stability level ALPHA means\n" +
	"that names and labels may change in any release.\n"

func writeMetrics() {
	fmt.Print(introduction + "\n")
	fmt.Println("| Metric | Type | Stability | Labels | Meaning |")
	fmt.Println("|---|---|---|---|---|")
	for _, d := range metrics.Descriptions() {
		fmt.Printf("| `%s` | %s | %s | %s | %s |\n", d.Name, d.Type, d.Stability, labels(d.Labels), d.Help)
	}
}

// labels is a cell of the table.
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
