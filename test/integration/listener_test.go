// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/batch-scheduler/batch-scheduler/test/scheduler"
)

// listener stands between a client and the API server, and notes what is asked for. It changes nothing.
type listener struct {
	kubeconfig string // of the scheduler's account, by way of the listener

	mu   sync.Mutex
	asks map[string]sets.Set[string] // verbs by resource
}

func (h *harness) listen() *listener {
	h.t.Helper()
	target, err := url.Parse(h.cluster.RESTConfig().Host)
	h.must(err)
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(h.cluster.RESTConfig()))
	h.must(err)
	forward := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1, // watches
	}
	l := &listener{asks: map[string]sets.Set[string]{}}
	server := httptest.NewTLSServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		l.note(in)
		forward.ServeHTTP(out, in)
	}))
	h.t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	l.kubeconfig = filepath.Join(h.dir, "listener.kubeconfig")
	h.must(h.cluster.ServiceAccountKubeconfig(h.ctx, scheduler.Namespace, scheduler.Account, l.kubeconfig))
	config, err := clientcmd.LoadFromFile(l.kubeconfig)
	h.must(err)
	for _, c := range config.Clusters {
		c.Server = server.URL
		c.CertificateAuthorityData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	}
	h.must(clientcmd.WriteToFile(*config, l.kubeconfig))
	return l
}

func (l *listener) note(in *http.Request) {
	resolver := request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	info, err := resolver.NewRequestInfo(in)
	if err != nil || !info.IsResourceRequest {
		return
	}
	what := resourceName(info.APIGroup, info.Resource, info.Subresource)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.asks[what] == nil {
		l.asks[what] = sets.New[string]()
	}
	l.asks[what].Insert(info.Verb)
}

// received returns what was asked for so far.
func (l *listener) received() rights {
	l.mu.Lock()
	defer l.mu.Unlock()
	heard := rights{}
	for what, verbs := range l.asks {
		heard[what] = strings.Join(sets.List(verbs), " ")
	}
	return heard
}
