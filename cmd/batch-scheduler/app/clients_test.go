// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/metrics"
)

func TestClients(t *testing.T) {
	var requests []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		agent, _, _ := strings.Cut(req.UserAgent(), "/")
		requests = append(requests, fmt.Sprintf("%s %s %s as %s", agent, req.Method, req.URL.Path, req.Header.Get("Content-Type")))
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusConflict)
		fmt.Fprint(w, `{"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "Conflict", "code": 409}`)
	}))
	defer server.Close()
	registry := prometheus.NewRegistry()
	opts := NewOptions()
	opts.Master = server.URL
	api, err := newClients(opts, metrics.New(registry))
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	_ = api.kube.CoreV1().Pods("n").Bind(ctx, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "p"}}, metav1.CreateOptions{})
	_, _ = api.kube.CoreV1().Pods("n").Get(ctx, "p", metav1.GetOptions{})
	_, _ = api.batch.SchedulingV1alpha1().PodGroups("n").UpdateStatus(ctx, &v1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: "g"}}, metav1.UpdateOptions{})
	_ = api.lease.CoordinationV1().Leases("n").Delete(ctx, "l", metav1.DeleteOptions{})

	want := []string{
		"batch-scheduler POST /api/v1/namespaces/n/pods/p/binding as application/vnd.kubernetes.protobuf",
		"batch-scheduler GET /api/v1/namespaces/n/pods/p as ",
		"batch-scheduler PUT /apis/scheduling.batch-scheduler.dev/v1alpha1/namespaces/n/podgroups/g/status as application/json",
		"batch-scheduler DELETE /apis/coordination.k8s.io/v1/namespaces/n/leases/l as application/vnd.kubernetes.protobuf",
	}
	if diff := cmp.Diff(want, requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	counted := `
# HELP batch_scheduler_api_writes_total [ALPHA] Write requests to the API server, by response code. The scheduler retries after a conflict (409).
# TYPE batch_scheduler_api_writes_total counter
batch_scheduler_api_writes_total{code="409",resource="leases",verb="delete"} 1
batch_scheduler_api_writes_total{code="409",resource="podgroups/status",verb="update"} 1
batch_scheduler_api_writes_total{code="409",resource="pods/binding",verb="create"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(counted), "batch_scheduler_api_writes_total"); err != nil {
		t.Error(err)
	}
}

func TestUnansweredWritesAreCounted(t *testing.T) {
	server := httptest.NewServer(nil)
	server.Close()
	registry := prometheus.NewRegistry()
	counter := newWriteCounter(http.DefaultTransport, metrics.New(registry))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/api/v1/namespaces/n/pods/p/eviction", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := counter.RoundTrip(req); err == nil {
		t.Fatal("a server that is closed answered")
	}
	want := `
# HELP batch_scheduler_api_writes_total [ALPHA] Write requests to the API server, by response code. The scheduler retries after a conflict (409).
# TYPE batch_scheduler_api_writes_total counter
batch_scheduler_api_writes_total{code="0",resource="pods/eviction",verb="create"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "batch_scheduler_api_writes_total"); err != nil {
		t.Error(err)
	}
}

func TestRateLimit(t *testing.T) {
	type limit struct {
		QPS   float32
		Burst int
	}
	for name, tc := range map[string]struct{ given, want limit }{
		"none by default":                   {given: limit{0, 0}, want: limit{-1, 0}},
		"none for a negative rate":          {given: limit{-5, 100}, want: limit{-1, 0}},
		"the burst is one second's":         {given: limit{50, 0}, want: limit{50, 50}},
		"a rate below one has a burst of 1": {given: limit{0.5, -1}, want: limit{0.5, 1}},
		"both as given":                     {given: limit{50, 200}, want: limit{50, 200}},
	} {
		t.Run(name, func(t *testing.T) {
			qps, burst := rateLimit(tc.given.QPS, tc.given.Burst)
			if diff := cmp.Diff(tc.want, limit{qps, burst}); diff != "" {
				t.Errorf("limit (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFindingTheAPIServer(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	kubeconfig := file(t, "kubeconfig", "clusters: 5")
	for name, tc := range map[string]struct {
		given Options
		want  string // beginning of the error
	}{
		"outside of a pod a flag is needed": {want: "no API server is known: this process does not run in a pod; give --kubeconfig or --master"},
		"a kubeconfig that is missing":      {given: Options{Kubeconfig: "/none"}, want: "finding the API server: stat /none: no such file or directory"},
		"a file that is not a kubeconfig":   {given: Options{Kubeconfig: kubeconfig}, want: "finding the API server: error loading config file"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := restConfig(&tc.given)
			if err == nil || !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("got error %v, want %s", err, tc.want)
			}
		})
	}
}
