// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package proportion_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"

	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// TestRejectedVictims asserts what the log says about victims that the plugin rejects.
func TestRejectedVictims(t *testing.T) {
	for name, tc := range map[string]struct {
		given []Row
		want  string
	}{
		"the claim exceeds what its queue deserves": {
			given: Given(Node("n1", "4cpu"), Queue("q", 1), Queue("r", 1),
				Group("r/old", 1, Running(4, "1cpu", "n1")), Group("q/new", 1, Pending(1, "4cpu"))),
			want: "cause=NotEntitled claim=4 cpu queue=q held=no resources deserved=2 cpu victimQueue=r victimHeld=4 cpu victimDeserved=2 cpu",
		},
		"the victim queue holds what it deserves": {
			given: Given(Node("n1", "5cpu"), Queue("q", 1), Queue("r", 2), Queue("s", 1),
				Group("r/old", 1, Running(2, "1cpu", "n1")), Group("s/wide", 3, Running(3, "1cpu", "n1")), Group("q/new", 1, Pending(1, "1cpu"))),
			want: "cause=NotBorrowed claim=1 cpu queue=q held=no resources deserved=1 cpu victimQueue=r victimHeld=2 cpu victimDeserved=2 cpu",
		},
		"the victim queue keeps its guarantee": {
			given: Given(Node("n1", "4cpu 8Gi"), Queue("q", 1), Queue("r", 1, Guarantee("4Gi")),
				Group("r/old", 1, Running(1, "4cpu 4Gi", "n1")), Group("q/new", 1, Pending(1, "1cpu"))),
			want: "cause=Guaranteed claim=1 cpu queue=q held=no resources deserved=1 cpu victimQueue=r victimHeld=4 cpu + 4Gi memory victimDeserved=3 cpu + 4Gi memory",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var lines []string
			New(t, BuiltIn(t), tc.given, WithConfig(AllActions), WithLog(rejections(&lines))).Cycle()
			if diff := cmp.Diff(tc.want, strings.Join(slices.Compact(lines), "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// rejections returns a log that keeps the lines about rejected victims, from the cause on.
func rejections(lines *[]string) logr.Logger {
	fromCause := regexp.MustCompile(`"msg"="Victim rejected".* ("cause"=.*)`)
	return funcr.New(func(_, args string) {
		if found := fromCause.FindStringSubmatch(args); found != nil {
			*lines = append(*lines, strings.ReplaceAll(found[1], `"`, ""))
		}
	}, funcr.Options{Verbosity: 4})
}
