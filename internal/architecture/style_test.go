package architecture_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What the checks measure by. A test file may be longer, because a table of cases is read row by row.
const (
	maxFileLines     = 400
	maxTestFileLines = 800
	maxFuncLines     = 60
	hardFuncLines    = 100
)

// coreDirs hold the decisions: they are typed throughout, and the same input gives the same output.
var coreDirs = []string{"pkg/scheduler/api/...", "pkg/scheduler/framework/...", "pkg/scheduler/actions/...", "pkg/scheduler/plugins/..."}

// check returns what is wrong with a file, one complaint for each place.
type check func(source) []string

var checks = map[string]check{
	"sizes":             checkSizes,
	"names":             checkName,
	"no any":            checkAny,
	"no clock":          checkClock,
	"no init":           checkInit,
	"no mutable global": checkVariables,
}

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

// checkSizes lets a file or function be larger than usual if a comment with "size: " says why.
func checkSizes(file source) []string {
	var complaints []string
	limit := maxFileLines
	if file.isTest() {
		limit = maxTestFileLines
	}
	if file.lines > limit && !slices.ContainsFunc(file.syntax.Comments, func(comment *ast.CommentGroup) bool {
		return comment.Pos() < file.syntax.Name.End() && hasNote(comment, "size")
	}) {
		complaints = append(complaints, fmt.Sprintf("%s: has %d lines, over %d: split it, or say why not in \"// size: reason\" above the package clause", file.path, file.lines, limit))
	}
	if file.isTest() {
		return complaints
	}
	for _, decl := range file.syntax.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		switch lines := file.height(fn); {
		case lines > hardFuncLines:
			complaints = append(complaints, file.at(fn.Name, "%s has %d lines, over %d: split it", fn.Name.Name, lines, hardFuncLines))
		case lines > maxFuncLines && !hasNote(fn.Doc, "size"):
			complaints = append(complaints, file.at(fn.Name, "%s has %d lines, over %d: split it, or say why not in \"// size: reason\" in its comment", fn.Name.Name, lines, maxFuncLines))
		}
	}
	return complaints
}

// checkName refuses package names that say nothing.
func checkName(file source) []string {
	name := strings.TrimSuffix(file.syntax.Name.Name, "_test")
	if slices.Contains([]string{"util", "utils", "common", "helper", "helpers", "misc", "base", "shared"}, name) || strings.Contains(name, "_") {
		return []string{file.at(file.syntax.Name, "package %s: a package is named by a noun for what it holds", name)}
	}
	return nil
}

// checkAny refuses any in the core, except as the constraint of a type parameter.
func checkAny(file source) []string {
	if file.isTest() || !withinAny(file.dir(), coreDirs) {
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

// checkClock refuses the time of day and chance in the core.
func checkClock(file source) []string {
	if file.isTest() || !withinAny(file.dir(), coreDirs) {
		return nil
	}
	var complaints []string
	for _, spec := range file.syntax.Imports {
		if imported := importedDir(spec); within(imported, "math/rand/...") {
			complaints = append(complaints, file.at(spec, "imports %s: the same cluster gives the same decisions", imported))
		}
	}
	clock := []string{"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until"}
	ast.Inspect(file.syntax, func(node ast.Node) bool {
		selector, ok := node.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if pkg, ok := selector.X.(*ast.Ident); ok && pkg.Name == "time" && slices.Contains(clock, selector.Sel.Name) {
			complaints = append(complaints, file.at(selector, "time.%s: the session knows the time of its cycle", selector.Sel.Name))
		}
		return true
	})
	return complaints
}

// checkInit refuses func init: main wires everything, in sight.
func checkInit(file source) []string {
	var complaints []string
	for _, decl := range file.syntax.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
			complaints = append(complaints, file.at(fn, "func init: main wires everything; call a function from there"))
		}
	}
	return complaints
}

// checkVariables refuses variables of a package, except those that nobody writes: errors, patterns, reasons,
// embedded files, arrays of the package's own such as the names of its constants, and what a comment with
// "immutable: " vouches for.
func checkVariables(file source) []string {
	if file.isTest() {
		return nil
	}
	var complaints []string
	for _, decl := range file.syntax.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.VAR || hasNote(gen.Doc, "immutable") || hasDirective(gen.Doc, "//go:embed") {
			continue
		}
		for _, spec := range gen.Specs {
			if value, ok := spec.(*ast.ValueSpec); ok && !neverWritten(value) {
				complaints = append(complaints, file.at(value, "var %s: state of a package is shared by all; put it into a struct, or vouch for it with \"// immutable: reason\"", value.Names[0].Name))
			}
		}
	}
	return complaints
}

