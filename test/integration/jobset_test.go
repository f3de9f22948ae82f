// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/yaml"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/test/cluster"
	"github.com/batch-scheduler/batch-scheduler/test/workloads"
)

// TestEvictedJobSetsComeBack: reclaim evicts a gang of 8 pods, which the controller of JobSet has created from the sample,
// as two Jobs. With the policy of the sample the Jobs create the pods again, and the JobSet completes. Without it both
// Jobs and the JobSet fail.
func TestEvictedJobSetsComeBack(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	controller := buildJobSet(t) // no other case runs meanwhile: parallel ones wait for the end of this part
	t.Parallel()
	for name, test := range map[string]struct {
		edit  func(job map[string]any)
		after func(*harness, plugin) // the eviction
	}{
		"with the policy of the sample": {
			edit: func(map[string]any) {},
			after: func(h *harness, p plugin) {
				h.eventually(func() error { return h.groupIs("islands", "Pending OverShare: 8 pending, 0 running") })
				h.must(difference("[0 failed 0 failed]", fmt.Sprint(h.jobsOf("islands"))))
				p.prints("why jobset/islands", "PodGroup: default/islands")

				h.do(remove("preemptor"))
				h.eventually(func() error { return h.groupIs("islands", "Running Scheduled: 0 pending, 8 running") })
				h.do(succeed("islands"))
				h.eventually(func() error { return difference("Completed AllJobsCompleted", h.jobSetIs("islands")) })
				h.must(difference("[Complete CompletionsReached, 0 failed Complete CompletionsReached, 0 failed]", fmt.Sprint(h.jobsOf("islands"))))
				h.eventually(func() error { return h.groupIs("islands", "Finished Scheduled: 0 pending, 0 running") })
			},
		},
		"without a policy": {
			edit: func(job map[string]any) {
				unstructured.RemoveNestedField(job, "template", "spec", "podFailurePolicy")
				_ = unstructured.SetNestedField(job, int64(0), "template", "spec", "backoffLimit")
			},
			after: func(h *harness, _ plugin) {
				h.eventually(func() error { return difference("Failed FailedJobs", h.jobSetIs("islands")) })
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, cluster.Options{ControllerManager: true, JobRunTime: time.Hour})
			h.do(threeNodes, queue("lender", 1), queue("other", 1))
			h.startJobSet(controller)
			h.do(sampleJobSet("lender", test.edit))
			h.start("--scheduler-conf=" + h.file("policy.yaml", evictingPolicy))
			h.eventually(func() error { return h.groupIs("islands", "Running Scheduled: 0 pending, 8 running") })
			h.do(gang("preemptor", 6, pods(6, "1cpu"), in("other")))
			h.eventually(func() error { return h.groupIs("preemptor", "Running Scheduled: 0 pending, 6 running") })
			test.after(h, h.newPlugin())
		})
	}
}

// sampleJobSet creates the JobSet of the sample and its PodGroup, in a queue, with an edit of its only replicatedJob.
func sampleJobSet(queue string, edit func(job map[string]any)) row {
	return func(h *harness) {
		samples, err := workloads.ReadAll("../../config/samples/workloads")
		h.must(err)
		for _, s := range samples {
			if s.Name == "jobset" {
				s.Group.Spec.Queue = queue
				h.apply(s.Group, v1alpha1.SchemeGroupVersion.WithKind("PodGroup"))
			}
		}
		text, err := os.ReadFile("../../config/samples/workloads/jobset.yaml")
		h.must(err)
		_, document, _ := strings.Cut(string(text), "\n---\n")
		set := parseObject(h, document)
		jobs, _, err := unstructured.NestedSlice(set.Object, "spec", "replicatedJobs")
		h.must(err)
		edit(jobs[0].(map[string]any))
		h.must(unstructured.SetNestedSlice(set.Object, jobs, "spec", "replicatedJobs"))
		h.eventually(func() error { // its webhooks may not be served yet
			_, err := h.jobSets().Create(h.ctx, set, metav1.CreateOptions{})
			return err
		})
	}
}

func (h *harness) jobSets() dynamic.ResourceInterface {
	client, err := dynamic.NewForConfig(h.cluster.RESTConfig())
	h.must(err)
	return client.Resource(schema.GroupVersionResource{Group: "jobset.x-k8s.io", Version: "v1alpha2", Resource: "jobsets"}).Namespace(namespace)
}

// jobSetIs returns how a JobSet has ended; empty if it has not.
func (h *harness) jobSetIs(name string) string {
	set, err := h.jobSets().Get(h.ctx, name, metav1.GetOptions{})
	h.must(err)
	conditions, _, err := unstructured.NestedSlice(set.Object, "status", "conditions")
	h.must(err)
	for _, c := range conditions {
		if c := c.(map[string]any); (c["type"] == "Completed" || c["type"] == "Failed") && c["status"] == "True" {
			return fmt.Sprint(c["type"], " ", c["reason"])
		}
	}
	return ""
}

