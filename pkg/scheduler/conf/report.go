// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"cmp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// report collects what decoding and validation find in one document, and adds the line to it.
type report struct {
	source   string
	top      int                 // the line at which the document starts
	at       map[string]position // of every field and list element of the document, by path
	broken   map[string]bool     // paths of the values that could not be decoded
	problems []Problem
	warnings []Warning
}

// position is the place of a field in the document.
type position struct {
	line   int
	scalar bool
}

func newReport(source string, top int) *report {
	return &report{source: source, top: top, at: map[string]position{}, broken: map[string]bool{}}
}

// found records where a field or a list element is.
func (r *report) found(path *field.Path, line int, value *yaml.Node) {
	r.at[path.String()] = position{line, value.Kind == yaml.ScalarNode}
}

// reject records problems.
func (r *report) reject(errs ...*field.Error) {
	for _, err := range errs {
		path, line := r.locate(err.Field)
		r.problems = append(r.problems, Problem{Line: line, Path: path, Text: err.ErrorBody()})
	}
}

// rejectAt records a problem with another line than that of its field: a duplicate of the field.
func (r *report) rejectAt(line int, err *field.Error) {
	r.problems = append(r.problems, Problem{Line: line, Path: err.Field, Text: err.ErrorBody()})
}

// unusable records a value that could not be decoded. What validation finds there, or below it, is a consequence.
func (r *report) unusable(err *field.Error) {
	r.reject(err)
	r.broken[err.Field] = true
}

// invalid records what validation found.
func (r *report) invalid(errs field.ErrorList) {
	for _, err := range errs {
		if !slices.ContainsFunc(enclosing(err.Field), func(path string) bool { return r.broken[path] }) {
			r.reject(err)
		}
	}
}

func (r *report) warn(path *field.Path, text string) {
	inFile, line := r.locate(path.String())
	r.warnings = append(r.warnings, Warning{Source: r.source, Line: line, Path: inFile, Text: text})
}

// locate returns the path and the line that a message names. A field that the document does not have is on the line of
// the innermost one around it. An element of a list that is written as one string has the path of that string.
func (r *report) locate(path string) (inFile string, line int) {
	if path == noPath {
		return "", r.top
	}
	for _, p := range enclosing(path) {
		if at, found := r.at[p]; found {
			if at.scalar {
				return p, at.line
			}
			return path, at.line
		}
	}
	return path, r.top
}

// noPath is the text of the path of the document itself.
const noPath = "<nil>"

// enclosing returns the path and those of the fields around it, innermost first, the document itself excluded.
func enclosing(path string) []string {
	var paths []string
	for ; path != ""; path = path[:max(0, strings.LastIndexAny(path, ".["))] {
		paths = append(paths, path)
	}
	return paths
}

// err returns all problems in the order of their lines; those of one line stay as they were found. Nil means that there
// is none.
func (r *report) err() error {
	if len(r.problems) == 0 {
		return nil
	}
	slices.SortStableFunc(r.problems, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	return &Error{Source: r.source, Problems: r.problems}
}
