// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package schedtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/test/golden"
)

// Scripts runs every file that matches the pattern as a test.
//
// A script has one command per line, followed by its indented output. Lines that start with # are comments. The flag
// -update rewrites the files for review. The commands are those of the table in commands.go.
func Scripts(t *testing.T, registry func(T) *framework.Registry, pattern string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatalf("no file matches %s", pattern)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			before, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			golden.Check(t, file, play(New(t, registry(t), nil), file, string(before)))
		})
	}
}

const indent = "    "

// play runs a script and returns it with the current output of its commands.
func play(s *Scenario, file, script string) string {
	s.t.Helper()
	var out strings.Builder
	number := 0
	for line := range strings.Lines(script) {
		number++
		line = strings.TrimRight(line, " \t\n")
		if strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t") {
			continue // output of the command above, from the last update
		}
		out.WriteString(line + "\n")
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		command, ok := commands()[words[0]]
		if !ok {
			s.t.Fatalf("%s:%d: there is no command %q", file, number, words[0])
		}
		printed, err := command(s, words[1:])
		if err != nil {
			s.t.Fatalf("%s:%d: %s: %v", file, number, words[0], err)
		}
		for text := range strings.Lines(printed) {
			out.WriteString(indent + strings.TrimRight(text, "\n") + "\n")
		}
	}
	return out.String()
}
