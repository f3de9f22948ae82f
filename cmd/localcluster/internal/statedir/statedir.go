// Package statedir keeps the directories in which local clusters hold their state: one per
// process, readable by its owner alone, removed at the end, and swept by the next cluster
// when a process died without removing its own.
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
	// prefix is short because etcd's unix sockets live inside: a socket's whole path may
	// have about a hundred bytes.
	prefix   = "localcluster-"
	lockName = "lock"

	// settle is how old a directory must be before it can count as abandoned: younger
	// ones may belong to a process that has not locked its own yet.
	settle = 10 * time.Second
)

// Dir is the state directory of this process. The kernel releases its lock when the
// process ends, however it ends, and so tells a live directory from an abandoned one.
type Dir struct {
	Path string
	lock *os.File
}

// New makes a directory under parent, or under the system's directory for temporary files
// if parent is empty.
func New(parent string) (*Dir, error) {
	path, err := os.MkdirTemp(parent, prefix) // mode 0700
	if err != nil {
		return nil, fmt.Errorf("making the state directory: %w", err)
	}
	lock, err := acquire(filepath.Join(path, lockName))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("locking the state directory: %w", err), os.RemoveAll(path))
	}
	return &Dir{Path: path, lock: lock}, nil
}

// Join returns the path of the named file in the directory.
func (d *Dir) Join(name string) string {
	return filepath.Join(d.Path, name)
}

// Write writes a file that only the owner of the process can read, and returns its path.
func (d *Dir) Write(name string, data []byte) (string, error) {
	path := d.Join(name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return "", fmt.Errorf("writing state: %w", err)
	}
	return path, nil
}

// Remove removes the directory and everything in it.
func (d *Dir) Remove() error {
	return errors.Join(os.RemoveAll(d.Path), d.lock.Close())
}

// Sweep removes the directories under parent (as in New) that belonged to processes of
// this user which no longer live, and returns their paths. It leaves alone whatever it is
// not sure of.
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
	if err != nil || !info.IsDir() || now.Sub(info.ModTime()) < settle {
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
		return false // its process lives
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
