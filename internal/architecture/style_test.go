// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package architecture_test

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// maxTestFileLines is more than the linter allows to other files, because a table of cases is read row by row.
const maxTestFileLines = 800

// coreDirs hold the decisions: they are typed throughout, and the same input gives the same output.
var coreDirs = []string{
	"pkg/scheduler/api/...", "pkg/scheduler/model/...", "pkg/scheduler/nodeindex/...", "pkg/scheduler/framework/...",
	"pkg/scheduler/place/...", "pkg/scheduler/worklist/...", "pkg/scheduler/preemption/...", "pkg/scheduler/subgroups/...", "pkg/scheduler/internal/...",
	"pkg/scheduler/reservation/...", "pkg/scheduler/actions/...", "pkg/scheduler/plugins/...",
}

// edgeDirs are where what libraries pass as any gets its type.
var edgeDirs = []string{"pkg/scheduler/internal/typed"}

// check returns what is wrong with a file, one complaint for each place.
type check func(source) []string

var checks = map[string]check{
	"sizes of tests": checkSize,
	"no any":         checkAny,
}

// TestStyle checks what no linter of .golangci.yaml does.
func TestStyle(t *testing.T) {
	t.Parallel()
	sources := readModule(t)
	for name, check := range checks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, file := range sources {
				if file.isGenerated() {
					continue
				}
				for _, complaint := range check(file) {
					t.Error(complaint)
				}
			}
		})
	}
}

func TestEveryPackageHasOneComment(t *testing.T) {
	t.Parallel()
	for _, complaint := range checkPackageComments(readModule(t)) {
		t.Error(complaint)
	}
}

func checkPackageComments(sources []source) []string {
	comments := map[string][]string{}
	for _, file := range sources {
		if file.isTest() || file.isGenerated() {
			continue
		}
		commented := comments[file.dir()]
		if file.syntax.Doc != nil {
			commented = append(commented, path.Base(file.path))
		}
		comments[file.dir()] = commented
	}
	var complaints []string
	for dir, commented := range comments {
		switch {
		case len(commented) == 0:
			complaints = append(complaints, dir+": no file has a package comment; say what the package is for")
		case len(commented) > 1:
			complaints = append(complaints, fmt.Sprintf("%s: %s each have a package comment; keep one", dir, strings.Join(commented, " and ")))
		}
	}
	slices.Sort(complaints)
	return complaints
}

// checkSize limits the lines of the files of tests.
func checkSize(file source) []string {
	if !file.isTest() || file.lines <= maxTestFileLines {
		return nil
	}
	return []string{fmt.Sprintf("%s: has %d lines, over %d: divide it", file.path, file.lines, maxTestFileLines)}
}

// checkAny refuses any in the core, except as the constraint of a type parameter.
func checkAny(file source) []string {
	if file.isTest() || !withinAny(file.dir(), coreDirs) || withinAny(file.dir(), edgeDirs) {
		return nil
	}
	elsewhere := map[ast.Node]bool{} // constraints, and the names of fields and functions that are called any
	constraints := func(params *ast.FieldList) {
		if params == nil {
			return
		}
		for _, param := range params.List {
			elsewhere[param.Type] = true
		}
	}
	var complaints []string
	ast.Inspect(file.syntax, func(node ast.Node) bool {
		isAny := false
		switch node := node.(type) {
		case *ast.FuncType:
			constraints(node.TypeParams)
		case *ast.TypeSpec:
			constraints(node.TypeParams)
		case *ast.SelectorExpr:
			elsewhere[node.Sel] = true
		case *ast.InterfaceType:
			isAny = len(node.Methods.List) == 0
		case *ast.Ident:
			isAny = node.Name == "any"
		}
		if isAny && !elsewhere[node] {
			complaints = append(complaints, file.at(node, "any: a type says what it is; use a type parameter"))
		}
		return true
	})
	return complaints
}

// lastName is the name of a function or type without its package, "" for anything else.
func lastName(expr ast.Expr) string {
	switch expr := expr.(type) {
	case *ast.Ident:
		return expr.Name
	case *ast.SelectorExpr:
		return expr.Sel.Name
	}
	return ""
}

func TestChecks(t *testing.T) {
	t.Parallel()
	long := func(lines int) string { return strings.Repeat("\n", lines) }
	cases := map[string]struct {
		check string
		path  string
		given string
		want  []string
	}{
		"a long table of cases":     {"sizes of tests", "pkg/a/a_test.go", "package a" + long(800), nil},
		"too long a table of cases": {"sizes of tests", "pkg/a/a_test.go", "package a" + long(801), []string{"pkg/a/a_test.go: has 801 lines, over 800: divide it"}},
		"a long file without tests": {"sizes of tests", "pkg/a/a.go", "package a" + long(801), nil},
		"any":                       {"no any", "pkg/scheduler/api/a.go", "package a\nvar x map[string]any", []string{`pkg/scheduler/api/a.go:2: any: a type says what it is; use a type parameter`}},
		"any in disguise":           {"no any", "pkg/scheduler/api/a.go", "package a\nfunc f(x interface{}) {}", []string{`pkg/scheduler/api/a.go:2: any: a type says what it is; use a type parameter`}},
		"any as a constraint":       {"no any", "pkg/scheduler/api/a.go", "package a\ntype chain[F any] []F\nfunc f[T any](x T) {}", nil},
		"any behind a constraint":   {"no any", "pkg/scheduler/api/a.go", "package a\nfunc f[T any](x T, y any) {}", []string{`pkg/scheduler/api/a.go:2: any: a type says what it is; use a type parameter`}},
		"a func called any":         {"no any", "pkg/scheduler/api/a.go", "package a\nvar x = set.any(1)", nil},
		"any outside the core":      {"no any", "pkg/scheduler/cache/a.go", "package a\nvar x any", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, err := parse(tc.path, []byte(tc.given))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, checks[tc.check](file)); diff != "" {
				t.Errorf("complaints (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCheckPackageComments(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		given map[string]string // path to text
		want  []string
	}{
		"one comment":              {map[string]string{"a/a.go": "// Package a is.\npackage a", "a/b.go": "package a"}, nil},
		"no comment":               {map[string]string{"a/a.go": "package a", "a/a_test.go": "// Package a tests.\npackage a"}, []string{"a: no file has a package comment; say what the package is for"}},
		"two comments":             {map[string]string{"a/a.go": "// Package a is.\npackage a", "a/b.go": "// Package a is too.\npackage a"}, []string{"a: a.go and b.go each have a package comment; keep one"}},
		"a package of tests":       {map[string]string{"a/a_test.go": "package a"}, nil},
		"a package of a generator": {map[string]string{"a/a.go": "// Code generated by x. DO NOT EDIT.\n\npackage a"}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sources []source
			for path, text := range tc.given {
				file, err := parse(path, []byte(text))
				if err != nil {
					t.Fatal(err)
				}
				sources = append(sources, file)
			}
			slices.SortFunc(sources, func(a, b source) int { return strings.Compare(a.path, b.path) })
			if diff := cmp.Diff(tc.want, checkPackageComments(sources)); diff != "" {
				t.Errorf("complaints (-want +got):\n%s", diff)
			}
		})
	}
}
