// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	certutil "k8s.io/client-go/util/cert"

	"github.com/batch-scheduler/batch-scheduler/test/cluster"
)

// operator is the controller of another project, which a module of its own requires.
type operator struct {
	name    string // for its log
	dir     string // of the module
	program string // import path of its command, or of one in the module, which runs the controller
	module  string // that has the files to install it
	env     []string
}

// operatorAt returns an operator of test/operators whose module has a command of its own.
func operatorAt(name, module string) operator {
	const base = "github.com/batch-scheduler/batch-scheduler/test/operators/"
	return operator{name: name, dir: filepath.Join("..", "operators", name), program: base + name, module: module}
}

// build builds the operator. It skips the test if the modules are not available, because the Go module proxy cannot be
// reached.
func (o operator) build(t *testing.T) (binary string) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", o.program) // downloads what is missing
	list.Dir = o.dir
	if output, err := list.CombinedOutput(); err != nil {
		t.Skipf("the modules of %s are not available: %v: %s", o.dir, err, output)
	}
	script, err := filepath.Abs("../../hack/build.sh")
	if err != nil {
		t.Fatal(err)
	}
	binary = filepath.Join(t.TempDir(), o.name)
	build := exec.CommandContext(t.Context(), script, "-o", binary, o.program)
	build.Dir = o.dir
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v: %s", o.name, err, output)
	}
	return binary
}

// file returns the path of a file of a module that the operator requires.
func (o operator) file(h *harness, module string, path ...string) string {
	h.t.Helper()
	list := exec.CommandContext(h.ctx, "go", "list", "-m", "-f", "{{.Dir}}", module)
	list.Dir = o.dir
	output, err := list.Output()
	h.must(err)
	return filepath.Join(append([]string{strings.TrimSpace(string(output))}, path...)...)
}

// install applies files of the module of the operator.
func (o operator) install(h *harness, paths ...string) {
	h.t.Helper()
	for _, path := range paths {
		h.applyYAML(h.read(o.file(h, o.module, path)))
	}
}

// installSchedulerPlugins defines the PodGroups of scheduler-plugins, in the version that the operator uses.
func (o operator) installSchedulerPlugins(h *harness) {
	h.t.Helper()
	h.applyYAML(h.read(o.file(h, "sigs.k8s.io/scheduler-plugins", "config", "crd", "bases", "scheduling.x-k8s.io_podgroups.yaml")))
}

// start runs the operator as an administrator until the test ends.
func (o operator) start(h *harness, binary string, args ...string) {
	h.t.Helper()
	log := filepath.Join(h.dir, o.name+".log")
	process, err := cluster.StartProcess(cluster.ProcessOptions{Path: binary, Args: args, Env: o.env, Output: log})
	h.must(err)
	h.t.Cleanup(func() {
		if stopErr := process.Stop(waitTimeout); stopErr != nil {
			h.t.Errorf("stopping %s: %v", o.name, stopErr)
		}
		if h.t.Failed() {
			h.t.Logf("the log of %s:\n%s", o.name, h.read(log))
		}
	})
}

// webhooks applies the webhooks in a kustomize directory of the module of the operator, but on a port of this machine
// and with a certificate of its own: tls.crt and tls.key in the directory of the harness.
func (o operator) webhooks(h *harness, dir ...string) (port int) {
	h.t.Helper()
	rendered, err := cluster.Render(o.file(h, o.module, dir...))
	h.must(err)
	listener, err := net.Listen("tcp", "127.0.0.1:0") // a port that is free now
	h.must(err)
	port = listener.Addr().(*net.TCPAddr).Port
	h.must(listener.Close())
	certificate, key, err := certutil.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	h.must(err)
	h.file("tls.crt", string(certificate))
	h.file("tls.key", string(key))
	var objects []*unstructured.Unstructured
	for _, object := range rendered {
		if object.GetKind() != "Service" {
			objects = append(objects, servedLocally(h, object, port, certificate))
		}
	}
	h.must(cluster.ApplyObjects(h.ctx, h.cluster.RESTConfig(), objects))
	return port
}

func (h *harness) read(path string) string {
	h.t.Helper()
	text, err := os.ReadFile(path)
	h.must(err)
	return string(text)
}

