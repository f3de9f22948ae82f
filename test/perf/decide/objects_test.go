package main

import (
	"io"
	"os"
	"testing"
	"time"

	"github.com/batch-scheduler/batch-scheduler/cmd/batch-scheduler/app"
)

// TestTraceIsSimulated reads the trace as objects, and has the command compare two policies on it, in less than ten
// seconds.
func TestTraceIsSimulated(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	const where = "../../../../shared/data"
	if _, err := os.Stat(where); err != nil {
		t.Skipf("the openb trace is not there: %v", err)
	}
	dir := t.TempDir()
	if err := writeTrace(where, dir); err != nil {
		t.Fatal(err)
	}
	packing := t.TempDir() + "/packing.yaml"
	if err := os.WriteFile(packing, []byte("actions: allocate\ntiers: [{plugins: [{name: gang}, {name: predicates}, {name: nodeorder, arguments: {mostrequested.weight: 1}}]}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	command := app.NewSchedulerCommand()
	command.SetOut(io.Discard)
	command.SetErr(os.Stderr)
	command.SetArgs([]string{"simulate", "--objects", dir, "--compare", packing, "--output", "html"})
	began := time.Now()
	if code := app.Execute(command); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("took %s, more than 10 s", took)
	}
}
