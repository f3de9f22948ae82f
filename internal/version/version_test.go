package version

import (
	"runtime/debug"
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
