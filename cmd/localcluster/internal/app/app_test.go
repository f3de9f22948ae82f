// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Invalid flags are rejected before anything is started, in one line.
func TestBadFlags(t *testing.T) {
	foreign := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(foreign, []byte(kubeconfig("production")), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		given []string
		want  string
	}{
		"an unknown flag":                   {[]string{"--node-count=3"}, "unknown flag: --node-count (see localcluster --help)"},
		"not a number":                      {[]string{"--nodes=many"}, `invalid argument "many" for "--nodes" flag`},
		"an argument":                       {[]string{"start"}, `unknown command "start" for "localcluster"`},
		"negative node count":               {[]string{"--nodes=-1"}, "--nodes: -1 is not in 0 to 20000"},
		"too many nodes together":           {[]string{"--node=count=15000", "--node=count=15000"}, "all nodes together: 30000 is not in 0 to 20000"},
		"no such port":                      {[]string{"--port=65536"}, "--port: 65536 is not in 0 to 65535"},
		"too many zones":                    {[]string{"--zones=27"}, "--zones: 27 is not in 0 to 26"},
		"no parallelism":                    {[]string{"--kubelet-parallelism=0"}, "--kubelet-parallelism: 0 is not in 1 to 64"},
		"jobs that end too early":           {[]string{"--job-run-time=-1s"}, "--job-run-time: -1s is negative"},
		"a misspelt feature gate":           {[]string{"--feature-gates=WorkloadsWithJob=true"}, "--feature-gates: unrecognized feature gate: WorkloadsWithJob"},
		"a feature gate without its API":    {[]string{"--feature-gates=WorkloadWithJob=true"}, "--feature-gates: WorkloadWithJob is enabled, but depends on features that are disabled: [GenericWorkload]"},
		"the feature gate of an API":        {[]string{"--feature-gates=GenericWorkload=true"}, "--feature-gates: GenericWorkload requires --workload-api"},
		"the API without its feature gate":  {[]string{"--workload-api", "--feature-gates=GenericWorkload=false"}, "--workload-api requires the feature gate GenericWorkload"},
		"a misspelt node":                   {[]string{"--node=cpus=4"}, `--node: node "cpus=4": "cpus" is not a resource`},
		"kubeconfig of another cluster":     {[]string{"--kubeconfig=" + foreign}, "exists and is not from a local cluster"},
		"kubeconfig in a missing directory": {[]string{"--kubeconfig=/nowhere/config"}, "--kubeconfig: there is no directory /nowhere"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			command := NewCommand(Streams{In: strings.NewReader(""), Out: &out})
			command.SetArgs(test.given)
			command.SetOut(&out)
			command.SetErr(&out)
			err := command.Execute()
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got error %v, want %q", err, test.want)
			}
			if strings.Contains(err.Error(), "\n") || out.Len() > 0 {
				t.Errorf("want one line and nothing else, got error %q and output %q", err, out.String())
			}
		})
	}
}

func TestVersion(t *testing.T) {
	var out bytes.Buffer
	command := NewCommand(Streams{})
	command.SetArgs([]string{"--version"})
	command.SetOut(&out)
	if err := command.Execute(); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out.String(), "localcluster ") {
		t.Errorf("got %q", out.String())
	}
}

func TestCheckKubeconfig(t *testing.T) {
	for name, test := range map[string]struct {
		given string // content; empty: the file does not exist
		fails bool
	}{
		"no file":                            {"", false},
		"of a local cluster":                 {kubeconfig("localcluster"), false},
		"of another cluster":                 {kubeconfig("production"), true},
		"of a local cluster and another one": {kubeconfig("localcluster", "production"), true},
		"an empty file":                      {"\n", false},
		"not a kubeconfig":                   {"hello", true},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "config")
			if test.given != "" {
				if err := os.WriteFile(path, []byte(test.given), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := checkKubeconfig(path); (err != nil) != test.fails {
				t.Errorf("got error %v, want one: %t", err, test.fails)
			}
		})
	}
}

func TestKubeconfigFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "config")
	ours, theirs := []byte("ours"), []byte("theirs")

	if err := writeKubeconfig(path, ours); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode() != 0o600 {
		t.Errorf("mode %s, want 0600", info.Mode())
	}
	removeKubeconfig(path, theirs)
	if data, err := os.ReadFile(path); err != nil || !bytes.Equal(data, ours) {
		t.Errorf("removed the file of another cluster: %q, %v", data, err)
	}
	removeKubeconfig(path, ours)
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestExplain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	lines := strings.Repeat("early\n", 100) + strings.Repeat("late\n", tailLines)
	if err := os.WriteFile(path, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	got := (&logFile{path: path}).explain(os.ErrDeadlineExceeded).Error()
	if !strings.HasPrefix(got, os.ErrDeadlineExceeded.Error()+"\n") || strings.Count(got, "late") != tailLines || strings.Contains(got, "early") {
		t.Errorf("got %q", got)
	}
}

func kubeconfig(contexts ...string) string {
	text := "apiVersion: v1\nkind: Config\ncontexts:\n"
	for _, name := range contexts {
		text += "- name: " + name + "\n  context: {cluster: " + name + "}\n"
	}
	return text
}
