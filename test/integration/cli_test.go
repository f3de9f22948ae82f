// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/test/cluster"
)

// plugin is "kubectl batch" as people run it.
type plugin struct {
	w      *harness
	binary string
	args   []string // for all calls
}

func (h *harness) newPlugin(args ...string) plugin {
	h.t.Helper()
	binary, err := cluster.Build(h.ctx, "github.com/batch-scheduler/batch-scheduler/cmd/kubectl-batch", false)
	h.must(err)
	return plugin{h, binary, args}
}

func (p plugin) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.binary, append(args, p.args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+p.w.cluster.Kubeconfig)
	return cmd
}

// run returns what is printed, and whether the exit code was 0.
func (p plugin) run(args ...string) (string, bool) {
	out, err := p.command(p.w.ctx, args...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.w.t.Fatal(err)
	}
	return string(out), err == nil
}

// prints fails the test unless the command succeeds and prints all the parts.
func (p plugin) prints(line string, parts ...string) {
	p.w.t.Helper()
	if err := p.omits(line, true, parts); err != nil {
		p.w.t.Error(err)
	}
}

// fails fails the test unless the command fails, in one line with all the parts.
func (p plugin) fails(line string, parts ...string) {
	p.w.t.Helper()
	if err := p.omits(line, false, parts); err != nil {
		p.w.t.Error(err)
	}
	if out, _ := p.run(strings.Fields(line)...); strings.Count(out, "\n") != 1 || !strings.HasPrefix(out, "error: ") {
		p.w.t.Errorf("%s: an error has one line:\n%s", line, out)
	}
}

// eventuallyPrints waits until the command prints all the parts.
func (p plugin) eventuallyPrints(line string, parts ...string) {
	p.w.t.Helper()
	p.w.eventually(func() error { return p.omits(line, true, parts) })
}

func (p plugin) omits(line string, succeeds bool, parts []string) error {
	out, ok := p.run(strings.Fields(line)...)
	if ok != succeeds {
		return fmt.Errorf("%s: exit code 0 is %t, want %t:\n%s", line, ok, succeeds, out)
	}
	for _, part := range parts {
		if !strings.Contains(out, part) {
			return fmt.Errorf("%s: does not say %q:\n%s", line, part, out)
		}
	}
	return nil
}

