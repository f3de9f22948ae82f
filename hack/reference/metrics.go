package main

import (
	"fmt"
	"strings"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/metrics"
)

const introduction = "# Metrics\n\n" +
	"All that the scheduler serves on `/metrics`, as `make generate` finds it in the code. How to collect it, with\n" +
	"dashboard and alerts, is in [monitoring](monitoring.md). Times are in seconds; cpu is in cores, memory in bytes, all\n" +
	"else a count. A queue that is deleted leaves no series behind. What is told about queues and groups comes from\n" +
	"the replica that leads. Beside these there are the usual `go_*` and `process_*` of Go programs.\n"

func writeMetrics() {
	fmt.Print(introduction + "\n")
	fmt.Println("| Metric | Type | Labels | Meaning |")
	fmt.Println("|---|---|---|---|")
	for _, d := range metrics.Descriptions() {
		fmt.Printf("| `%s` | %s | %s | %s |\n", d.Name, d.Type, labels(d.Labels), d.Help)
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
