// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package version

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
)

func TestDescribe(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		stamp string
		given debug.BuildInfo
		want  string
	}{
		"a release that go install built": {
			given: debug.BuildInfo{GoVersion: "go1.26.0", Main: debug.Module{Version: "v1.2.3"}},
			want:  "v1.2.3 (go1.26.0)",
		},
		"a stamped build": {
			stamp: "v1.2.3-4-gabc",
			given: debug.BuildInfo{GoVersion: "go1.26.0", Main: debug.Module{Version: "v1.2.2"}},
			want:  "v1.2.3-4-gabc (go1.26.0)",
		},
		"a working copy with changes": {
			given: debug.BuildInfo{GoVersion: "go1.26.0", Main: debug.Module{Version: "(devel)"}, Settings: []debug.BuildSetting{
				{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"}}},
			want: "unknown (commit abc with changes, go1.26.0)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := describe(tc.stamp, &tc.given); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestBuildStampsTheVersion(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("links a program")
	}
	binary := filepath.Join(t.TempDir(), "kubectl-batch")
	build := exec.CommandContext(t.Context(), "../../hack/build.sh", "-o", binary, "../../cmd/kubectl-batch")
	build.Env = append(os.Environ(), "VERSION=v1.2.3-test")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), binary, "--version").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if !strings.Contains(string(out), "v1.2.3-test") {
		t.Errorf("got %q, want the stamped version in it", out)
	}
}
