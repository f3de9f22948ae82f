// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"fmt"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Push writes the image to a registry with the credentials of "docker login".
func Push(ctx context.Context, reference string, image v1.ImageIndex) error {
	ref, err := name.ParseReference(reference)
	if err == nil {
		err = remote.WriteIndex(ref, image, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
	}
	if err != nil {
		return fmt.Errorf("pushing the image: %w", err)
	}
	return nil
}
