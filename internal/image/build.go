package image

import (
	"context"
	"fmt"
	"os"
	"os/exec"
)

// Build builds the scheduler for Linux, from the module of the working directory: without C, so that it needs no file
// but itself, and without paths of this machine, so that it is the same on every one.
func Build(ctx context.Context, output, architecture string) error {
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", output,
		"github.com/batch-scheduler/batch-scheduler/cmd/batch-scheduler")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+architecture)
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the scheduler for %s: %w: %s", architecture, err, out)
	}
	return nil
}
