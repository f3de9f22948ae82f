// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

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

// simulating runs the command "batch-scheduler simulate" on the objects of another benchmark, compares the built-in
// policy with one that prefers the fullest nodes, and writes the HTML page.
func simulating(of benchmark) benchmark {
	return benchmark{
		name: "simulate", about: "two policies compared by batch-scheduler simulate, for " + of.about,
		skip: of.skip, build: of.build, whole: compare,
		cycles: []cycle{{limits: []limit{{name: "compare", most: 10_000}}}},
	}
}

// packing prefers the fullest nodes.
const packing = `actions: allocate
tiers: [{plugins: [{name: gang}, {name: predicates}, {name: nodeorder, arguments: {mostrequested.weight: 1}}]}]
`

// podsBound matches the number of bound pods of each policy in the page.
var podsBound = regexp.MustCompile(`<td class="name">pods bound</td><td class="n">(\d+)</td><td class="n">(\d+)</td>`)

// compare measures the command on the objects of a fixture.
func compare(ctx context.Context, w *fixture) (cost, error) {
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
		return took, fmt.Errorf("the page of simulate has no pods that both policies bind: %q", bound)
	}
	return took, nil
}
