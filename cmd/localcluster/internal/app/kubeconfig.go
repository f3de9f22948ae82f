// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/batch-scheduler/batch-scheduler/cmd/localcluster/internal/controlplane"
)

// checkKubeconfig returns an error if the file was not written by localcluster: it may be the only copy of
// credentials.
func checkKubeconfig(path string) error {
	if path == "" {
		return nil
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
		return fmt.Errorf("--kubeconfig: there is no directory %s", filepath.Dir(path))
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("--kubeconfig: %w", err)
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil // probably created by mktemp for this purpose
	}
	config, err := clientcmd.Load(data)
	if err != nil || len(config.Contexts) != 1 || config.Contexts[controlplane.ContextName] == nil {
		return fmt.Errorf("--kubeconfig: %s exists and is not from a local cluster: set another file, or remove it", path)
	}
	return nil
}

// writeKubeconfig creates the file atomically: a process that waits for it never reads a part of it.
func writeKubeconfig(path string, data []byte) error {
	temporary, err := os.CreateTemp(filepath.Dir(path), ".kubeconfig-") // mode 0600
	if err != nil {
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}
	_, err = temporary.Write(data)
	if err = errors.Join(err, temporary.Close()); err == nil {
		err = os.Rename(temporary.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("writing the kubeconfig: %w", err), os.Remove(temporary.Name()))
	}
	return nil
}

// removeKubeconfig removes the file if it has not been replaced.
func removeKubeconfig(path string, data []byte) {
	if now, err := os.ReadFile(path); err == nil && bytes.Equal(now, data) {
		_ = os.Remove(path) // its cluster has ended
	}
}