func neverWritten(spec *ast.ValueSpec) bool {
	if spec.Names[0].Name == "_" || hasNote(spec.Doc, "immutable") || hasDirective(spec.Doc, "//go:embed") {
		return true
	}
	return len(spec.Values) > 0 && !slices.ContainsFunc(spec.Values, func(value ast.Expr) bool {
		return !isConstant(value) && !(isArray(value) && !spec.Names[0].IsExported())
	})
}

func isArray(value ast.Expr) bool {
	literal, ok := value.(*ast.CompositeLit)
	if !ok {
		return false
	}
	array, ok := literal.Type.(*ast.ArrayType)
	return ok && array.Len != nil
}

// isConstant knows the calls and literals that make what is written only once.
func isConstant(value ast.Expr) bool {
	switch value := value.(type) {
	case *ast.CallExpr:
		made := lastName(value.Fun)
		return slices.Contains([]string{"errors.New", "fmt.Errorf", "regexp.MustCompile"}, qualified(value.Fun)) || strings.HasSuffix(made, "Unfit")
	case *ast.UnaryExpr:
		literal, ok := value.X.(*ast.CompositeLit)
		return ok && value.Op == token.AND && lastName(literal.Type) == "Unfit"
	}
	return false
}

// qualified is the name of a function with its package, "" for anything else.
func qualified(fn ast.Expr) string {
	if selector, ok := fn.(*ast.SelectorExpr); ok {
		if pkg, ok := selector.X.(*ast.Ident); ok {
			return pkg.Name + "." + selector.Sel.Name
		}
	}
	return ""
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

// hasNote says that the comment has a line "note: reason".
func hasNote(comment *ast.CommentGroup, note string) bool {
	if comment == nil {
		return false
	}
	for line := range strings.Lines(comment.Text()) {
		reason, found := strings.CutPrefix(strings.TrimSpace(line), note+": ")
		if found && reason != "" {
			return true
		}
	}
	return false
}

func hasDirective(comment *ast.CommentGroup, directive string) bool {
	return comment != nil && slices.ContainsFunc(comment.List, func(line *ast.Comment) bool {
		return strings.HasPrefix(line.Text, directive)
	})
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
		"a long file":                 {"sizes", "pkg/a/a.go", "package a" + long(401), []string{`pkg/a/a.go: has 401 lines, over 400: split it, or say why not in "// size: reason" above the package clause`}},
		"a long file with a reason":   {"sizes", "pkg/a/a.go", "// size: one table\n\npackage a" + long(401), nil},
		"a long file with no reason":  {"sizes", "pkg/a/a.go", "// size:\n\npackage a" + long(401), []string{`pkg/a/a.go: has 403 lines, over 400: split it, or say why not in "// size: reason" above the package clause`}},
		"a long table of cases":       {"sizes", "pkg/a/a_test.go", "package a" + long(401), nil},
		"a long func":                 {"sizes", "pkg/a/a.go", "package a\nfunc f() {" + long(60) + "}", []string{`pkg/a/a.go:2: f has 61 lines, over 60: split it, or say why not in "// size: reason" in its comment`}},
		"a func of the right size":    {"sizes", "pkg/a/a.go", "package a\nfunc f() {" + long(59) + "}", nil},
		"a long func with a reason":   {"sizes", "pkg/a/a.go", "package a\n// size: one switch\nfunc f() {" + long(60) + "}", nil},
		"too long a func":             {"sizes", "pkg/a/a.go", "package a\n// size: no reason is enough\nfunc f() {" + long(100) + "}", []string{`pkg/a/a.go:3: f has 101 lines, over 100: split it`}},
		"a package of everything":     {"names", "pkg/util/a.go", "package util", []string{`pkg/util/a.go:1: package util: a package is named by a noun for what it holds`}},
		"a test outside its package":  {"names", "pkg/a/a_test.go", "package a_test", nil},
		"any":                         {"no any", "pkg/scheduler/api/a.go", "package a\nvar x map[string]any", []string{`pkg/scheduler/api/a.go:2: any: a type says what it is; use a type parameter`}},
		"any in disguise":             {"no any", "pkg/scheduler/api/a.go", "package a\nfunc f(x interface{}) {}", []string{`pkg/scheduler/api/a.go:2: any: a type says what it is; use a type parameter`}},
		"any as a constraint":         {"no any", "pkg/scheduler/api/a.go", "package a\ntype chain[F any] []F\nfunc f[T any](x T) {}", nil},
		"any behind a constraint":     {"no any", "pkg/scheduler/api/a.go", "package a\nfunc f[T any](x T, y any) {}", []string{`pkg/scheduler/api/a.go:2: any: a type says what it is; use a type parameter`}},
		"a func called any":           {"no any", "pkg/scheduler/api/a.go", "package a\nvar x = set.any(1)", nil},
		"any outside the core":        {"no any", "pkg/scheduler/cache/a.go", "package a\nvar x any", nil},
		"the time":                    {"no clock", "pkg/scheduler/plugins/gang/a.go", "package a\nvar x = time.Now()", []string{`pkg/scheduler/plugins/gang/a.go:2: time.Now: the session knows the time of its cycle`}},
		"a length of time":            {"no clock", "pkg/scheduler/plugins/gang/a.go", "package a\nconst x = 5 * time.Second", nil},
		"chance":                      {"no clock", "pkg/scheduler/actions/allocate/a.go", "package a\nimport \"math/rand/v2\"", []string{`pkg/scheduler/actions/allocate/a.go:2: imports math/rand/v2: the same cluster gives the same decisions`}},
		"func init":                   {"no init", "cmd/a/a.go", "package a\nfunc init() {}", []string{`cmd/a/a.go:2: func init: main wires everything; call a function from there`}},
		"a method called init":        {"no init", "cmd/a/a.go", "package a\nfunc (t) init() {}", nil},
		"a variable":                  {"no mutable global", "pkg/a/a.go", "package a\nvar x = 1", []string{`pkg/a/a.go:2: var x: state of a package is shared by all; put it into a struct, or vouch for it with "// immutable: reason"`}},
		"a variable without value":    {"no mutable global", "pkg/a/a.go", "package a\nvar x error", []string{`pkg/a/a.go:2: var x: state of a package is shared by all; put it into a struct, or vouch for it with "// immutable: reason"`}},
		"an error":                    {"no mutable global", "pkg/a/a.go", "package a\nvar (\n\tErrA = errors.New(\"a\")\n\tb = fmt.Errorf(\"b\")\n)", nil},
		"a pattern":                   {"no mutable global", "pkg/a/a.go", "package a\nvar x = regexp.MustCompile(\"a\")", nil},
		"a reason":                    {"no mutable global", "pkg/a/a.go", "package a\nvar x, y = &api.Unfit{}, api.NewUnfit(1)", nil},
		"the names of constants":      {"no mutable global", "pkg/a/a.go", "package a\nvar names = [...]string{\"a\"}", nil},
		"names for all to write":      {"no mutable global", "pkg/a/a.go", "package a\nvar Names = [...]string{\"a\"}", []string{`pkg/a/a.go:2: var Names: state of a package is shared by all; put it into a struct, or vouch for it with "// immutable: reason"`}},
		"a slice":                     {"no mutable global", "pkg/a/a.go", "package a\nvar names = []string{\"a\"}", []string{`pkg/a/a.go:2: var names: state of a package is shared by all; put it into a struct, or vouch for it with "// immutable: reason"`}},
		"an embedded file":            {"no mutable global", "pkg/a/a.go", "package a\n//go:embed a.yaml\nvar x []byte", nil},
		"a promise":                   {"no mutable global", "pkg/a/a.go", "package a\n// immutable: a table\nvar x = map[string]int{}", nil},
		"a promise in a list":         {"no mutable global", "pkg/a/a.go", "package a\nvar (\n\t// x is a table.\n\t//\n\t// immutable: nobody writes it\n\tx = map[string]int{}\n)", nil},
		"a proof that a type is used": {"no mutable global", "pkg/a/a.go", "package a\nvar _ I = T{}", nil},
		"a variable of a test":        {"no mutable global", "pkg/a/a_test.go", "package a\nvar update = flag.Bool(\"update\", false, \"\")", nil},
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
