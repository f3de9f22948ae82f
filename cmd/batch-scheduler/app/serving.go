// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/pprof"
	"strconv"
	"sync/atomic"
	"time"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"
)

// shutdownTimeout is the time limit of requests in progress after the server is stopped.
const shutdownTimeout = 5 * time.Second

// check returns an error if the component is not healthy or not ready.
type check func() error

// endpoints of the HTTPS server.
type endpoints struct {
	live    []check      // behind /healthz and /livez
	ready   []check      // behind /readyz
	metrics http.Handler // behind /metrics, protected by access
	access  *access
	profile bool // serve /debug/pprof/, protected by access
}

// handler serves GET and HEAD requests for the endpoints; all others are errors.
func (e endpoints) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /healthz", probe(e.live))
	mux.Handle("GET /livez", probe(e.live))
	mux.Handle("GET /readyz", probe(e.ready))
	mux.Handle("GET /metrics", e.access.protect(e.metrics))
	if e.profile {
		// The index also serves the named profiles, such as heap. The request sets the duration of CPU profiles and
		// traces, so the server has no write timeout.
		for path, handler := range map[string]http.HandlerFunc{
			"": pprof.Index, "cmdline": pprof.Cmdline, "profile": pprof.Profile, "symbol": pprof.Symbol, "trace": pprof.Trace,
		} {
			mux.Handle("GET /debug/pprof/"+path, e.access.protect(handler))
		}
	}
	return mux
}

// probe responds with "ok", or with code 503 and the first failed check.
func probe(checks []check) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		for _, check := range checks {
			if err := check(); err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
				return
			}
		}
		fmt.Fprint(w, "ok")
	})
}

// listen opens the port of the options. It returns nil without an error if the port is 0.
func listen(opts *Options) (net.Listener, error) {
	if opts.SecurePort == 0 {
		return nil, nil
	}
	l, err := net.Listen("tcp", net.JoinHostPort(opts.BindAddress, strconv.Itoa(opts.SecurePort)))
	if err != nil {
		return nil, fmt.Errorf("serving health and metrics (--bind-address, --secure-port): %w", err)
	}
	return l, nil
}

// serve responds to requests on the listener until ctx ends, and returns after the last request. It closes the
// listener.
func serve(ctx context.Context, l net.Listener, certificate certificateSource, handler http.Handler) error {
	logger := klog.FromContext(ctx)
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		IdleTimeout:       90 * time.Second,
		MaxHeaderBytes:    64 << 10,
		TLSConfig:         &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certificate},
		BaseContext:       func(net.Listener) context.Context { return klog.NewContext(context.Background(), logger) },
		ErrorLog:          log.New(handshakeLog{logger}, "", 0),
	}
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		limited, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
		defer cancel()
		stopped <- server.Shutdown(limited)
	})
	if err := server.ServeTLS(l, "", ""); !errors.Is(err, http.ErrServerClosed) {
		stop()
		return fmt.Errorf("serving health and metrics: %w", err)
	}
	return <-stopped
}

// handshakeLog logs the connection errors of net/http, mostly failed TLS handshakes of port scanners and of probes
// without TLS.
type handshakeLog struct {
	logger klog.Logger
}

// Write implements io.Writer.
func (l handshakeLog) Write(line []byte) (int, error) {
	l.logger.V(4).Info("Connection failed", "reason", string(line))
	return len(line), nil
}

// certificateSource returns the certificate of a handshake, as tls.Config.GetCertificate.
type certificateSource func(*tls.ClientHelloInfo) (*tls.Certificate, error)

// newCertificateSource reads the files of the options, or generates a self-signed certificate if they name none. It
// fails if the files do not contain a certificate and its key.
func newCertificateSource(opts *Options) (certificateSource, error) {
	if opts.TLSCertFile == "" {
		return selfSigned(opts.BindAddress)
	}
	var last atomic.Pointer[tls.Certificate]
	read := func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		c, err := tls.LoadX509KeyPair(opts.TLSCertFile, opts.TLSPrivateKeyFile)
		if err == nil {
			last.Store(&c)
			return &c, nil
		}
		// While the files are being replaced, certificate and key may not match.
		if c := last.Load(); c != nil {
			return c, nil
		}
		return nil, fmt.Errorf("reading --tls-cert-file and --tls-private-key-file: %w", err)
	}
	_, err := read(nil)
	return read, err
}

func selfSigned(address string) (certificateSource, error) {
	var ips []net.IP
	if ip := net.ParseIP(address); !ip.IsUnspecified() {
		ips = append(ips, ip)
	}
	cert, key, err := certutil.GenerateSelfSignedCertKey("batch-scheduler", ips, []string{"localhost"})
	if err != nil {
		return nil, fmt.Errorf("creating a self-signed certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("creating a self-signed certificate: %w", err)
	}
	return func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &pair, nil }, nil
}
