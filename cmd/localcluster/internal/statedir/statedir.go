// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package statedir manages the state directories of local clusters: one per process, readable only by its owner.
// Temporary ones are removed at the end of the process, or by a later cluster if the process died without removing
// its own.
package statedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// prefix is short because etcd's unix sockets are inside: the path of a socket is limited to about a hundred
	// bytes.
	prefix   = "localcluster-"
	lockName = "lock"

	// minAge is the minimum age of an abandoned directory: younger ones may belong to a process that has not locked
	// its own yet.
	minAge = 10 * time.Second

	// longest is the maximum length of the path of a directory such that sockets fit.
	longest = 80
)

// Dir is the state directory of this process. The kernel releases its lock when the process ends, which distinguishes
// directories in use from abandoned ones.
type Dir struct {
	Path string
	lock *os.File
	kept bool
}

// New creates a directory under parent, or under the system's directory for temporary files if parent is empty.
func New(parent string) (*Dir, error) {
	path, err := os.MkdirTemp(parent, prefix) // mode 0700
	if err != nil {
		return nil, fmt.Errorf("creating the state directory: %w", err)
	}
	lock, err := acquire(filepath.Join(path, lockName))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("locking the state directory: %w", err), os.RemoveAll(path))
	}
	return &Dir{Path: path, lock: lock}, nil
}

// Open opens a directory that is kept on Close, and creates it if it does not exist. It fails if another process has
// it open, and if it contains files but was never a state directory: a wrong path must not mix files of a cluster
// with others.
func Open(path string) (*Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if len(path) > longest {
		return nil, fmt.Errorf("the path of %s has more than %d bytes: the paths of its sockets would be too long", path, longest)
	}
	if err = os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	found, err := reacquire(filepath.Join(path, lockName))
	switch {
	case errors.Is(err, fs.ErrNotExist) && len(entries) > 0:
		return nil, fmt.Errorf("%s is not empty and no local cluster has run in it: give another directory", path)
	case errors.Is(err, fs.ErrNotExist):
		found, err = acquire(filepath.Join(path, lockName))
	case errors.Is(err, unix.EWOULDBLOCK):
		return nil, fmt.Errorf("a local cluster runs in %s: stop it first, or give another directory", path)
	}
	if err != nil {
		return nil, err
	}
	return &Dir{Path: path, lock: found, kept: true}, nil
}

// Join returns the path of the named file in the directory.
func (d *Dir) Join(name string) string {
	return filepath.Join(d.Path, name)
}

// Write writes a file that only its owner can read, and returns its path.
func (d *Dir) Write(name string, data []byte) (string, error) {
	path := d.Join(name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return "", fmt.Errorf("writing state: %w", err)
	}
	return path, nil
}

// Keep returns the content of the named file. If the file does not exist, Keep writes the result of create first.
func (d *Dir) Keep(name string, create func() ([]byte, error)) ([]byte, error) {
	data, err := os.ReadFile(d.Join(name))
	if !errors.Is(err, fs.ErrNotExist) {
		return data, err
	}
	if data, err = create(); err != nil {
		return nil, err
	}
	_, err = d.Write(name, data)
	return data, err
}

// Close releases the directory. A directory of New is removed with its content.
func (d *Dir) Close() error {
	var err error
	if !d.kept {
		err = os.RemoveAll(d.Path)
	}
	return errors.Join(err, d.lock.Close())
}

// Sweep removes the directories under parent (as in New) of dead processes of this user, and returns their paths. It
// keeps directories whose state is unclear.
func Sweep(parent string, now time.Time) ([]string, error) {
	if parent == "" {
		parent = os.TempDir()
	}
	candidates, err := filepath.Glob(filepath.Join(parent, prefix+"*"))
	if err != nil {
		return nil, fmt.Errorf("looking for old state directories: %w", err)
	}
	var swept []string
	for _, path := range candidates {
		if !abandoned(path, now) {
			continue
		}
		if err := os.RemoveAll(path); err != nil {
			return swept, fmt.Errorf("removing an old state directory: %w", err)
		}
		swept = append(swept, path)
	}
	return swept, nil
}

func abandoned(path string, now time.Time) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() || now.Sub(info.ModTime()) < minAge {
		return false
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); !ok || int(owner.Uid) != os.Getuid() {
		return false
	}
	lock, err := reacquire(filepath.Join(path, lockName))
	if errors.Is(err, fs.ErrNotExist) {
		return true // its process died before it could lock it
	}
	if err != nil {
		return false // its process is alive
	}
	return lock.Close() == nil
}

func acquire(path string) (*os.File, error) {
	return lock(path, os.O_CREATE|os.O_EXCL)
}

func reacquire(path string) (*os.File, error) {
	return lock(path, 0)
}

func lock(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|flags, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
