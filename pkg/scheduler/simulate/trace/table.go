// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// table is a file of comma-separated values without quotes. Its first line names the columns.
type table struct {
	*lines
	columns map[string]int
	cells   []string // of the current row
	again   string   // the first line, if it is a row
}

// readHeader reads the first line, which must have the required columns. Other columns are ignored.
func readHeader(l *lines, required ...string) (*table, error) {
	t, err := readColumns(l, nil)
	if err != nil {
		return nil, err
	}
	return t, t.require(required...)
}

// readColumns reads the first line, which has the names of the columns. If it has numbers instead, the file has the usual
// columns and no header.
func readColumns(l *lines, usual []string) (*table, error) {
	line, ok := l.next()
	if !ok {
		if err := l.err(); err != nil {
			return nil, err
		}
		return nil, l.errorf("the file is empty")
	}
	t := &table{lines: l, columns: map[string]int{}}
	names := strings.Split(strings.TrimSpace(line), ",")
	isNumber := func(cell string) bool { _, err := strconv.ParseFloat(cell, 64); return err == nil }
	if len(names) == len(usual) && slices.ContainsFunc(names, isNumber) {
		names, t.again = usual, line
	}
	for i, name := range names {
		t.columns[name] = i
	}
	return t, nil
}

// require returns an error unless the file has the columns.
func (t *table) require(columns ...string) error {
	for _, name := range columns {
		if _, there := t.columns[name]; there {
			continue
		}
		others := slices.DeleteFunc(slices.Sorted(maps.Keys(t.columns)), func(n string) bool { return slices.Contains(columns, n) })
		if best, ok := api.Closest(name, others); ok {
			return t.errorf("there is no column %q; is it %q?", name, best)
		}
		return t.errorf("there is no column %q", name)
	}
	return nil
}

// row reads the next row, and reports whether there is one.
func (t *table) row() (bool, error) {
	line, ok := t.again, t.again != ""
	if t.again = ""; !ok {
		line, ok = t.next()
	}
	if !ok {
		return false, t.err()
	}
	if t.cells = strings.Split(strings.TrimSpace(line), ","); len(t.cells) != len(t.columns) {
		return false, t.errorf("the first line has %d columns, but this one has %d", len(t.columns), len(t.cells))
	}
	return true, nil
}

func (t *table) text(column string) string { return t.cells[t.columns[column]] }

// number returns a cell that must be a whole number of at least 0; empty is 0.
func (t *table) number(column string) (int64, error) {
	cell := t.text(column)
	if cell == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(cell, 10, 64)
	switch {
	case err != nil:
		return 0, t.errorf("%s: %q is not a whole number", column, cell)
	case n < 0:
		return 0, t.errorf("%s: must not be negative, but is %d", column, n)
	}
	return n, nil
}

// numbers returns several cells.
func (t *table) numbers(columns ...string) (map[string]int64, error) {
	values := map[string]int64{}
	for _, column := range columns {
		var err error
		if values[column], err = t.number(column); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// float returns a cell that must be a number of at least 0; empty is 0.
func (t *table) float(column string) (float64, error) {
	cell := t.text(column)
	if cell == "" {
		return 0, nil
	}
	n, err := strconv.ParseFloat(cell, 64)
	switch {
	case err != nil:
		return 0, t.errorf("%s: %q is not a number", column, cell)
	case !(n >= 0 && n <= longest.Seconds()): // also NaN; no cell is larger than a time
		return 0, t.errorf("%s: must not be negative or more than %v, but is %v", column, longest.Seconds(), n)
	}
	return n, nil
}

// nodes returns a node for each row.
func (t *table) nodes(ofRow func() (*v1.Node, error)) ([]*v1.Node, error) {
	var nodes []*v1.Node
	for {
		more, err := t.row()
		if err != nil || !more {
			return slices.Clip(nodes), err
		}
		node, err := ofRow()
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, node)
	}
}
