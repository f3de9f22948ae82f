// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package statedir_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/batch-scheduler/batch-scheduler/cmd/localcluster/internal/statedir"
)

func TestPermissions(t *testing.T) {
	dir, err := statedir.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	path, err := dir.Write("key", []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{dir.Path: 0o700 | os.ModeDir, path: 0o600} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != want {
			t.Errorf("%s has mode %s, want %s", path, info.Mode(), want)
		}
	}
}

func TestCloseRemovesContent(t *testing.T) {
	parent := t.TempDir()
	dir, err := statedir.New(parent)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir.Join("etcd/member"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := dir.Close(); err != nil {
		t.Fatal(err)
	}
	if left := entries(t, parent); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestOpenKeepsContent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	made := 0
	for range 2 {
		dir, err := statedir.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		data, err := dir.Keep("key", func() ([]byte, error) { made++; return []byte("secret"), nil })
		if err != nil {
			t.Fatal(err)
		}
		if string(data) != "secret" || made != 1 {
			t.Errorf("got %q, made %d times", data, made)
		}
		if err = dir.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOpenErrors(t *testing.T) {
	taken := filepath.Join(t.TempDir(), "taken")
	dir, err := statedir.Open(taken)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	photos := t.TempDir()
	if err = os.WriteFile(filepath.Join(photos, "cat.jpg"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		taken:                                "a local cluster runs in " + taken,
		photos:                               "is not empty and no local cluster has run in it",
		filepath.Join(photos, "cat.jpg"):     "not a directory",
		"/" + strings.Repeat("directory", 9): "has more than 80 bytes",
	} {
		if dir, err := statedir.Open(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v and error %v, want an error with %q", path, dir, err, want)
		}
	}
	if left := entries(t, photos); len(left) != 1 {
		t.Errorf("a rejected directory contains %v now", left)
	}
}

func TestSweep(t *testing.T) {
	for name, test := range map[string]struct {
		given func(t *testing.T, parent string)
		after time.Duration
		swept bool
	}{
		"an abandoned directory is removed":            {abandoned, time.Minute, true},
		"a directory that was never locked is removed": {unlocked, time.Minute, true},
		"a young directory is kept":                    {unlocked, time.Second, false},
		"a directory in use is kept at any age":        {inUse, 24 * time.Hour, false},
		"a file with the prefix is kept":               {file, time.Minute, false},
		"a link with the prefix is kept":               {link, time.Minute, false},
		"a directory without the prefix is kept":       {foreign, time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			parent := t.TempDir()
			test.given(t, parent)
			before := entries(t, parent)
			swept, err := statedir.Sweep(parent, time.Now().Add(test.after))
			if err != nil {
				t.Fatal(err)
			}
			want := before
			if test.swept {
				want = nil
				if diff := cmp.Diff(before, swept); diff != "" {
					t.Errorf("reported (-want +got):\n%s", diff)
				}
			}
			if diff := cmp.Diff(want, entries(t, parent)); diff != "" {
				t.Errorf("left (-want +got):\n%s", diff)
			}
		})
	}
}

func inUse(t *testing.T, parent string) {
	dir, err := statedir.New(parent)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dir.Close() })
}

// abandoned is the directory of a killed process: the lock file exists, but is not locked.
func abandoned(t *testing.T, parent string) {
	unlocked(t, parent)
	if err := os.WriteFile(filepath.Join(parent, "localcluster-1", "lock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func unlocked(t *testing.T, parent string) {
	if err := os.MkdirAll(filepath.Join(parent, "localcluster-1", "etcd"), 0o700); err != nil {
		t.Fatal(err)
	}
}

func file(t *testing.T, parent string) {
	if err := os.WriteFile(filepath.Join(parent, "localcluster-1"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, parent string) {
	if err := os.Symlink(t.TempDir(), filepath.Join(parent, "localcluster-1")); err != nil {
		t.Fatal(err)
	}
}

func foreign(t *testing.T, parent string) {
	if err := os.Mkdir(filepath.Join(parent, "another"), 0o700); err != nil {
		t.Fatal(err)
	}
}

func entries(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}
