package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"

	"github.com/batch-scheduler/batch-scheduler/cmd/batch-scheduler/app"
)

// simulating has the command "batch-scheduler simulate" read the world of another benchmark from files, compare
// the built-in policy with one that fills the fullest nodes first, and write the page about it.
func simulating(of benchmark) benchmark {
	return benchmark{
		name: "simulate", about: "two policies compared by batch-scheduler simulate, for " + of.about,
		skip: of.skip, build: of.build, whole: (*fixture).compare,
		cycles: []cycle{{limits: []limit{{name: "compare", most: 10_000}}}},
	}
}

// packing fills the fullest nodes first.
const packing = `actions: allocate
tiers: [{plugins: [{name: gang}, {name: predicates}, {name: nodeorder, arguments: {mostrequested.weight: 1}}]}]
`

// podsBound finds in the page how many pods are bound under each policy.
var podsBound = regexp.MustCompile(`<td>pods bound</td><td class="n">(\d+)</td><td class="n">(\d+)</td>`)

func (w *fixture) compare(ctx context.Context) (cost, error) {
	dir, err := os.MkdirTemp("", "decide-")
	if err != nil {
		return cost{}, err
	}
	defer os.RemoveAll(dir)
	objects, policy := filepath.Join(dir, "objects"), filepath.Join(dir, "packing.yaml")
	if err := w.write(objects); err != nil {
		return cost{}, err
	}
	if err := os.WriteFile(policy, []byte(packing), 0o600); err != nil {
		return cost{}, err
	}
	var page, said bytes.Buffer
	command := app.NewSchedulerCommand()
	command.SetContext(ctx)
	command.SetOut(&page)
	command.SetErr(&said)
	command.SetArgs([]string{"simulate", "--objects", objects, "--compare", policy, "--output", "html"})
	runtime.GC()
	took, code := newCost(), 0
	took.measure("simulate", func() { code = app.Execute(command) })
	if code != 0 {
		return took, fmt.Errorf("simulate: exit code %d: %s", code, said.String())
	}
	bound := podsBound.FindSubmatch(page.Bytes())
	if bound == nil || string(bound[1]) == "0" || string(bound[2]) == "0" {
		return took, fmt.Errorf("simulate tells of no pods that both policies bind: %q", bound)
	}
	return took, nil
}
