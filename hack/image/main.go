// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Command image builds the scheduler for linux/amd64 and linux/arm64 and puts it into a container image, without a
// container engine. Two builds of one commit give the same bytes.
//
//	go run ./hack/image [-o FILE] [-push REFERENCE]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/batch-scheduler/batch-scheduler/internal/image"
)

func main() {
	output := flag.String("o", "_artifacts/image.tar", "write the image to this `file`, for docker load, kind load image-archive or ctr images import")
	push := flag.String("push", "", "also push it to a registry, as `reference`, with the credentials of docker login")
	flag.Parse()
	if err := run(context.Background(), *output, *push); err != nil {
		fmt.Fprintf(os.Stderr, "image: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, output, push string) error {
	dir, err := os.MkdirTemp("", "image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var binaries []string
	for _, architecture := range []string{"amd64", "arm64"} {
		binary := filepath.Join(dir, architecture)
		if err = image.Build(ctx, binary, architecture); err != nil {
			return err
		}
		binaries = append(binaries, binary)
	}
	version, err := image.Version(ctx)
	if err != nil {
		return err
	}
	index, err := image.New(version, binaries...)
	if err != nil {
		return err
	}
	if err = image.WriteFile(output, index); err != nil {
		return err
	}
	fmt.Printf("%s: %s\n", output, image.Name)
	if push == "" {
		return nil
	}
	if err = image.Push(ctx, push, index); err != nil {
		return err
	}
	digest, err := index.Digest()
	fmt.Printf("pushed %s, digest %s\n", push, digest)
	return err
}
