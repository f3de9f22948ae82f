// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/test/cluster"
	"github.com/batch-scheduler/batch-scheduler/test/workloads"
)

// TestEvictedJobSetsComeBack: reclaim evicts a gang of 8 pods, which the controller of JobSet has created from the sample,
// as two Jobs. With the policy of the sample the Jobs create the pods again, and the JobSet completes. Without it both
// Jobs and the JobSet fail.
func TestEvictedJobSetsComeBack(t *testing.T) {
	controller := jobSet.build(t) // no other case runs meanwhile: parallel ones wait for the end of this part
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

var jobSet = operator{name: "jobset", dir: "../jobset", program: "sigs.k8s.io/jobset", module: "sigs.k8s.io/jobset"}

// startJobSet installs JobSet from the files of its module, and runs its controller with its webhooks.
func (h *harness) startJobSet(binary string) {
	h.t.Helper()
	jobSet.install(h, "config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml")
	port := jobSet.webhooks(h, "config", "components", "webhook")
	jobSet.start(h, binary, "--kubeconfig="+h.cluster.Kubeconfig, "--config="+h.file("jobset.yaml", fmt.Sprintf(jobSetConfiguration, port, h.dir)))
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
