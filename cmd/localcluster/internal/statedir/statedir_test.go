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

func TestOnlyTheOwnerCanLookInside(t *testing.T) {
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

func TestRemoveTakesEverything(t *testing.T) {
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

func TestOpenKeepsWhatThereIs(t *testing.T) {
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

func TestOpenRefuses(t *testing.T) {
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
		t.Errorf("a refused directory holds %v now", left)
	}
}

func TestSweep(t *testing.T) {
	for name, test := range map[string]struct {
		given func(t *testing.T, parent string)
		after time.Duration
		swept bool
	}{
		"an abandoned directory goes":                   {abandoned, time.Minute, true},
		"one that was never locked goes":                {unlocked, time.Minute, true},
		"a young one stays, it may be about to be used": {unlocked, time.Second, false},
		"one in use stays, however old":                 {inUse, 24 * time.Hour, false},
		"a file of the name stays":                      {file, time.Minute, false},
		"a link of the name stays":                      {link, time.Minute, false},
		"another directory stays":                       {foreign, time.Minute, false},
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

// abandoned is what a killed process leaves: the lock file without the lock.
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
