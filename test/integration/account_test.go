// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/batch-scheduler/batch-scheduler/test/scheduler"
)

// TestTheAccountOfTheScheduler makes requests with the token of the scheduler that an attacker who has it would make.
func TestTheAccountOfTheScheduler(t *testing.T) {
	h := newHarness(t, noControllers)
	h.do(node("n1", "4cpu"), gang("a", 1, pods(1, "1cpu")))
	path := filepath.Join(h.dir, "account.kubeconfig")
	h.must(h.cluster.ServiceAccountKubeconfig(h.ctx, scheduler.Namespace, scheduler.Account, path))
	config, err := clientcmd.BuildConfigFromFlags("", path)
	h.must(err)
	client, err := dynamic.NewForConfig(config)
	h.must(err)
	for name, ask := range map[string]ask{
		"reads secrets":                     {"list", "v1", "secrets", "", ""},
		"reads a secret":                    {"get", "v1", "secrets", "default", "a"},
		"watches secrets":                   {"watch", "v1", "secrets", "", ""},
		"reads config maps":                 {"list", "v1", "configmaps", "", ""},
		"reads its own config map":          {"get", "v1", "configmaps", scheduler.Namespace, "batch-scheduler"},
		"watches config maps":               {"watch", "v1", "configmaps", "", ""},
		"reads service accounts":            {"list", "v1", "serviceaccounts", "", ""},
		"makes itself a token":              {"create", "v1", "serviceaccounts/token", scheduler.Namespace, scheduler.Account},
		"reads custom resource definitions": {"list", "apiextensions.k8s.io/v1", "customresourcedefinitions", "", ""},
		"changes a resource definition":     {"patch", "apiextensions.k8s.io/v1", "customresourcedefinitions", "", "queues.scheduling.batch-scheduler.dev"},
		"changes a pod":                     {"patch", "v1", "pods", "default", "a-0"},
		"updates a pod":                     {"update", "v1", "pods", "default", "a-0"},
		"deletes a pod":                     {"delete", "v1", "pods", "default", "a-0"},
		"deletes all pods":                  {"deletecollection", "v1", "pods", "default", ""},
		"makes a pod":                       {"create", "v1", "pods", "default", "b"},
		"runs a command in a pod":           {"create", "v1", "pods/exec", "default", "a-0"},
		"reads the log of a pod":            {"get", "v1", "pods/log", "default", "a-0"},
		"changes a node":                    {"patch", "v1", "nodes", "", "n1"},
		"changes the status of a node":      {"patch", "v1", "nodes/status", "", "n1"},
		"deletes a node":                    {"delete", "v1", "nodes", "", "n1"},
		"makes a namespace":                 {"create", "v1", "namespaces", "", "b"},
		"changes a namespace":               {"patch", "v1", "namespaces", "", "default"},
		"reads roles":                       {"list", "rbac.authorization.k8s.io/v1", "clusterroles", "", ""},
		"widens its own role":               {"patch", "rbac.authorization.k8s.io/v1", "clusterroles", "", "batch-scheduler"},
		"binds a role":                      {"create", "rbac.authorization.k8s.io/v1", "clusterrolebindings", "", "b"},
		"makes a priority class":            {"create", "scheduling.k8s.io/v1", "priorityclasses", "", "b"},
		"deletes a priority class":          {"delete", "scheduling.k8s.io/v1", "priorityclasses", "", "system-node-critical"},
		"makes a webhook":                   {"create", "admissionregistration.k8s.io/v1", "mutatingwebhookconfigurations", "", "b"},
		"deletes an admission policy":       {"delete", "admissionregistration.k8s.io/v1", "validatingadmissionpolicies", "", "pods.scheduling.batch-scheduler.dev"},
		"takes another's lease":             {"patch", "coordination.k8s.io/v1", "leases", scheduler.Namespace, "other"},
		"takes a lease of the system":       {"update", "coordination.k8s.io/v1", "leases", "kube-system", "kube-scheduler"},
		"makes a lease elsewhere":           {"create", "coordination.k8s.io/v1", "leases", "kube-node-lease", "n1"},
		"changes the spec of a group":       {"patch", "scheduling.batch-scheduler.dev/v1alpha1", "podgroups", "default", "a"},
		"deletes a group":                   {"delete", "scheduling.batch-scheduler.dev/v1alpha1", "podgroups", "default", "a"},
		"changes the spec of a queue":       {"patch", "scheduling.batch-scheduler.dev/v1alpha1", "queues", "", "default"},
		"makes a queue":                     {"create", "scheduling.batch-scheduler.dev/v1alpha1", "queues", "", "b"},
		"loosens a disruption budget":       {"patch", "policy/v1", "poddisruptionbudgets", "default", "a"},
		"reads the status of a lease":       {"list", "coordination.k8s.io/v1", "leases", "", ""},
		"changes a job":                     {"patch", "batch/v1", "jobs", "default", "a"},
		"deletes an event":                  {"delete", "events.k8s.io/v1", "events", "default", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ask.do(h.ctx, client); !apierrors.IsForbidden(got) {
				t.Errorf("got %v, want a refusal", got)
			}
		})
	}
	// What it may do does not spill over to what it may not: the spec stays as it is.
	h.must(ask{"patch", "v1", "pods/status", "default", "a-0"}.do(h.ctx, client))
	pod, err := h.client.CoreV1().Pods("default").Get(h.ctx, "a-0", metav1.GetOptions{})
	h.must(err)
	if pod.Spec.ActiveDeadlineSeconds != nil || pod.Spec.NodeName != "" {
		t.Errorf("a write of the status has changed the spec: %v on %q", pod.Spec.ActiveDeadlineSeconds, pod.Spec.NodeName)
	}
}

