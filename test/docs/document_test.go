// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package docs_test holds the documentation to the program: every command and every YAML text in it is parsed or
// run, and tables of flags, arguments and reasons are compared with what there is.
package docs_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/batch-scheduler/batch-scheduler/cmd/batch-scheduler/app"
	"github.com/batch-scheduler/batch-scheduler/examples/out-of-tree-action/single"
	"github.com/batch-scheduler/batch-scheduler/examples/out-of-tree-gpus/gpucards"
	"github.com/batch-scheduler/batch-scheduler/examples/out-of-tree-plugin/nodelabel"
)

// root is where commands of the documentation are run.
const root = "../.."

// documents are the texts for users.
func documents(t *testing.T) []string {
	t.Helper()
	docs, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(docs) < 2 {
		t.Fatalf("found only %q: %v", docs, err)
	}
	return slices.Concat(docs, tutorials(t), operatorPages(t), []string{filepath.Join(root, "README.md")})
}

// operatorPages are the documents about one operator each.
func operatorPages(t *testing.T) []string {
	t.Helper()
	docs, err := filepath.Glob(filepath.Join(root, "docs", "operators", "*.md"))
	if err != nil || len(docs) == 0 {
		t.Fatalf("found no pages about operators: %v", err)
	}
	return docs
}

func tutorials(t *testing.T) []string {
	t.Helper()
	docs, err := filepath.Glob(filepath.Join(root, "docs", "tutorials", "*.md"))
	if err != nil || len(docs) == 0 {
		t.Fatalf("found no tutorials: %v", err)
	}
	return docs
}

// block is a fenced part of a document.
type block struct {
	path     string
	at       string // file and line
	language string
	text     string
}

func (b block) isOf(path string) bool { return b.path == path }

// blocks returns the fenced parts of all documents.
func blocks(t *testing.T) []block {
	t.Helper()
	var found []block
	for _, path := range documents(t) {
		found = append(found, blocksOf(t, path)...)
	}
	return found
}

func blocksOf(t *testing.T, path string) []block {
	t.Helper()
	var found []block
	var open *block
	for i, line := range lines(t, path) {
		switch fence := strings.HasPrefix(line, "```"); {
		case fence && open == nil:
			open = &block{path: path, at: fmt.Sprintf("%s:%d", filepath.Base(path), i+1), language: line[3:]}
		case fence:
			found = append(found, *open)
			open = nil
		case open != nil:
			open.text += line + "\n"
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			t.Fatalf("%s:%d: a block must not be indented: it would not be looked at", path, i+1)
		}
	}
	if open != nil {
		t.Fatalf("%s: the block is not closed", open.at)
	}
	return found
}

func lines(t *testing.T, path string) []string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(data), "\n")
}

// spans returns the code within the prose of all documents that begins with one of the words.
func spans(t *testing.T, words ...string) []string {
	t.Helper()
	pattern := regexp.MustCompile("`((?:" + strings.Join(words, "|") + ") [^`]+)`")
	var found []string
	for _, path := range documents(t) {
		text := strings.Join(lines(t, path), "\n")
		for _, match := range pattern.FindAllStringSubmatch(text, -1) {
			found = append(found, strings.Join(strings.Fields(match[1]), " "))
		}
	}
	return found
}

// table returns the rows below the header that begins with the given cells, without quotes.
func table(t *testing.T, document string, header ...string) [][]string {
	t.Helper()
	var rows [][]string
	within := false
	for _, line := range lines(t, filepath.Join(root, document)) {
		if !strings.HasPrefix(line, "|") {
			within = false
			continue
		}
		var row []string
		for cell := range strings.SplitSeq(strings.Trim(line, "|"), "|") {
			row = append(row, strings.Trim(strings.TrimSpace(cell), "`"))
		}
		if within && !strings.HasPrefix(row[0], "---") {
			rows = append(rows, row)
		}
		within = within || len(row) >= len(header) && strings.Join(row[:len(header)], "|") == strings.Join(header, "|")
	}
	if len(rows) == 0 {
		t.Fatalf("%s has no table with the header %q", document, header)
	}
	return rows
}

// scheduler runs the command line of the scheduler in this process.
func scheduler(args ...string) (code int, output string) {
	return execute(app.NewSchedulerCommand(), args...)
}

func execute(command *cobra.Command, args ...string) (code int, output string) {
	var out bytes.Buffer
	command.SetOut(&out)
	command.SetErr(&out)
	command.SetArgs(args)
	return app.Execute(command), out.String()
}

// checkPolicy rejects a policy that the scheduler, built with the plugins and the action in examples, would reject.
func checkPolicy(t *testing.T, text string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	command := app.NewSchedulerCommand(
		app.WithPlugin(nodelabel.Name, nodelabel.Spec()), app.WithPlugin(gpucards.Name, gpucards.Spec()), app.WithAction(single.New()))
	if code, output := execute(command, "config", "check", file); code != 0 || strings.Contains(output, "warning") {
		t.Errorf("%s\n%s", text, output)
	}
}