// jobsOf returns the state of each Job of a JobSet, see jobIs.
func (h *harness) jobsOf(set string) []string {
	list, err := h.client.BatchV1().Jobs(namespace).List(h.ctx, metav1.ListOptions{LabelSelector: "jobset.sigs.k8s.io/jobset-name=" + set})
	h.must(err)
	var states []string
	for i := range list.Items {
		states = append(states, h.jobIs(list.Items[i].Name))
	}
	return states
}

// jobSetModule is the directory of the module that requires the controller.
const jobSetModule = "../jobset"

// buildJobSet builds the controller of JobSet. It skips the test if the modules are not available, because the Go module
// proxy cannot be reached.
func buildJobSet(t *testing.T) (binary string) {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "sigs.k8s.io/jobset") // downloads what is missing
	list.Dir = jobSetModule
	if output, err := list.CombinedOutput(); err != nil {
		t.Skipf("the modules of test/jobset are not available: %v: %s", err, output)
	}
	binary = filepath.Join(t.TempDir(), "jobset")
	build := exec.CommandContext(t.Context(), "../../hack/build.sh", "-o", binary, "sigs.k8s.io/jobset")
	build.Dir = jobSetModule
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the controller of JobSet: %v: %s", err, output)
	}
	return binary
}

// startJobSet installs JobSet from the files of its module, and runs its controller as an administrator. It serves its
// webhooks on a port of this machine, with a certificate of its own.
func (h *harness) startJobSet(binary string) {
	h.t.Helper()
	list := exec.CommandContext(h.ctx, "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/jobset")
	list.Dir = jobSetModule
	output, err := list.Output()
	h.must(err)
	components := filepath.Join(strings.TrimSpace(string(output)), "config", "components")
	definition, err := os.ReadFile(filepath.Join(components, "crd", "bases", "jobset.x-k8s.io_jobsets.yaml"))
	h.must(err)
	webhooks, err := cluster.Render(filepath.Join(components, "webhook"))
	h.must(err)

	listener, err := net.Listen("tcp", "127.0.0.1:0") // a port that is free now
	h.must(err)
	port := listener.Addr().(*net.TCPAddr).Port
	h.must(listener.Close())
	certificate, key, err := certutil.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	h.must(err)
	h.file("tls.crt", string(certificate))
	h.file("tls.key", string(key))
	objects := []*unstructured.Unstructured{parseObject(h, string(definition))}
	for _, o := range webhooks {
		if o.GetKind() != "Service" {
			objects = append(objects, servedLocally(h, o, port, certificate))
		}
	}
	h.must(cluster.ApplyObjects(h.ctx, h.cluster.RESTConfig(), objects))

	controller, err := cluster.StartProcess(cluster.ProcessOptions{
		Path:   binary,
		Args:   []string{"--kubeconfig=" + h.cluster.Kubeconfig, "--config=" + h.file("jobset.yaml", fmt.Sprintf(jobSetConfiguration, port, h.dir))},
		Output: filepath.Join(h.dir, "jobset.log"),
	})
	h.must(err)
	h.t.Cleanup(func() {
		if err := controller.Stop(waitTimeout); err != nil {
			h.t.Errorf("stopping the controller of JobSet: %v", err)
		}
	})
}

const jobSetConfiguration = `apiVersion: config.jobset.x-k8s.io/v1alpha1
kind: Configuration
webhook: {host: 127.0.0.1, port: %d, certDir: %q}
metrics: {bindAddress: "0"}
health: {healthProbeBindAddress: "0"}
leaderElection: {leaderElect: false}
internalCertManagement: {enable: false}
`

// servedLocally returns a configuration of webhooks with a port of this machine instead of a Service.
func servedLocally(h *harness, configuration *unstructured.Unstructured, port int, authority []byte) *unstructured.Unstructured {
	h.t.Helper()
	var typed admissionv1.ValidatingWebhookConfiguration // a mutating one has the same fields, as far as they are needed here
	h.must(runtime.DefaultUnstructuredConverter.FromUnstructured(configuration.Object, &typed))
	for i := range typed.Webhooks {
		c := &typed.Webhooks[i].ClientConfig
		url := fmt.Sprintf("https://127.0.0.1:%d%s", port, *c.Service.Path)
		c.Service, c.URL, c.CABundle = nil, &url, authority
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&typed)
	h.must(err)
	return &unstructured.Unstructured{Object: content}
}

func parseObject(h *harness, text string) *unstructured.Unstructured {
	h.t.Helper()
	object := &unstructured.Unstructured{}
	h.must(yaml.Unmarshal([]byte(text), &object.Object))
	return object
}
