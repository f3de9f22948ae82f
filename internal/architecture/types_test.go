// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package architecture_test

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// typeSize measures a type by its methods.
type typeSize struct{ methods, exported, files int }

// maxType is what a type may have. A type that needs more is several things, and cutting its file hides that.
var maxType = typeSize{methods: 40, exported: 25, files: 3}

// largeTypes are the types beyond the limits, with their sizes. The list only shrinks: a type that becomes smaller gets its
// new size, and one that meets the limits, or that no longer exists, is removed from it.
var largeTypes = map[string]typeSize{}

func TestTypesAreSmall(t *testing.T) {
	t.Parallel()
	for _, complaint := range checkTypes(readModule(t), largeTypes) {
		t.Error(complaint)
	}
}

// checkTypes returns the types that are beyond the limits or beyond what is allowed to them, and the entries of the list
// that are out of date.
func checkTypes(sources []source, allowed map[string]typeSize) []string {
	sizes := typeSizes(sources)
	var complaints []string
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		size := sizes[name]
		limit, listed := allowed[name]
		switch {
		case !listed && size.exceeds(maxType):
			complaints = append(complaints, fmt.Sprintf("%s has %s, over %s: divide it by what changes together", name, size, maxType))
		case listed && size.exceeds(limit):
			complaints = append(complaints, fmt.Sprintf("%s has grown to %s from %s: divide it by what changes together", name, size, limit))
		case listed && !size.exceeds(maxType):
			complaints = append(complaints, fmt.Sprintf("%s is within the limits: remove it from largeTypes", name))
		case listed && size != limit:
			complaints = append(complaints, fmt.Sprintf("%s has shrunk to %s from %s: write its new size into largeTypes", name, size, limit))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(allowed)) {
		if _, exists := sizes[name]; !exists {
			complaints = append(complaints, fmt.Sprintf("%s no longer exists: remove it from largeTypes", name))
		}
	}
	return complaints
}

// typeSizes returns the size of each type that has methods, by directory and name.
func typeSizes(sources []source) map[string]typeSize {
	sizes := map[string]typeSize{}
	for _, file := range sources {
		if file.isTest() || file.isGenerated() {
			continue
		}
		here := map[string]bool{}
		for _, decl := range file.syntax.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Recv == nil {
				continue
			}
			name := file.dir() + "." + receiver(fn.Recv.List[0].Type)
			size := sizes[name]
			size.methods++
			if fn.Name.IsExported() {
				size.exported++
			}
			if !here[name] {
				here[name] = true
				size.files++
			}
			sizes[name] = size
		}
	}
	return sizes
}

// receiver returns the name of the type of a receiver, without pointer and type parameters.
func receiver(expr ast.Expr) string {
	switch expr := expr.(type) {
	case *ast.StarExpr:
		return receiver(expr.X)
	case *ast.ParenExpr:
		return receiver(expr.X)
	case *ast.IndexExpr:
		return receiver(expr.X)
	case *ast.IndexListExpr:
		return receiver(expr.X)
	}
	return lastName(expr)
}

func (s typeSize) exceeds(limit typeSize) bool {
	return s.methods > limit.methods || s.exported > limit.exported || s.files > limit.files
}

func (s typeSize) String() string {
	return fmt.Sprintf("%d methods, %d of them exported, in %d files", s.methods, s.exported, s.files)
}

func TestCheckTypes(t *testing.T) {
	t.Parallel()
	four := []string{"type T struct{}; func (T) A() {}", "func (*T) B() {}", "func (t *T) c() {}", "func (t T) d() {}"}
	cases := map[string]struct {
		files   []string
		allowed map[string]typeSize
		want    []string
	}{
		"a type in three files": {files: four[:3]},
		"a type in four files": {
			files: four,
			want:  []string{"pkg/a.T has 4 methods, 2 of them exported, in 4 files, over 40 methods, 25 of them exported, in 3 files: divide it by what changes together"},
		},
		"a listed type": {files: four, allowed: map[string]typeSize{"pkg/a.T": {4, 2, 4}}},
		"a listed type that has grown": {
			files: four, allowed: map[string]typeSize{"pkg/a.T": {3, 2, 4}},
			want: []string{"pkg/a.T has grown to 4 methods, 2 of them exported, in 4 files from 3 methods, 2 of them exported, in 4 files: divide it by what changes together"},
		},
		"a listed type that has shrunk": {
			files: four, allowed: map[string]typeSize{"pkg/a.T": {9, 9, 9}},
			want: []string{"pkg/a.T has shrunk to 4 methods, 2 of them exported, in 4 files from 9 methods, 9 of them exported, in 9 files: write its new size into largeTypes"},
		},
		"a listed type within the limits": {files: four[:1], allowed: map[string]typeSize{"pkg/a.T": {9, 9, 9}}, want: []string{"pkg/a.T is within the limits: remove it from largeTypes"}},
		"a listed type that was removed":  {allowed: map[string]typeSize{"pkg/a.T": {9, 9, 9}}, want: []string{"pkg/a.T no longer exists: remove it from largeTypes"}},
		"a type with type parameters":     {files: []string{"func (t *T[K]) a() {}", "func (t T[K]) b() {}", "func (T[K]) c() {}", "func (T[K]) d() {}"}, allowed: map[string]typeSize{"pkg/a.T": {4, 0, 4}}},
		"two types in one file":           {files: []string{"func (T) a() {}; func (U) a() {}"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sources []source
			for i, text := range tc.files {
				file, err := parse(fmt.Sprintf("pkg/a/%d.go", i), []byte("package a\n"+text))
				if err != nil {
					t.Fatal(err)
				}
				sources = append(sources, file)
			}
			if diff := cmp.Diff(tc.want, checkTypes(sources, tc.allowed)); diff != "" {
				t.Errorf("complaints (-want +got):\n%s", diff)
			}
		})
	}
}
