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

	"github.com/google/go-cmp/cmp"
)

const acceptance = "docs/acceptance.md"

// TestNamedTestsExist looks up each test that a document names, design notes included.
func TestNamedTestsExist(t *testing.T) {
	t.Parallel()
	sources := testSources(t)
	named := regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w*)`")
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		for i, line := range lines(t, path) {
			for _, match := range named.FindAllStringSubmatch(line, -1) {
				if !strings.Contains(sources, "\nfunc "+match[1]+"(") {
					t.Errorf("%s:%d: there is no test %s", path, i+1, match[1])
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestAcceptanceListIsComplete compares the numbers of the A, S, TI and TO cases in the list with those that tests cite.
func TestAcceptanceListIsComplete(t *testing.T) {
	t.Parallel()
	cited := map[string]bool{}
	for _, match := range regexp.MustCompile(`\b(?:A|S|TI|TO)[1-9]\d?\b`).FindAllString(testSources(t), -1) {
		cited[match] = true
	}
	listed := map[string]bool{}
	for _, line := range lines(t, filepath.Join(root, acceptance)) {
		if match := regexp.MustCompile(`^- \*\*((?:A|S|TI|TO)\d+)\.\*\*`).FindStringSubmatch(line); match != nil {
			if listed[match[1]] {
				t.Errorf("%s lists %s twice", acceptance, match[1])
			}
			listed[match[1]] = true
		}
	}
	if diff := cmp.Diff(cited, listed); diff != "" {
		t.Errorf("cases (-tests +%s):\n%s", acceptance, diff)
	}
}

// testSources returns the tests of the directories that documents name, and the scenarios that they read.
func testSources(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, dir := range []string{"pkg", "cmd", "config", "internal", "test"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, _ fs.DirEntry, err error) error {
			script := filepath.Ext(path) == ".txt" && strings.Contains(filepath.ToSlash(path), "/builtin/")
			if err != nil || !script && !strings.HasSuffix(path, "_test.go") || slices.Contains(strings.Split(filepath.ToSlash(path), "/"), "docs") {
				return err
			}
			data, err := os.ReadFile(path)
			all.WriteString("\n")
			all.Write(data)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}
