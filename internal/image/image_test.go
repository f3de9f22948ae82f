// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package image_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/batch-scheduler/batch-scheduler/internal/image"
)

// TestContents lists the content of both images completely.
func TestContents(t *testing.T) {
	t.Parallel()
	index := sample(t)
	var got []string
	for _, single := range images(t, index) {
		config, err := single.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s/%s, created %s", config.OS, config.Architecture, config.Created.Format(time.RFC3339)),
			fmt.Sprintf("runs %q as %s in %s with %q", config.Config.Entrypoint, config.Config.User, config.Config.WorkingDir, config.Config.Cmd))
		for label, value := range config.Config.Labels {
			got = append(got, label+" = "+value)
		}
		slices.Sort(got[len(got)-len(config.Config.Labels):])
		got = append(got, files(t, single)...)
	}
	image := func(platform string) []string {
		return []string{
			platform + ", created 2026-02-03T04:05:06Z",
			`runs ["/batch-scheduler"] as 65532:65532 in / with []`,
			"org.opencontainers.image.description = A batch and gang scheduler for Kubernetes",
			"org.opencontainers.image.licenses = Apache-2.0",
			"org.opencontainers.image.revision = " + revision(t),
			"org.opencontainers.image.source = https://github.com/batch-scheduler/batch-scheduler",
			"org.opencontainers.image.title = batch-scheduler",
			"org.opencontainers.image.version = v1.2.3",
			"layer 0: -rwxr-xr-x 0:0 2026-02-03T04:05:06Z batch-scheduler",
			"layer 0: drwxr-xr-x 0:0 2026-02-03T04:05:06Z etc/",
			"layer 0: -rw-r--r-- 0:0 2026-02-03T04:05:06Z etc/passwd",
		}
	}
	if diff := cmp.Diff(append(image("linux/amd64"), image("linux/arm64")...), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestReproducible(t *testing.T) {
	t.Parallel()
	var sums [][]byte
	for range 2 {
		path := filepath.Join(t.TempDir(), "image.tar") // the binaries are in other directories and have other times
		if err := image.WriteFile(path, sample(t)); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, data)
	}
	if !bytes.Equal(sums[0], sums[1]) {
		t.Error("the files differ")
	}
}

// TestFormats reads the file like old Docker versions and as an OCI layout.
func TestFormats(t *testing.T) {
	t.Parallel()
	index := sample(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "image.tar")
	if err := image.WriteFile(path, index); err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag(image.Name)
	if err != nil {
		t.Fatal(err)
	}
	docker, err := tarball.ImageFromPath(path, &tag)
	if err != nil {
		t.Fatal(err)
	}
	want := files(t, images(t, index)[0])
	if diff := cmp.Diff(want, files(t, docker)); diff != "" {
		t.Errorf("files as docker loads them (-want +got):\n%s", diff)
	}
	out, err := exec.CommandContext(t.Context(), "tar", "-xf", path, "-C", dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	all, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err = validate.Index(all); err != nil {
		t.Errorf("the layout is not valid: %v", err)
	}
	manifest, err := all.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if got := manifest.Manifests[0].Annotations["io.containerd.image.name"]; got != image.Name {
		t.Errorf("containerd would call it %q", got)
	}
	if diff := cmp.Diff(digest(t, index), manifest.Manifests[0].Digest); diff != "" {
		t.Errorf("digest (-want +got):\n%s", diff)
	}
}

// TestPush pushes to a registry with one user.
func TestPush(t *testing.T) {
	const user, password = "mary", "secret"
	pushed := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if u, p, _ := r.BasicAuth(); u != user || p != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		pushed.ServeHTTP(w, r)
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	index, reference := sample(t), host+"/team/batch-scheduler:dev"
	t.Setenv("DOCKER_CONFIG", t.TempDir()) // no credentials
	if err := image.Push(t.Context(), reference, index); err == nil || !strings.Contains(err.Error(), "401 Unauthorized") {
		t.Errorf("without credentials: got error %v, want 401 Unauthorized", err)
	}
	login := fmt.Sprintf(`{"auths": {%q: {"username": %q, "password": %q}}}`, host, user, password)
	if err := os.WriteFile(filepath.Join(os.Getenv("DOCKER_CONFIG"), "config.json"), []byte(login), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := image.Push(t.Context(), reference, index); err != nil {
		t.Fatal(err)
	}
	ref, err := name.ParseReference(reference)
	if err != nil {
		t.Fatal(err)
	}
	got, err := remote.Index(ref, remote.WithAuthFromKeychain(authn.DefaultKeychain))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(digest(t, index), digest(t, got)); diff != "" {
		t.Errorf("digest (-want +got):\n%s", diff)
	}
	if err := validate.Index(got); err != nil {
		t.Errorf("the image in the registry is not valid: %v", err)
	}
}

// sample returns an image of a small program that is built from a commit, like the scheduler.
func sample(t *testing.T) v1.ImageIndex {
	t.Helper()
	dir := checkout(t)
	var binaries []string
	for _, architecture := range []string{"amd64", "arm64"} {
		run(t, dir, []string{"CGO_ENABLED=0", "GOOS=linux", "GOARCH=" + architecture}, "go", "build", "-trimpath", "-buildvcs=true", "-o", architecture, ".")
		binaries = append(binaries, filepath.Join(dir, architecture))
	}
	index, err := image.New("", binaries...)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

// checkout creates a repository with one commit, which is always the same.
func checkout(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":     "module sample\n\ngo 1.26\n",
		"main.go":    "package main\n\nfunc main() {}\n",
		".gitignore": "a??64\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const when = "2026-02-03T04:05:06Z"
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main"},
		{"add", "."},
		{"-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgSign=false", "commit", "--quiet", "-m", "Sample"},
		{"-c", "tag.gpgSign=false", "tag", "v1.2.3"},
	} {
		run(t, dir, []string{"GIT_AUTHOR_DATE=" + when, "GIT_COMMITTER_DATE=" + when}, "git", args...)
	}
	return dir
}

func revision(t *testing.T) string {
	t.Helper()
	return strings.TrimSpace(run(t, checkout(t), nil, "git", "rev-parse", "HEAD"))
}

func run(t *testing.T, dir string, env []string, command string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v: %s", command, args[0], err, out)
	}
	return string(out)
}

// images returns the images of an index in order.
func images(t *testing.T, index v1.ImageIndex) []v1.Image {
	t.Helper()
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var all []v1.Image
	for _, descriptor := range manifest.Manifests {
		single, err := index.Image(descriptor.Digest)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, single)
	}
	return all
}

// files lists the files of an image, layer by layer.
func files(t *testing.T, of v1.Image) []string {
	t.Helper()
	layers, err := of.Layers()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for i, layer := range layers {
		content, err := layer.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		for reader := tar.NewReader(content); ; {
			header, err := reader.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, fmt.Sprintf("layer %d: %s %d:%d %s %s", i, header.FileInfo().Mode(), header.Uid, header.Gid, header.ModTime.UTC().Format(time.RFC3339), header.Name))
		}
	}
	return found
}

func digest(t *testing.T, of interface{ Digest() (v1.Hash, error) }) v1.Hash {
	t.Helper()
	hash, err := of.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return hash
}
