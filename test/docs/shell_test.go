// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/batch-scheduler/batch-scheduler/test/cluster"
	testscheduler "github.com/batch-scheduler/batch-scheduler/test/scheduler"
)

// TestTutorials pastes the commands of each tutorial, in order, on a cluster like that of the demo, where the scheduler
// runs. Files are written where the text says so, and what it shows of outputs must be in them.
func TestTutorials(t *testing.T) {
	t.Parallel()
	for _, path := range tutorials(t) {
		if path == filepath.Join(root, policyTutorial) { // it needs no cluster
			continue
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			c := startCluster(t, demoNodes(t, path))
			sh := newShell(t, c)
			output := ""
			for _, b := range blocksOf(t, path) {
				switch b.language {
				case "yaml":
					name, _, named := strings.Cut(strings.TrimPrefix(b.text, "# "), "\n")
					if !named || !strings.HasPrefix(b.text, "# ") {
						t.Fatalf("%s: a file must begin with its name as a comment", b.at)
					}
					write(t, filepath.Join(sh.dir, name), b.text)
				case "sh":
					output = sh.run(b)
				case "text":
					for line := range strings.Lines(b.text) {
						if !shows(output, line) {
							t.Errorf("%s: the commands above do not print\n%s\nbut\n%s", b.at, squeeze(line), output)
						}
					}
				}
			}
		})
	}
}

// demoNodes are the nodes of the demo as a tutorial starts it.
func demoNodes(t *testing.T, tutorial string) []string {
	t.Helper()
	count := "4"
	for _, line := range lines(t, tutorial) {
		if given, ok := strings.CutPrefix(line, "make demo ARGS=--nodes="); ok {
			count = given
		}
	}
	return []string{"name=cpu,cpu=8,memory=32Gi,count=" + count, "name=gpu,cpu=8,memory=32Gi,nvidia.com/gpu=4,count=2"}
}

// troubled is what the commands of the guide are about.
const troubled = `
apiVersion: scheduling.batch-scheduler.dev/v1alpha1
kind: Queue
metadata: {name: research}
---
apiVersion: scheduling.batch-scheduler.dev/v1alpha1
kind: PodGroup
metadata: {name: hello, namespace: default}
spec: {minMember: 1, queue: research}
---
apiVersion: batch/v1
kind: Job
metadata: {name: hello, namespace: default}
spec:
  parallelism: 0
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: busybox}]
---
apiVersion: v1
kind: Pod
metadata:
  name: hello-0
  namespace: default
  labels: {scheduling.batch-scheduler.dev/pod-group: hello}
spec:
  schedulerName: batch-scheduler
  containers: [{name: main, image: busybox}]
`

// TestTroubleshooting: each command of the guide finds what it asks for, where the scheduler leads by a Lease and has
// the account that is shipped.
func TestTroubleshooting(t *testing.T) {
	t.Parallel()
	c := startCluster(t, []string{"name=gpu,count=2"}, "--leader-elect=true")
	sh := newShell(t, c)
	write(t, filepath.Join(sh.dir, "troubled.yaml"), troubled)
	sh.run(block{at: "what there is", text: `
		kubectl apply -f troubled.yaml
		kubectl wait --for=condition=PodGroupScheduled podgroup/hello --timeout=60s`})
	for _, b := range blocksOf(t, filepath.Join(root, troubleshooting)) {
		if b.language == "sh" {
			sh.run(b)
		}
	}
}

// startCluster starts a cluster, and the scheduler there.
func startCluster(t *testing.T, nodes []string, flags ...string) *cluster.Cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	c, err := cluster.Start(t.Context(), cluster.Options{NodeSpecs: nodes, ControllerManager: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Stop() })
	if err = testscheduler.Install(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	s, err := testscheduler.Start(t.Context(), c, testscheduler.Options{Dir: t.TempDir(), Args: flags})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(time.Minute); err != nil {
			t.Errorf("stopping the scheduler: %v", err)
		}
	})
	return c
}

// shell runs commands as readers paste them.
type shell struct {
	t   *testing.T
	dir string // where it is
	env []string
}

// kubectl returns the path of a kubectl: that of the Kubernetes version in go.mod, unless the environment names one.
func kubectl(t *testing.T) string {
	t.Helper()
	if binary := os.Getenv("KUBECTL_BINARY"); binary != "" {
		return binary
	}
	return built(t, "k8s.io/kubernetes/cmd/kubectl")
}

// built returns the path of a command of this module or of one that it requires.
func built(t *testing.T, importPath string) string {
	t.Helper()
	binary, err := cluster.Build(t.Context(), importPath, false)
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

// newShell returns a shell whose kubectl reaches the cluster, and has the plugin.
func newShell(t *testing.T, c *cluster.Cluster) *shell {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"config", "docs"} { // some begin in the source tree
		target, err := filepath.Abs(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if err = os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	path := []string{filepath.Dir(kubectl(t))}
	for _, command := range []string{"kubectl-batch", "batch-scheduler"} {
		path = append(path, filepath.Dir(built(t, "github.com/batch-scheduler/batch-scheduler/cmd/"+command)))
	}
	path = append(path, os.Getenv("PATH"))
	return &shell{t: t, dir: dir, env: append(os.Environ(),
		"PATH="+strings.Join(path, string(os.PathListSeparator)),
		"KUBECONFIG="+c.Kubeconfig,
		"KUBECACHEDIR="+filepath.Join(dir, ".cache"),
	)}
}

// elsewhere are commands that are not for a cluster, or that only a real kubelet could answer; see TestCommands.
var elsewhere = regexp.MustCompile(`(?m)^(make|go run|kubectl logs) .*$`)

// run runs the block until a command fails, and returns all that was printed.
func (s *shell) run(b block) string {
	s.t.Helper()
	command := exec.CommandContext(s.t.Context(), "bash", "-euo", "pipefail", "-c", elsewhere.ReplaceAllString(b.text, ""))
	command.Dir, command.Env = s.dir, s.env
	output, err := command.CombinedOutput()
	if err != nil {
		s.t.Fatalf("%s: %v\n%s\n%s", b.at, err, b.text, output)
	}
	return string(output)
}

var duration = regexp.MustCompile(`\b(\d+[smhd])+\b`)

// shows reports whether an output has a line of a document, which can end before that of the output, but not within a word: cpu-1
// is not in cpu-10.
func shows(output, line string) bool {
	return regexp.MustCompile(regexp.QuoteMeta(squeeze(line)) + `(\W|$)`).MatchString(squeeze(output))
}

// squeeze makes texts comparable that differ in blanks, line ends and ages.
func squeeze(text string) string {
	return strings.Join(strings.Fields(duration.ReplaceAllString(text, "0s")), " ")
}
