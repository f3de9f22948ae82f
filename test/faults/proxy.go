// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package faults is a proxy between a scheduler and the API server that makes requests fail: with an error response,
// a closed connection, a delay or a lost response, before the request takes effect or after it.
//
//	p, err := faults.Start(faults.Options{Target: cluster.RESTConfig(), Seed: 1})
//	defer p.Close()
//	err = p.Kubeconfig(direct, byWayOfTheProxy)
//	p.Set(faults.Rule{Kinds: []faults.Kind{faults.Bind}, Percent: 10, Faults: faults.All})
//
// The fault of a request depends only on the seed, the object, and the number of requests of its kind for that
// object. A run with the same seed therefore has the same faults in whatever order requests arrive.
package faults

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	certutil "k8s.io/client-go/util/cert"
)

// Options configure a proxy.
type Options struct {
	// Target is the address and the CA of the API server. Its credentials are not used: the proxy forwards those of
	// each request.
	Target *rest.Config

	// Seed determines the faults.
	Seed uint64
}

// Proxy is a running proxy. It is safe for concurrent use.
type Proxy struct {
	address     string
	certificate tls.Certificate
	authority   []byte // PEM
	forward     *httputil.ReverseProxy
	fates       *fates
	journal     *journal

	mu      sync.Mutex
	server  *http.Server // nil while down
	watches map[*context.CancelFunc]struct{}
}

// Start starts a proxy on a free loopback port. No request fails before Set.
func Start(o Options) (*Proxy, error) {
	target, err := url.Parse(o.Target.Host)
	if err != nil {
		return nil, fmt.Errorf("address of the API server: %w", err)
	}
	cert, key, err := certutil.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return nil, err
	}
	p := &Proxy{authority: cert, fates: newFates(o.Seed), journal: newJournal(), watches: map[*context.CancelFunc]struct{}{}}
	if p.certificate, err = tls.X509KeyPair(cert, key); err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(o.Target.CAData)
	p.forward = &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true},
		FlushInterval: -1, // watches
		ErrorLog:      log.New(io.Discard, "", 0),
	}
	p.address = "127.0.0.1:0"
	return p, p.Up()
}

// Up listens again after Down, at the same address.
func (p *Proxy) Up() error {
	l, err := net.Listen("tcp", p.address)
	if err != nil {
		return fmt.Errorf("listening for the scheduler: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.address = l.Addr().String()
	p.server = &http.Server{
		Handler:   http.HandlerFunc(p.serve),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{p.certificate}},
		ErrorLog:  log.New(io.Discard, "", 0),
	}
	go func(s *http.Server) { _ = s.ServeTLS(l, "", "") }(p.server) // the error is always that of Close
	return nil
}

// Down closes all connections and rejects new ones.
func (p *Proxy) Down() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.server == nil {
		return nil
	}
	err := p.server.Close()
	p.server = nil
	return err
}

// Close stops the proxy.
func (p *Proxy) Close() error { return p.Down() }

// Kubeconfig writes a copy of a kubeconfig with the address of the proxy.
func (p *Proxy) Kubeconfig(from, to string) error {
	config, err := clientcmd.LoadFromFile(from)
	if err != nil {
		return fmt.Errorf("reading a kubeconfig: %w", err)
	}
	for _, cluster := range config.Clusters {
		cluster.Server = "https://" + p.address
		cluster.CertificateAuthority, cluster.CertificateAuthorityData = "", p.authority
	}
	if err = clientcmd.WriteToFile(*config, to); err != nil {
		return fmt.Errorf("writing a kubeconfig: %w", err)
	}
	return nil
}

// Set replaces the rules. The first rule for the kind of a request applies.
func (p *Proxy) Set(rules ...Rule) { p.fates.set(rules) }

// CutWatches closes all watches and returns their number.
func (p *Proxy) CutWatches() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for cancel := range p.watches {
		(*cancel)()
	}
	return len(p.watches)
}

// serve forwards a request or applies its fault.
func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	if p.journal.show(r) != nil {
		panic(http.ErrAbortHandler) // the client is gone
	}
	request := read(r)
	fault := p.fates.choose(request)
	switch {
	case request.kind == Watch:
		p.watch(w, r, fault)
	case fault == nil:
		p.pass(w, r, request)
	default:
		p.journal.fault(request, fault)
		p.fail(w, r, request, fault)
	}
}

// pass forwards the request and the response.
func (p *Proxy) pass(w http.ResponseWriter, r *http.Request, request request) {
	p.forward.ServeHTTP(&noting{w, func(code int) { p.journal.answered(request, code) }}, r)
}

// noting records the code of a response before the client receives it, so that the journal is complete for the
// client.
type noting struct {
	http.ResponseWriter
	note func(code int)
}

func (n *noting) WriteHeader(code int) {
	n.note(code)
	n.ResponseWriter.WriteHeader(code)
}

// Unwrap makes the response flushable.
func (n *noting) Unwrap() http.ResponseWriter { return n.ResponseWriter }

// watch forwards a watch until it is cut, or applies its fault.
func (p *Proxy) watch(w http.ResponseWriter, r *http.Request, fault *Fault) {
	if fault != nil {
		p.journal.fault(request{kind: Watch}, fault)
		if fault.Done {
			endStream(w, fault)
		} else {
			answer(w, fault)
		}
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	p.mu.Lock()
	p.watches[&cancel] = struct{}{}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.watches, &cancel)
		p.mu.Unlock()
		cancel()
	}()
	p.forward.ServeHTTP(w, r.WithContext(ctx))
	if ctx.Err() != nil {
		panic(http.ErrAbortHandler) // closed without an end
	}
}
