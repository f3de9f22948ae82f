// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/batch-scheduler/batch-scheduler/cmd/batch-scheduler/app"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
)

const configuration = "docs/configuration.md"

func TestAllFlagsAreListed(t *testing.T) {
	t.Parallel()
	want := map[string]string{}
	app.NewSchedulerCommand().Flags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		name := "--" + f.Name
		if f.Name == "v" {
			name = "-v"
		}
		want[name] = f.DefValue
	})
	got := map[string]string{}
	for _, row := range table(t, configuration, "Flag", "Default") {
		got[row[0]] = row[1]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("flags and defaults (-program +document):\n%s", diff)
	}
}

// TestArgumentsAreAsTheyAreListed tries each value; that none is missing is seen by what a wrong one suggests.
func TestArgumentsAreAsTheyAreListed(t *testing.T) {
	t.Parallel()
	for _, row := range table(t, configuration, "Plugin", "Argument", "Default") {
		if row[2] == "" { // a name of something that need not exist
			row[2] = "some"
		}
		checkPolicy(t, policy(row[0], fmt.Sprintf("arguments: {%s: %s}", row[1], row[2])))
	}
}

func TestPluginsAndActionsAreListed(t *testing.T) {
	t.Parallel()
	for _, row := range table(t, configuration, "Plugin", "What it does") {
		checkPolicy(t, policy(row[0], ""))
	}
	var actions []string
	for _, row := range table(t, configuration, "Action", "What it does") {
		actions = append(actions, row[0])
		file := filepath.Join(t.TempDir(), "policy.yaml")
		write(t, file, "actions: "+row[0]+"\ntiers: [{plugins: [{name: gang}]}]\n")
		code, output := scheduler("config", "check", file)
		if code != 0 {
			t.Errorf("action %s: the program says %q", row[0], output)
		}
	}
	if diff := cmp.Diff([]string{"allocate", "backfill", "preempt", "reclaim"}, actions); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
}

// policy returns a policy with a plugin, and with those without which "config check" warns.
func policy(plugin, more string) string {
	text := fmt.Sprintf("actions: allocate\ntiers:\n- plugins:\n  - name: %s\n    %s\n", plugin, more)
	for _, other := range []string{"gang", "predicates", "proportion"} {
		if other != plugin {
			text += fmt.Sprintf("  - name: %s\n", other)
		}
	}
	return text
}

// TestTheBuiltInPolicyIsShown compares texts, but for the comment above.
func TestTheBuiltInPolicyIsShown(t *testing.T) {
	t.Parallel()
	_, want, _ := strings.Cut(conf.DefaultYAML(), "\n")
	if !slices.ContainsFunc(blocks(t), func(b block) bool { return b.text == want }) {
		t.Errorf("no document shows the built-in policy:\n%s", want)
	}
}

// TestExtensionPointsAreListed compares the table with the methods by which plugins register.
func TestExtensionPointsAreListed(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "pkg/scheduler/framework/registration.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, decl := range file.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv != nil && strings.HasPrefix(fn.Name.Name, "Add") {
			want = append(want, fn.Name.Name)
		}
	}
	for _, row := range table(t, "docs/extending.md", "Register with") {
		got = append(got, regexp.MustCompile(`\w+`).FindAllString(row[0], -1)...)
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("extension points (-code +docs):\n%s", diff)
	}
}

// reasons are all that a condition can have, as the API says.
func reasons(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "pkg/apis/scheduling/v1alpha1/wellknown.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, "Reason") {
			value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, value)
		}
		return true
	})
	return all
}

func TestAllReasonsAreExplained(t *testing.T) {
	t.Parallel()
	want := reasons(t)
	var got []string
	for _, row := range table(t, "docs/concepts.md", "Reason") {
		got = append(got, row[0])
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reasons (-API +docs):\n%s", diff)
	}
}