// ask is a request of the API server.
type ask struct{ verb, version, resource, namespace, name string }

func (a ask) do(ctx context.Context, client dynamic.Interface) error {
	gv, err := schema.ParseGroupVersion(a.version)
	if err != nil {
		return err
	}
	resource, sub, _ := strings.Cut(a.resource, "/")
	var subresources []string
	if sub != "" {
		subresources = append(subresources, sub)
	}
	var of dynamic.ResourceInterface = client.Resource(gv.WithResource(resource))
	if a.namespace != "" {
		of = client.Resource(gv.WithResource(resource)).Namespace(a.namespace)
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": a.version, "kind": "Any", "metadata": map[string]any{"name": a.name, "namespace": a.namespace},
	}}
	switch a.verb {
	case "get":
		_, err = of.Get(ctx, a.name, metav1.GetOptions{}, subresources...)
	case "list":
		_, err = of.List(ctx, metav1.ListOptions{})
	case "watch":
		_, err = of.Watch(ctx, metav1.ListOptions{})
	case "create":
		_, err = of.Create(ctx, object, metav1.CreateOptions{}, subresources...)
	case "update":
		_, err = of.Update(ctx, object, metav1.UpdateOptions{}, subresources...)
	case "patch":
		patch := []byte(`{"metadata":{"annotations":{"stolen":"yes"}},"spec":{"activeDeadlineSeconds":1,"nodeName":"n1"}}`)
		_, err = of.Patch(ctx, a.name, types.MergePatchType, patch, metav1.PatchOptions{}, subresources...)
	case "delete":
		err = of.Delete(ctx, a.name, metav1.DeleteOptions{})
	case "deletecollection":
		err = of.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	}
	return err
}

// TestWhoReadsMetrics asks a running scheduler over TLS.
func TestWhoReadsMetrics(t *testing.T) {
	h := newHarness(t, noControllers)
	h.do(node("n1", "4cpu"), gang("a", 1, pods(1, "1cpu")))
	metrics, args := h.newScraper()
	h.start(args...)
	h.awaitStable(`a: Running Scheduled; 1 running`, "")
	config, err := clientcmd.BuildConfigFromFlags("", h.scheduler.Kubeconfig)
	h.must(err)
	for name, test := range map[string]struct {
		path, token string
		want        int
	}{
		"health, by anybody":                      {"/healthz", "", http.StatusOK},
		"readiness, by anybody":                   {"/readyz", "", http.StatusOK},
		"metrics without a token":                 {"/metrics", "", http.StatusUnauthorized},
		"metrics with an unknown token":           {"/metrics", "abc", http.StatusUnauthorized},
		"metrics with a token without permission": {"/metrics", config.BearerToken, http.StatusForbidden},
		"metrics with a token that has it":        {"/metrics", metrics.Token, http.StatusOK},
		"profiles, which are off":                 {"/debug/pprof/", metrics.Token, http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			code, _, failed := metrics.Ask(h.ctx, test.path, test.token)
			if failed != nil || code != test.want {
				t.Errorf("got code %d, error %v, want code %d", code, failed, test.want)
			}
		})
	}
	plain, err := http.NewRequestWithContext(h.ctx, http.MethodGet, "http://"+metrics.Address+"/metrics", nil)
	h.must(err)
	plain.Header.Set("Authorization", "Bearer "+metrics.Token)
	answer, err := http.DefaultClient.Do(plain)
	h.must(err)
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusBadRequest {
		t.Errorf("without TLS, got code %d, want %d", answer.StatusCode, http.StatusBadRequest)
	}
}
