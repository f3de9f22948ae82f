// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/builtin"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate"
	"github.com/batch-scheduler/batch-scheduler/test/golden"
)

const reclaiming = "testdata/reclaim.yaml"

// policy reads a policy file; an empty path selects the built-in default.
func policy(t *testing.T, path string) simulate.Policy {
	t.Helper()
	registry, err := builtin.NewRegistry()
	if err != nil {
		t.Fatal(err)
	}
	p := simulate.Policy{Name: path, Registry: registry}
	if path == "" {
		p.Name = conf.DefaultSource
		p.Configuration, err = conf.Default(registry.Catalog())
	} else {
		p.Configuration, p.Warnings, err = conf.Load(path, registry.Catalog())
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// snapshot reads the objects of a directory.
func snapshot(t *testing.T, dir string) *simulate.Snapshot {
	t.Helper()
	objects, err := simulate.FromDir(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := simulate.NewSnapshot(objects, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// run simulates a snapshot with a policy.
func run(t *testing.T, s *simulate.Snapshot, path string) *simulate.Result {
	t.Helper()
	result, err := s.Run(t.Context(), policy(t, path), simulate.Options{SchedulerNames: []string{"batch-scheduler"}, DefaultQueue: "default", Cycles: 20})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

type outcome interface {
	WriteText(io.Writer) error
	WriteHTML(io.Writer) error
}

// written returns a result in a format.
func written(t *testing.T, o outcome, format string) string {
	t.Helper()
	var b bytes.Buffer
	var err error
	switch format {
	case "txt":
		err = o.WriteText(&b)
	case "html":
		err = o.WriteHTML(&b)
	case "json":
		encoder := json.NewEncoder(&b)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(o)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestOutput compares the output for one policy and for two with golden files.
func TestOutput(t *testing.T) {
	s := snapshot(t, "testdata/team")
	for name, o := range map[string]outcome{
		"alone":    run(t, s, reclaiming),
		"compared": simulate.Compare(run(t, s, ""), run(t, s, reclaiming)),
	} {
		for _, format := range []string{"txt", "json", "html"} {
			file := filepath.Join("testdata", name+"."+format)
			t.Run(file, func(t *testing.T) {
				golden.Check(t, file, written(t, o, format))
			})
		}
	}
}

// TestTextFitsATerminal ignores lines that are long because of names.
func TestTextFitsATerminal(t *testing.T) {
	for line := range strings.Lines(written(t, run(t, snapshot(t, "testdata/team"), reclaiming), "txt")) {
		if len(strings.TrimSpace(line)) > 80 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
}

// TestOrderDoesNotMatter reads the same objects from files in another order.
func TestOrderDoesNotMatter(t *testing.T) {
	shuffled := t.TempDir()
	files, err := os.ReadDir("testdata/team")
	if err != nil {
		t.Fatal(err)
	}
	for i, file := range files {
		data, err := os.ReadFile(filepath.Join("testdata/team", file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		name := string(rune('z'-i)) + filepath.Ext(file.Name())
		if err := os.WriteFile(filepath.Join(shuffled, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	first := written(t, run(t, snapshot(t, "testdata/team"), reclaiming), "json")
	for name, dir := range map[string]string{"the same files": "testdata/team", "files in another order": shuffled} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(first, written(t, run(t, snapshot(t, dir), reclaiming), "json")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestSnapshotIsNotChanged runs two simulations of one snapshot one after the other.
func TestSnapshotIsNotChanged(t *testing.T) {
	s := snapshot(t, "testdata/team")
	first := written(t, run(t, s, reclaiming), "json")
	if diff := cmp.Diff(first, written(t, run(t, s, reclaiming), "json")); diff != "" {
		t.Error(diff)
	}
}
