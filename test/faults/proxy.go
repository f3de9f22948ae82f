// Package faults stands between a scheduler and the API server and has requests go wrong: answered
// with an error, cut, delayed or lost, before they take effect or after it.
//
//	p, err := faults.Start(faults.Options{Target: cluster.RESTConfig(), Seed: 1})
//	defer p.Close()
//	err = p.Kubeconfig(direct, byWayOfTheProxy)
//	p.Set(faults.Rule{Kinds: []faults.Kind{faults.Bind}, Percent: 10, Faults: faults.All})
//
// Which request goes wrong, and how, depends on nothing but the seed, the object that it is about
// and how many requests of its kind there were about that object. So whatever the order is in
// which requests arrive, a run with the same seed meets the same faults.
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

// Options are what a proxy is made of.
type Options struct {
	// Target is where the API server is and how it is known. No credentials of it are used: those
	// of each request go on with it.
	Target *rest.Config

	// Seed decides what goes wrong.
	Seed uint64
}

// Proxy is a proxy that runs. Its methods may be called at any time from anywhere.
type Proxy struct {
	address     string
	certificate tls.Certificate
	authority   []byte // PEM
	forward     *httputil.ReverseProxy
	fates       *fates
	journal     *journal

	mu      sync.Mutex
	server  *http.Server // nil while nobody listens
	watches map[*context.CancelFunc]struct{}
}

// Start starts a proxy on a free port of loopback. Nothing goes wrong until Set.
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
	go func(s *http.Server) { _ = s.ServeTLS(l, "", "") }(p.server) // until Close, which is all it says
	return nil
}

// Down cuts all connections and has new ones refused.
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

// Close ends the proxy.
func (p *Proxy) Close() error { return p.Down() }

// Kubeconfig writes a copy of a kubeconfig by which requests take the way through the proxy.
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

// Set has requests go wrong by these rules from now on, and by no others. The first rule that is
// about the kind of a request counts.
func (p *Proxy) Set(rules ...Rule) { p.fates.set(rules) }

// CutWatches cuts all watches in the middle, and returns how many there were.
func (p *Proxy) CutWatches() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for cancel := range p.watches {
		(*cancel)()
	}
	return len(p.watches)
}

// serve lets one request take its way or go wrong.
func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
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

// pass hands the request on, and the answer back.
func (p *Proxy) pass(w http.ResponseWriter, r *http.Request, request request) {
	p.forward.ServeHTTP(&noting{w, func(code int) { p.journal.answered(request, code) }}, r)
}

// noting has the code of an answer noted before the client gets it: who asks the journal after that
// must find it there.
type noting struct {
	http.ResponseWriter
	note func(code int)
}

func (n *noting) WriteHeader(code int) {
	n.note(code)
	n.ResponseWriter.WriteHeader(code)
}

// Unwrap lets the answer be flushed.
func (n *noting) Unwrap() http.ResponseWriter { return n.ResponseWriter }

// watch lets a watch run until it is cut, or refuses it, or begins it and ends it with an error.
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
		panic(http.ErrAbortHandler) // cut, not ended
	}
}