// TestThePlugin submits a gang that waits, asks why, and cancels it, as a user with the role edit in one namespace.
func TestThePlugin(t *testing.T) {
	h := newHarness(t, controllers)
	h.do(node("n1", "4cpu"), queue("team", 3, atMost("6cpu")))
	ada := h.newPlugin("--as", "ada", "--as-group", "system:authenticated")
	ada.fails("submit --name train --image i", "cannot create resource", "reading requires the role view, submit and cancel require the role edit")
	h.grantTo("edit", namespace, rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "ada"})
	ada.eventuallyPrints("submit --name train --replicas 5 --cpu 1 --queue team --image i --dry-run=server", "job.batch/train created (server dry run)")
	ada.fails("why train", `PodGroup "train" not found in namespace default`)

	ada.prints("submit --name train --replicas 5 --cpu 1 --queue team --image i", "podgroup.scheduling.batch-scheduler.dev/train created")
	ada.fails("submit --name train --replicas 5 --cpu 1 --queue team --image i", "already exists")
	ada.prints("why train", "the scheduler has not processed the PodGroup yet", "5 must start together")
	changes := ada.follow("get", "podgroups", "train", "--watch")
	h.start()
	ada.eventuallyPrints("why train --events",
		"PodGroup: default/train, in queue team", "0 running, 5 pending; 5 must start together",
		"Reason:   ExceedsClusterCapacity", "needs 5 more pods of 1 cpu", "Advice:   Waiting for other pods does not help", "ExceedsClusterCapacity: needs",
		"Unread:   queue team") // the role is one in a namespace
	ada.prints("why job/train --events", "PodGroup: default/train, in queue team", "Reason:   ExceedsClusterCapacity")
	ada.fails("why job/absent", `job "absent" not found in namespace default; "kubectl get jobs -A" lists all namespaces`)
	ada.fails("why jobb/train", `doesn't have a resource type "jobb"`)
	ada.prints("why jobs.batch/train -o jsonpath={.kind}:{.podGroup}:{.reason}:{.pods.pending}:{.minMember}", "Explanation:train:ExceedsClusterCapacity:5:5")
	ada.prints("get podgroups", "NAME   QUEUE  PHASE    RUN  PEND  MIN  REASON", "train  team   Pending    0     5    5  ExceedsClusterCapacity")
	ada.prints("get podgroups -o json", `"kind": "List"`, `"kind": "PodGroup"`, `"minMember": 5`)
	ada.prints("get podgroups train -o yaml", "apiVersion: scheduling.batch-scheduler.dev/v1alpha1\nkind: PodGroup\n")
	ada.fails("get podgroups absent", `PodGroup "absent" not found`)
	ada.prints("get podgroups -o name", "podgroup.scheduling.batch-scheduler.dev/train\n")
	ada.prints("why podgroup.scheduling.batch-scheduler.dev/train", "PodGroup: default/train")
	ada.prints("get podgroups -l team=a", "No podgroups found")
	ada.prints("get podgroups --sort-by .spec.minMember", "train")
	ada.fails("get podgroups -A", "reading all namespaces requires a ClusterRoleBinding to the role view")
	ada.prints("submit --name other --image i --queue teem --dry-run=server", "job.batch/other created (server dry run)")
	ada.fails("top queues", "is forbidden", "access requires a ClusterRoleBinding to the role batch-scheduler-view")
	ada.fails("top topology", "is forbidden", "topologies have no namespace: access requires a ClusterRoleBinding to the role batch-scheduler-view")
	ben := h.newPlugin("--as", "ben", "--as-group", "system:authenticated")
	h.grantTo("view", namespace, rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "ben"})
	ben.eventuallyPrints("why train", "Reason:   ExceedsClusterCapacity")
	ben.fails("cancel train", "cannot delete resource", "reading requires the role view, submit and cancel require the role edit")
	h.grantTo("batch-scheduler-view", "", rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "ada"})
	ada.eventuallyPrints("top queues", "QUEUE", "WEIGHT", "team", "cpu")
	ada.prints("top topology", "No topologies found")
	ada.prints("top queues -o jsonpath={.items[?(@.name=='team')].resources[0].capability}", "6")
	ada.prints("submit --name other --image i --queue teem --dry-run=server",
		`Warning: queue "teem" does not exist (did you mean "team"?); the pods are pending until it does`)
	usage := ada.follow("top", "queues", "--watch")
	usage.await(regexp.MustCompile(`team +3 `))
	h.do(queue("team", 7, atMost("6cpu")))
	usage.await(regexp.MustCompile(`(?s)team +3 .*team +7 `))
	usage.end()
	ada.prints("get queues team -o wide", "team       7", "at most 6")
	if out, _ := h.newPlugin().run("__complete", "why", ""); !strings.HasPrefix(out, "train\n") {
		t.Errorf("groups are completed to:\n%s", out)
	}

	ada.prints("cancel train", "job.batch/train deleted", "podgroup.scheduling.batch-scheduler.dev/train deleted")
	ada.fails("cancel train", `PodGroup "train" not found in namespace default`)
	h.eventually(func() error {
		if pods := h.podsNow(); len(pods) > 0 {
			return fmt.Errorf("%d pods are still there", len(pods))
		}
		_, err := h.client.BatchV1().Jobs(namespace).Get(h.ctx, "train", metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("the Job is still there: %v", err)
		}
		return nil
	})
	var seen []string
	for line := range strings.Lines(changes.end()) {
		words := strings.Fields(line)
		seen = append(seen, strings.Join(words[:len(words)-1], " ")) // all but the age
	}
	for _, want := range []string{"NAME QUEUE PHASE RUN PEND MIN REASON", "train team - 0 0 5 -", "train team Pending 0 5 5 ExceedsClusterCapacity"} {
		at := slices.Index(seen, want)
		if at < 0 {
			t.Fatalf("--watch has not shown %q after what came before it, but\n%s", want, strings.Join(seen, "\n"))
		}
		seen = seen[at+1:]
	}
}

