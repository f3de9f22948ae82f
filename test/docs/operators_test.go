// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOperatorPagesAreTested: a page about an operator says that a test runs its controller if and only if the test applies
// the objects of the page; otherwise it says what it was checked against. The pages have the same sections.
func TestOperatorPagesAreTested(t *testing.T) {
	t.Parallel()
	source := applied(t)
	for _, path := range operatorPages(t) {
		page := filepath.Base(path)
		text := strings.Join(strings.Fields(strings.Join(lines(t, path), "\n")), " ")
		for _, section := range []string{"## What to set", "## What happens", "## Without group objects", "## What does not work"} {
			if section == "## Without group objects" && page == "argo-workflows.md" {
				continue // its pods have no object with a size
			}
			if !strings.Contains(text, section) {
				t.Errorf("%s has no section %q", page, section)
			}
		}
		says := strings.Contains(text, "A test runs the controller") && page != "jobset.md" // which has the sample
		for _, b := range blocksOf(t, path) {
			var objects int
			for _, y := range texts(t) {
				if y.at == b.at && y.kind == operatorKind {
					objects++
				}
			}
			if objects == 0 {
				continue
			}
			file, _, _ := strings.Cut(strings.TrimPrefix(b.text, "# "), "\n")
			if tested := strings.Contains(source, fmt.Sprintf("applyDocumented(%q, %q)", page, file)); tested != says {
				t.Errorf("%s: the page says %t to whether a test runs the controller, and a test applies %s: %t", b.at, says, file, tested)
			}
		}
		if !says && page != "jobset.md" && !strings.Contains(text, "checked ") {
			t.Errorf("%s does not say what it was checked against", page)
		}
	}
}

// applied returns the tests on a cluster.
func applied(t *testing.T) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, "test", "integration", "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(data)
	}
	return all.String()
}
