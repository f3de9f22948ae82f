// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package architecture_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/batch-scheduler/batch-scheduler"

// source is one Go file of the module.
type source struct {
	path   string // from the root of the module, with slashes
	lines  int
	syntax *ast.File
	fset   *token.FileSet
}

// dir is the directory, which within a module is the package.
func (s source) dir() string { return path.Dir(s.path) }

// isTest says that the file is only compiled for tests.
func (s source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

// hasBuildLine reports whether a line above the package clause is exactly this build constraint.
func (s source) hasBuildLine(line string) bool {
	for _, group := range s.syntax.Comments {
		for _, comment := range group.List {
			if comment.Pos() < s.syntax.Package && comment.Text == line {
				return true
			}
		}
	}
	return false
}

// isGenerated says that a generator wrote the file, so that style rules do not apply.
func (s source) isGenerated() bool { return ast.IsGenerated(s.syntax) }

// at words a complaint about a place in the file.
func (s source) at(place ast.Node, format string, args ...any) string {
	return fmt.Sprintf("%s:%d: %s", s.path, s.fset.Position(place.Pos()).Line, fmt.Sprintf(format, args...))
}

// parse reads one file.
func parse(name string, text []byte) (source, error) {
	fset := token.NewFileSet()
	syntax, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return source{}, err
	}
	return source{path: name, lines: strings.Count(string(text), "\n"), syntax: syntax, fset: fset}, nil
}

// readModule reads all Go files of the module, in the order of their paths.
func readModule(t *testing.T) []source {
	t.Helper()
	root := moduleRoot(t)
	var sources []source
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if file != root && notOurs(entry.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(file, ".go") {
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		parsed, err := parse(filepath.ToSlash(relative), text)
		sources = append(sources, parsed)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sources
}

// notOurs says that a directory holds no source code of the module: what is built goes to bin and _artifacts.
func notOurs(name string) bool {
	return name == "bin" || name == "testdata" || name == "vendor" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")
}

func moduleRoot(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		t.Fatal(err)
	}
	return root
}

// within says that the directory is the pattern, or below it if the pattern ends in "/...".
func within(dir, pattern string) bool {
	tree, isTree := strings.CutSuffix(pattern, "/...")
	return dir == tree || isTree && strings.HasPrefix(dir, tree+"/")
}

func withinAny(dir string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return within(dir, pattern) })
}
