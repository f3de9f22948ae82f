// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/cmd/batch-scheduler/app"
)

const (
	troubleshooting = "docs/troubleshooting.md"
	migration       = "docs/migration.md"
)

// TestEachReasonHasASection: what a user sees can be looked up by its word.
func TestEachReasonHasASection(t *testing.T) {
	t.Parallel()
	want := append(reasons(t), v1.PodReasonSchedulingGated)
	var got []string
	for _, line := range lines(t, filepath.Join(root, troubleshooting)) {
		if title, ok := strings.CutPrefix(line, "### "); ok {
			got = append(got, strings.Trim(title, "`"))
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reasons (-API +sections of %s):\n%s", troubleshooting, diff)
	}
}

// TestMessagesAreReal holds the examples of messages to the source: each part, but for numbers, is what a test
// expects or a format has.
func TestMessagesAreReal(t *testing.T) {
	t.Parallel()
	source := messages(t)
	for _, b := range blocksOf(t, filepath.Join(root, troubleshooting)) {
		if b.language != "text" {
			continue
		}
		for line := range strings.Lines(b.text) {
			for _, part := range regexp.MustCompile(`; |: `).Split(withoutNumbers(strings.TrimSpace(line)), -1) {
				if !strings.Contains(source, part) {
					t.Errorf("%s: nothing says %q", b.at, part)
				}
			}
		}
	}
}

// messages are the texts of the scheduler and of the tests that read what it says.
func messages(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, dir := range []string{"pkg/scheduler", "test/integration"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") {
				return err
			}
			data, err := os.ReadFile(path)
			all.Write(data)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	whole := regexp.MustCompile(`"\s*\+\s*"`).ReplaceAllString(all.String(), "")
	return withoutNumbers(strings.ReplaceAll(whole, `\"`, `"`))
}

func withoutNumbers(text string) string {
	return regexp.MustCompile(`%[dsqv]|\d+`).ReplaceAllString(text, "#")
}

const same = "the same"

// TestMigrationSaysWhatIsThere tries each action and plugin of others: "the same" loads, all else is refused with advice.
func TestMigrationSaysWhatIsThere(t *testing.T) {
	t.Parallel()
	try := func(name, here, policy string) {
		file := filepath.Join(t.TempDir(), "policy.yaml")
		write(t, file, policy)
		code, output := scheduler("config", "check", file)
		if accepted := code == 0; accepted != (here == same) {
			t.Errorf("%s says %q about %s, and the program: %s", migration, here, name, output)
		}
		if advised := strings.Contains(output, "it is one of Volcano: "); advised == (here == same) {
			t.Errorf("%s says %q about %s, and the program has another advice: %s", migration, here, name, output)
		}
	}
	for _, row := range table(t, migration, "Action", "Here") {
		try("action "+row[0], row[1], "actions: "+row[0]+"\ntiers: [{plugins: [{name: priority}, {name: proportion}]}]\n")
	}
	for _, row := range table(t, migration, "Plugin", "Here") {
		try("plugin "+row[0], row[1], policy(row[0], ""))
	}
}

// TestFlagsOfOthers looks for the counterparts.
func TestFlagsOfOthers(t *testing.T) {
	t.Parallel()
	flags := app.NewSchedulerCommand().Flags()
	for _, row := range table(t, migration, "kube-batch, Volcano", "Here", "What to know") {
		theirs, isFlag := strings.CutPrefix(row[0], "--")
		if !isFlag {
			continue // of the tables of fields, which have the same header
		}
		ours, has := strings.CutPrefix(row[1], "--")
		if has && flags.Lookup(ours) == nil {
			t.Errorf("%s: there is no flag --%s", migration, ours)
		}
		if !has && flags.Lookup(theirs) != nil {
			t.Errorf("%s: the flag --%s is there too", migration, theirs)
		}
	}
}

// TestLinksLeadSomewhere follows the links within the repository, to files and to headings.
func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`\]\(([^)#:]*)(#[^)]*)?\)`)
	for _, path := range markdown(t) {
		for i, line := range lines(t, path) {
			for _, match := range link.FindAllStringSubmatch(line, -1) {
				target := path
				if match[1] != "" {
					target = filepath.Join(filepath.Dir(path), match[1])
				}
				if _, err := os.Stat(target); err != nil {
					t.Errorf("%s:%d: %v", path, i+1, err)
				} else if match[2] != "" && !slices.Contains(anchors(t, target), match[2]) {
					t.Errorf("%s:%d: %s has no heading %s", path, i+1, target, match[2])
				}
			}
		}
	}
}

// TestLinesAreShort allows 120 columns to a line of prose. Tables, code blocks and the generated reference may be wider.
func TestLinesAreShort(t *testing.T) {
	t.Parallel()
	for _, path := range markdown(t) {
		if path == filepath.Join(root, configuration) {
			continue
		}
		code := false
		for i, line := range lines(t, path) {
			code = code != strings.HasPrefix(line, "```")
			if n := utf8.RuneCountInString(line); n > 120 && !code && !strings.HasPrefix(line, "|") {
				t.Errorf("%s:%d: the line has %d columns, more than 120", path, i+1, n)
			}
		}
	}
}

// markdown returns the documents for users and those for developers.
func markdown(t *testing.T) []string {
	t.Helper()
	notes, err := filepath.Glob(filepath.Join(root, "docs", "design", "*.md"))
	if err != nil || len(notes) == 0 {
		t.Fatalf("found no design notes: %v", err)
	}
	return slices.Concat(documents(t), notes, []string{filepath.Join(root, "CONTRIBUTING.md"), filepath.Join(root, "SCOPE.md")})
}

// anchors are the headings of a document as links name them.
func anchors(t *testing.T, path string) []string {
	t.Helper()
	var all []string
	for _, line := range lines(t, path) {
		if strings.HasPrefix(line, "#") {
			title := strings.ToLower(strings.TrimLeft(line, "# "))
			all = append(all, "#"+strings.ReplaceAll(regexp.MustCompile(`[^a-z0-9 _-]`).ReplaceAllString(title, ""), " ", "-"))
		}
	}
	return all
}

// TestTheIndexIsComplete: who adds a document says in docs/README.md what it has.
func TestTheIndexIsComplete(t *testing.T) {
	t.Parallel()
	index := strings.Join(lines(t, filepath.Join(root, "docs", "README.md")), "\n")
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" || filepath.Base(path) == "README.md" {
			return err
		}
		relative, err := filepath.Rel(filepath.Join(root, "docs"), path)
		if !strings.Contains(index, "("+filepath.ToSlash(relative)+")") {
			t.Errorf("docs/README.md does not list %s", relative)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