// TestAGangGoesWithItsJob deletes only the Job, and has a gang from a file.
func TestAGangGoesWithItsJob(t *testing.T) {
	h := newHarness(t, controllers)
	p := h.newPlugin()
	file := filepath.Join(h.dir, "job.yaml")
	h.must(os.WriteFile(file, []byte(`
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  parallelism: 2
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: i}]
`), 0o600))
	p.prints("submit --queue team -f "+file, "podgroup.scheduling.batch-scheduler.dev/train created")
	p.eventuallyPrints("why train", "in queue team", "2 pending; 2 must start together")
	p.fails("submit --name other --image i --priority-class system-node-critical", "use a PriorityClass of your own")
	if _, err := h.client.BatchV1().Jobs(namespace).Get(h.ctx, "other", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the group was refused and its Job has stayed: %v", err)
	}
	background := metav1.DeletePropagationBackground
	h.must(h.client.BatchV1().Jobs(namespace).Delete(h.ctx, "train", metav1.DeleteOptions{PropagationPolicy: &background}))
	h.eventually(func() error {
		_, err := h.batch.SchedulingV1alpha1().PodGroups(namespace).Get(h.ctx, "train", metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("the Job is gone and its group has stayed: %v", err)
		}
		return nil
	})
}

// TestWhyOfAPodThatOutlivesItsPodGroup deletes the PodGroup of a running pod, and creates it again.
func TestWhyOfAPodThatOutlivesItsPodGroup(t *testing.T) {
	h := newHarness(t, noControllers)
	h.do(node("n1", "4cpu"), queue("team", 1), gang("train", 1, pods(1, "1cpu"), in("team")))
	h.start()
	h.awaitStable(`train: Running Scheduled; 1 running`, "")
	pod := h.podsNow()[0].Name
	p := h.newPlugin()
	p.prints("why pod/"+pod, "PodGroup: default/train, in queue team")
	h.must(h.batch.SchedulingV1alpha1().PodGroups(namespace).Delete(h.ctx, "train", metav1.DeleteOptions{}))
	for _, again := range []bool{false, true} {
		if again {
			h.do(group("train", 1, in("team")))
		}
		p.prints("why pod/"+pod, "Pod:      default/"+pod+", in queue team", "Reason:   none", `PodGroup "train", for which it was bound, does not`)
	}
}

// follow starts a command that goes on until end is called.
func (p plugin) follow(args ...string) *following {
	p.w.t.Helper()
	f := &following{w: p.w}
	ctx, cancel := context.WithCancel(p.w.ctx)
	f.cancel = cancel
	f.cmd = p.command(ctx, args...)
	f.cmd.Stdout, f.cmd.Stderr = f, f
	f.cmd.Cancel = func() error { return f.cmd.Process.Signal(os.Interrupt) }
	p.w.must(f.cmd.Start())
	return f
}

// following is a command that prints until it is ended.
type following struct {
	w      *harness
	cmd    *exec.Cmd
	cancel func()

	mu  sync.Mutex
	out bytes.Buffer
}

func (f *following) Write(text []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.out.Write(text)
}

func (f *following) text() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.out.String()
}

// await waits until what has been printed matches the pattern.
func (f *following) await(pattern *regexp.Regexp) {
	f.w.t.Helper()
	f.w.eventually(func() error {
		if text := f.text(); !pattern.MatchString(text) {
			return fmt.Errorf("%v prints nothing that matches %s:\n%s", f.cmd.Args, pattern, text)
		}
		return nil
	})
}

// end ends the command and returns what it has printed.
func (f *following) end() string {
	f.w.t.Helper()
	f.cancel()
	if err := f.cmd.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		f.w.t.Errorf("%v: %v", f.cmd.Args, err)
	}
	return f.text()
}
