// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package image packs built binaries of the scheduler into a container image from scratch, without a container
// engine. The same binaries give the same bytes.
//
// The platform and the commit of the image are those that the Go toolchain has recorded in the binary. The image
// depends on nothing else.
package image

import (
	"archive/tar"
	"bytes"
	"cmp"
	"debug/buildinfo"
	"fmt"
	"io"
	"os"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	// Name is the name of the image in config/default and the chart.
	Name = "ghcr.io/batch-scheduler/batch-scheduler:latest"

	entrypoint = "/batch-scheduler"
	user       = "65532:65532"
	passwd     = "nonroot:x:65532:65532:nonroot:/:/sbin/nologin\n"
)

// New returns an index with one image for each of the binaries, which are for different platforms. If version is empty, the image
// has the version that the go command recorded in the binary.
func New(version string, binaries ...string) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, binary := range binaries {
		image, platform, err := single(version, binary)
		if err != nil {
			return nil, fmt.Errorf("making an image of %s: %w", binary, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: platform}})
	}
	return index, nil
}

// single returns the image of one binary, with one layer.
func single(version, binary string) (v1.Image, *v1.Platform, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, nil, err
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	created := time.Unix(0, 0).UTC() // for a binary that was not built from a commit
	if recorded := settings["vcs.time"]; recorded != "" {
		if created, err = time.Parse(time.RFC3339, recorded); err != nil {
			return nil, nil, err
		}
	}
	content, err := rootFS(binary, created)
	if err != nil {
		return nil, nil, err
	}
	opener := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
	layer, err := tarball.LayerFromOpener(opener, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
	if err != nil {
		return nil, nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	platform := &v1.Platform{OS: settings["GOOS"], Architecture: settings["GOARCH"]}
	image, err := mutate.ConfigFile(base, &v1.ConfigFile{
		OS: platform.OS, Architecture: platform.Architecture, Created: v1.Time{Time: created}, RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{Entrypoint: []string{entrypoint}, User: user, WorkingDir: "/", Labels: labels(cmp.Or(version, info.Main.Version), settings["vcs.revision"])},
	})
	if err != nil {
		return nil, nil, err
	}
	image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: created}, CreatedBy: "make image"}})
	return image, platform, err
}

// labels returns annotations of https://specs.opencontainers.org/image-spec/annotations.
func labels(version, revision string) map[string]string {
	all := map[string]string{
		"org.opencontainers.image.title":       "batch-scheduler",
		"org.opencontainers.image.description": "A batch and gang scheduler for Kubernetes",
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.source":      "https://github.com/batch-scheduler/batch-scheduler",
		"org.opencontainers.image.version":     version,
	}
	if revision != "" {
		all["org.opencontainers.image.revision"] = revision
	}
	return all
}

// rootFS returns the content of the container: the scheduler, and a name for its user. The service account provides
// the certificate of the API server, so the image has none.
func rootFS(binary string, at time.Time) ([]byte, error) {
	program, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	return archived(at,
		entry{name: "batch-scheduler", mode: 0o755, content: program},
		entry{name: "etc/", mode: 0o755},
		entry{name: "etc/passwd", mode: 0o644, content: []byte(passwd)},
	)
}

// entry is a file of an archive, or a directory if its name ends with a slash. It is owned by root.
type entry struct {
	name    string
	mode    int64
	content []byte
}

func archived(at time.Time, entries ...entry) ([]byte, error) {
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	for _, e := range entries {
		header := &tar.Header{Name: e.name, Mode: e.mode, Size: int64(len(e.content)), ModTime: at}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(e.content); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return buffer.Bytes(), err
}
