// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package image_test

import (
	"os"
	"strings"
	"testing"
)

// TestDockerfile holds the image that a container engine builds to the one of this package and to the Makefile: one script
// builds all of them.
func TestDockerfile(t *testing.T) {
	t.Parallel()
	for file, lines := range map[string][]string{
		"../../Dockerfile": {
			"\tRELEASE=1 VERSION=$VERSION GOOS=linux GOARCH=$TARGETARCH hack/build.sh -o /out/batch-scheduler ./cmd/batch-scheduler",
			"RUN mkdir /out/etc && echo 'nonroot:x:65532:65532:nonroot:/:/sbin/nologin' >/out/etc/passwd",
			"FROM scratch",
			"USER 65532:65532",
			"WORKDIR /",
			`ENTRYPOINT ["/batch-scheduler"]`,
		},
		"../../Makefile": {"\thack/build.sh -o bin/batch-scheduler ./cmd/batch-scheduler"},
		"build.go":       {`	build := exec.CommandContext(ctx, script, "-o", output, "github.com/batch-scheduler/batch-scheduler/cmd/batch-scheduler")`},
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range lines {
			if !strings.Contains("\n"+string(text), "\n"+line+"\n") {
				t.Errorf("%s has no line %q", file, line)
			}
		}
	}
}
