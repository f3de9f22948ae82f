// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// policyTutorial is a tutorial that needs no cluster.
const policyTutorial = "docs/tutorials/policy.md"

// TestPolicyTutorial runs the commands of the tutorial, in order: files are written where the text says so, what it shows of
// outputs must be in them, and the files that it names must be there.
func TestPolicyTutorial(t *testing.T) {
	t.Parallel()
	dir, output := t.TempDir(), ""
	for _, b := range blocksOf(t, filepath.Join(root, policyTutorial)) {
		switch b.language {
		case "yaml":
			name, _, _ := strings.Cut(strings.TrimPrefix(b.text, "# "), "\n")
			write(t, filepath.Join(dir, name), b.text)
		case "sh":
			for line := range strings.Lines(b.text) {
				words := strings.Fields(line)
				if !slices.Equal(words[:3], []string{"go", "run", "./cmd/batch-scheduler"}) {
					t.Fatalf("%s: this test does not know how to run %q; teach it", b.at, line)
				}
				for i := range words {
					switch words[i-min(i, 1)] {
					case "--trace":
						words[i] = filepath.Join(root, words[i])
					case "--compare", "-o":
						words[i] = filepath.Join(dir, words[i])
					}
				}
				code, printed := scheduler(words[3:]...)
				if output = printed; code != 0 {
					t.Fatalf("%s: %s", b.at, output)
				}
			}
		case "text":
			for line := range strings.Lines(b.text) {
				if line = words(line); !strings.Contains(words(output), line) {
					t.Errorf("%s: the commands above do not print\n%s\nbut\n%s", b.at, line, output)
				}
			}
		}
	}
	for _, name := range []string{"report.html", "summary.txt", "starvationAfter=0/jobs.csv"} {
		if _, err := os.Stat(filepath.Join(dir, "results", name)); err != nil {
			t.Error(err)
		}
	}
}

// words returns a text with single blanks.
func words(text string) string { return strings.Join(strings.Fields(text), " ") }
