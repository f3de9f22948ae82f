// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// Unpack extracts the first image into a directory, like a container engine before it starts a container, and returns
// the image configuration.
func Unpack(index v1.ImageIndex, dir string) (*v1.ConfigFile, error) {
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	image, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		return nil, err
	}
	files := mutate.Extract(image)
	defer files.Close()
	for reader := tar.NewReader(files); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return image.ConfigFile()
		}
		if err == nil {
			err = place(filepath.Join(dir, filepath.FromSlash(header.Name)), header, reader)
		}
		if err != nil {
			return nil, fmt.Errorf("unpacking the image: %w", err)
		}
	}
}

func place(path string, header *tar.Header, content io.Reader) error {
	if header.Typeflag == tar.TypeDir {
		return os.MkdirAll(path, header.FileInfo().Mode().Perm())
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, header.FileInfo().Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}
