// Command evicting is the scheduler with the actions that evict, preempt and reclaim. It is here for
// tests, until they are part of batch-scheduler itself.
package main

import (
	"os"

	"github.com/batch-scheduler/batch-scheduler/cmd/batch-scheduler/app"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/builtin"
)

func main() {
	os.Exit(app.Execute(app.NewSchedulerCommand(app.WithRegistered(builtin.AddEvictions))))
}
