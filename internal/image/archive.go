// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// WriteFile writes the image to a tar archive in the OCI layout, which containerd, podman and newer Docker versions
// load. For older Docker versions, which support one platform, it adds the manifest of the first image.
func WriteFile(path string, image v1.ImageIndex) error {
	data, err := archive(image)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o777)
	}
	if err == nil {
		err = os.WriteFile(path, data, 0o666)
	}
	if err != nil {
		return fmt.Errorf("writing the image: %w", err)
	}
	return nil
}

func archive(image v1.ImageIndex) ([]byte, error) {
	dir, err := os.MkdirTemp("", "image-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	_, err = layout.Write(dir, mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), mutate.IndexAddendum{
		Add: image,
		Descriptor: v1.Descriptor{Annotations: map[string]string{
			"io.containerd.image.name":          Name,
			"org.opencontainers.image.ref.name": Name,
		}},
	}))
	if err != nil {
		return nil, err
	}
	manifest, err := dockerManifest(image)
	if err != nil {
		return nil, err
	}
	entries := []entry{{name: "manifest.json", mode: 0o644, content: manifest}}
	err = filepath.WalkDir(dir, func(path string, file fs.DirEntry, err error) error {
		if err != nil || file.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		entries = append(entries, entry{name: filepath.ToSlash(name), mode: 0o644, content: content})
		return err
	})
	if err != nil {
		return nil, err
	}
	return archived(time.Unix(0, 0), entries...)
}

// dockerManifest returns the manifest that "docker load" reads if it does not support the OCI layout.
func dockerManifest(image v1.ImageIndex) ([]byte, error) {
	index, err := image.IndexManifest()
	if err != nil {
		return nil, err
	}
	first, err := image.Image(index.Manifests[0].Digest)
	if err != nil {
		return nil, err
	}
	manifest, err := first.Manifest()
	if err != nil {
		return nil, err
	}
	blob := func(of v1.Hash) string { return "blobs/" + of.Algorithm + "/" + of.Hex }
	descriptor := tarball.Descriptor{Config: blob(manifest.Config.Digest), RepoTags: []string{Name}}
	for _, layer := range manifest.Layers {
		descriptor.Layers = append(descriptor.Layers, blob(layer.Digest))
	}
	return json.Marshal(tarball.Manifest{descriptor})
}
