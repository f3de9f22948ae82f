// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package figures collects the results of the programs in test/perf: what was measured, and whether it is within its
// bound. All of them add to one file and print one table.
package figures

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
)

// Figure is one measured value.
type Figure struct {
	Name  string   `json:"name"`
	Value float64  `json:"value"`
	Unit  string   `json:"unit"`
	Bound *float64 `json:"bound"` // nil: no bound
	OK    bool     `json:"ok"`    // within the bound, and the outcome was correct
}

// Add adds figures to the JSON array in a file, which it creates if necessary, and returns all of them. A figure
// replaces an earlier one with the same name.
func Add(file string, list []Figure) ([]Figure, error) {
	all, err := read(file)
	if err != nil {
		return nil, err
	}
	for _, f := range list {
		same := func(other Figure) bool { return other.Name == f.Name }
		if i := slices.IndexFunc(all, same); i >= 0 {
			all[i] = f
		} else {
			all = append(all, f)
		}
	}
	data, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return nil, err
	}
	if err = os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return nil, err
	}
	return all, os.WriteFile(file, append(data, '\n'), 0o644)
}

func read(file string) ([]Figure, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []Figure
	if err = json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	return list, nil
}

// Table prints one figure per line.
func Table(w io.Writer, list []Figure) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "name\tvalue\tunit\tbound\tok")
	for _, f := range list {
		bound, ok := "-", "yes"
		if f.Bound != nil {
			bound = fmt.Sprintf("%g", *f.Bound)
		}
		if !f.OK {
			ok = "NO"
		}
		fmt.Fprintf(table, "%s\t%.2f\t%s\t%s\t%s\n", f.Name, f.Value, f.Unit, bound, ok)
	}
	return table.Flush()
}
