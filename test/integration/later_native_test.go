// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/batch-scheduler/batch-scheduler/test/cluster"
)

// The API server of Kubernetes 1.36 serves neither the versions of PodGroup of 1.37 nor composite groups, and it serves no
// CustomResourceDefinition of their API group: it answers all paths below /apis/scheduling.k8s.io itself, with 404 for versions
// that it does not know. So the objects are those of CustomResourceDefinitions of another group, and an extension API server,
// to which the API server hands the versions over, serves them by their real names. Clients see no difference: the API
// server authenticates and authorizes them, and validates the objects against the fields of 1.37.
const (
	nativeGroup  = "scheduling.k8s.io"
	storageGroup = "native137.test"
)

// serve137 has the API server serve scheduling.k8s.io/v1beta1 and v1alpha3.
func (h *harness) serve137() {
	h.t.Helper()
	service := fmt.Sprintf(`{apiVersion: v1, kind: Service, metadata: {name: native137, namespace: %s}, spec: {type: ExternalName, externalName: localhost}}`, namespace)
	definitions := strings.ReplaceAll(h.read(filepath.Join("testdata", "groups", "native137.crd.yaml")), nativeGroup, storageGroup)
	for _, text := range []string{service, definitions} { // the API server sees the Service before an APIService names it
		h.must(cluster.ApplyObjects(h.ctx, h.cluster.RESTConfig(), h.objects(text)))
	}
	transport, err := rest.TransportFor(h.cluster.RESTConfig())
	h.must(err)
	server := httptest.NewTLSServer(extensionServer{h.cluster.RESTConfig().Host, transport})
	h.t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	at, err := url.Parse(server.URL)
	h.must(err)
	versions := []string{"v1beta1", "v1alpha3"}
	for _, version := range versions {
		h.must(cluster.ApplyObjects(h.ctx, h.cluster.RESTConfig(), h.objects(fmt.Sprintf(`apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: %s.%s}
spec:
  group: %s
  version: %s
  service: {name: native137, namespace: %s, port: %s}
  insecureSkipTLSVerify: true
  groupPriorityMinimum: 1000
  versionPriority: 1`, version, nativeGroup, nativeGroup, version, namespace, at.Port()))))
	}
	for _, version := range versions {
		asked := 0
		h.eventually(func() error {
			_, err := h.client.Discovery().ServerResourcesForGroupVersion(nativeGroup + "/" + version)
			if asked++; err != nil && asked%100 == 0 { // a change has the API server look for the service again
				path := "/apis/apiregistration.k8s.io/v1/apiservices/" + version + "." + nativeGroup
				patch := fmt.Sprintf(`{"metadata":{"annotations":{"asked":"%d"}}}`, asked)
				h.must(h.client.Discovery().RESTClient().Patch(types.MergePatchType).AbsPath(path).Body([]byte(patch)).Do(h.ctx).Error())
			}
			return err
		})
	}
}

// extensionServer serves the objects of storageGroup as those of nativeGroup. It is an administrator: who may do what has been
// decided before.
type extensionServer struct {
	host      string
	transport http.RoundTripper
}

// ServeHTTP implements http.Handler.
func (s extensionServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	target, kind := s.host+strings.Replace(r.URL.Path, nativeGroup, storageGroup, 1), r.Header.Get("Content-Type")
	if kind == string(types.StrategicMergePatchType) { // which only built-in kinds have
		kind = string(types.MergePatchType)
		if body, err = s.merged(r.Context(), target, body); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	target += "?" + r.URL.RawQuery
	request, err := http.NewRequestWithContext(r.Context(), r.Method, target, strings.NewReader(strings.ReplaceAll(string(body), nativeGroup, storageGroup)))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("Content-Type", kind)
	request.Header.Set("User-Agent", r.UserAgent())
	response, err := s.transport.RoundTrip(request)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer response.Body.Close()
	w.Header().Set("Content-Type", response.Header.Get("Content-Type"))
	w.WriteHeader(response.StatusCode)
	lines, flush := bufio.NewReader(response.Body), http.NewResponseController(w)
	for { // a watch has a line for each event
		line, err := lines.ReadString('\n')
		if _, writeErr := io.WriteString(w, strings.ReplaceAll(line, storageGroup, nativeGroup)); err != nil || writeErr != nil {
			return
		}
		if flush.Flush() != nil {
			return
		}
	}
}

// merged returns a strategic merge patch of conditions as a merge patch, which has all conditions: those of the patch replace
// those of the same type.
func (s extensionServer) merged(ctx context.Context, target string, patch []byte) ([]byte, error) {
	type object struct {
		Metadata struct {
			UID types.UID `json:"uid"`
		} `json:"metadata"`
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	response, err := s.transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var shown, change object
	if err := json.NewDecoder(response.Body).Decode(&shown); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(patch, &change); err != nil {
		return nil, err
	}
	for i := range change.Status.Conditions {
		meta.SetStatusCondition(&shown.Status.Conditions, change.Status.Conditions[i])
	}
	change.Status = shown.Status
	return json.Marshal(change)
}
