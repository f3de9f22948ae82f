// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/batch-scheduler/batch-scheduler/internal/image"
	"github.com/batch-scheduler/batch-scheduler/test/cluster"
)

// TestTheImageRuns runs the program with nothing but the image.
func TestTheImageRuns(t *testing.T) {
	needRoot(t)
	t.Parallel()
	root := t.TempDir()
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	config, err := image.Unpack(built, root)
	if err != nil {
		t.Fatal(err)
	}
	var uid, gid uint32
	if _, err = fmt.Sscanf(config.Config.User, "%d:%d", &uid, &gid); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "log")
	process, err := cluster.StartProcess(cluster.ProcessOptions{
		Path: config.Config.Entrypoint[0], Args: []string{"--version"}, Output: log,
		Container: &cluster.Container{Root: root, UID: uid, GID: gid},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = process.Wait(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(data), "batch-scheduler ") {
		t.Errorf("--version prints %q", data)
	}
	t.Logf("%s%s", data, size(t))
}

func size(t *testing.T) string {
	t.Helper()
	manifest, err := built.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	single, err := built.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	layers, err := single.Layers()
	if err != nil {
		t.Fatal(err)
	}
	var total int64
	for _, layer := range layers {
		n, err := layer.Size()
		if err != nil {
			t.Fatal(err)
		}
		total += n
	}
	return fmt.Sprintf("%.1f MB compressed", float64(total)/1e6)
}