// applyYAML applies the objects of a YAML text. It waits until the webhooks of their kinds are served.
func (h *harness) applyYAML(text string) {
	h.t.Helper()
	objects := h.objects(text)
	h.eventually(func() error { return cluster.ApplyObjects(h.ctx, h.cluster.RESTConfig(), objects) })
}

func (h *harness) objects(text string) (objects []*unstructured.Unstructured) {
	h.t.Helper()
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(text)), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return objects
		}
		h.must(err)
		if len(object.Object) > 0 { // a file may begin with a licence
			objects = append(objects, object)
		}
	}
}

// applyDocumented applies the objects that a page of docs/operators says to write to a file.
func (h *harness) applyDocumented(page, file string) {
	h.t.Helper()
	h.applyYAML(h.documentedObjects(page, file))
}

// documentedObjects returns what a page of docs/operators says to write to a file.
func (h *harness) documentedObjects(page, file string) string {
	h.t.Helper()
	_, block, found := strings.Cut(h.read(filepath.Join("..", "..", "docs", "operators", page)), "```yaml\n# "+file+"\n")
	if !found {
		h.t.Fatalf("%s has no block for %s", page, file)
	}
	block, _, _ = strings.Cut(block, "```\n")
	return block
}

// podsWith returns the pods with labels.
func (h *harness) podsWith(selector string) ([]corev1.Pod, error) {
	list, err := h.client.CoreV1().Pods(namespace).List(h.ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// waitTogether returns an error unless there are count pods with the labels and all of them wait for resources.
func (h *harness) waitTogether(selector string, count int) error {
	list, err := h.podsWith(selector)
	if err == nil && len(list) != count {
		err = fmt.Errorf("%d pods with %s exist, want %d", len(list), selector, count)
	}
	for i := range list {
		err = errors.Join(err, h.waits(namespace, list[i].Name, "Unschedulable", "nodes are available"))
	}
	return err
}

// runTogether returns an error unless there are count pods with the labels and all of them run.
func (h *harness) runTogether(selector string, count int) error {
	list, err := h.podsWith(selector)
	if err == nil && len(list) != count {
		err = fmt.Errorf("%d pods with %s exist, want %d", len(list), selector, count)
	}
	for i := range list {
		if phase := list[i].Status.Phase; phase != corev1.PodRunning {
			err = errors.Join(err, fmt.Errorf("pod %s is %s", list[i].Name, phase))
		}
	}
	return err
}

// end ends pods with success, as a kubelet does.
func (h *harness) end(selector string) {
	h.t.Helper()
	list, err := h.podsWith(selector)
	h.must(err)
	h.each(len(list), func(i int) error {
		_, patchErr := h.client.CoreV1().Pods(namespace).Patch(h.ctx, list[i].Name, types.MergePatchType, []byte(`{"status":{"phase":"Succeeded"}}`), metav1.PatchOptions{}, "status")
		return patchErr
	})
}

// hasCondition returns an error unless a condition of the object of an operator is True.
func (h *harness) hasCondition(resource schema.GroupVersionResource, name, condition string) error {
	client, err := dynamic.NewForConfig(h.cluster.RESTConfig())
	if err != nil {
		return err
	}
	object, err := client.Resource(resource).Namespace(namespace).Get(h.ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == condition && c["status"] == "True" {
			return nil
		}
	}
	return errors.Join(err, fmt.Errorf("%s %s is not %s: %v", resource.Resource, name, condition, conditions))
}

// fillOneOf creates nodes for a number of pods with 1 cpu, and a pod on one of them: a gang of that number would fit the
// empty nodes, and does not fit now.
func (h *harness) fillOneOf(count int) {
	h.t.Helper()
	h.do(nodes("n", count, "1cpu"), plain("beside", 1, "1cpu"))
	h.eventually(func() error { return h.bound(namespace, "beside-0") })
}

// freeNode deletes the pod of fillOneOf.
func (h *harness) freeNode() {
	h.t.Helper()
	h.must(h.client.CoreV1().Pods(namespace).Delete(h.ctx, "beside-0", metav1.DeleteOptions{}))
}
