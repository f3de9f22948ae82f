// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	certutil "k8s.io/client-go/util/cert"
)

// fakeAccess authenticates three users by their bearer tokens. The first may read metrics; for the third, authorization
// fails with an error.
func fakeAccess() *access {
	return &access{
		authn: authenticator.RequestFunc(func(req *http.Request) (*authenticator.Response, bool, error) {
			name, ok := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer ")
			if !ok {
				return nil, false, nil
			}
			if name == "forged" {
				return nil, false, errors.New("invalid token")
			}
			return &authenticator.Response{User: &user.DefaultInfo{Name: name}}, true, nil
		}),
		authz: authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
			switch {
			case a.GetUser().GetName() == "prometheus" && a.GetVerb() == "get" && a.GetPath() == "/metrics":
				return authorizer.DecisionAllow, "", nil
			case a.GetUser().GetName() == "developer" && a.GetVerb() == "get" && strings.HasPrefix(a.GetPath(), "/debug/pprof/"):
				return authorizer.DecisionAllow, "", nil
			case a.GetUser().GetName() == "unlucky":
				return authorizer.DecisionNoOpinion, "", errors.New("no answer")
			default:
				return authorizer.DecisionNoOpinion, "", nil
			}
		}),
	}
}

// startServing serves the endpoints on loopback until the test ends. It returns a client that trusts any certificate,
// and the address.
func startServing(t *testing.T, source certificateSource, e endpoints) (*http.Client, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, l, source, e.handler()) }()
	client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serving ended with an error: %v", err)
		}
	})
	return client, "https://" + l.Addr().String()
}

func loopbackCertificate(t *testing.T) certificateSource {
	t.Helper()
	source, err := selfSigned("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	return source
}

func TestServing(t *testing.T) {
	sick := errors.New("cycle loop: no cycle for 1m0s")
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "metrics") })
	good := endpoints{live: []check{func() error { return nil }}, ready: []check{func() error { return nil }}, metrics: metrics}
	bad := endpoints{live: []check{func() error { return nil }, func() error { return sick }}, metrics: metrics,
		ready: []check{func() error { return errors.New("the informers are not synced yet") }}}
	profiled := endpoints{metrics: metrics, profile: true}
	source := loopbackCertificate(t)

	type answer struct {
		Code int
		Body string
	}
	for name, tc := range map[string]struct {
		given  endpoints
		method string // GET if empty
		path   string
		user   string
		want   answer
	}{
		"health is open":                    {given: good, path: "/healthz", want: answer{200, "ok"}},
		"liveness is open":                  {given: good, path: "/livez", want: answer{200, "ok"}},
		"readiness is open":                 {given: good, path: "/readyz", want: answer{200, "ok"}},
		"health has the error":              {given: bad, path: "/healthz", want: answer{503, "cycle loop: no cycle for 1m0s\n"}},
		"liveness has the error":            {given: bad, path: "/livez", want: answer{503, "cycle loop: no cycle for 1m0s\n"}},
		"readiness has the error":           {given: bad, path: "/readyz", want: answer{503, "the informers are not synced yet\n"}},
		"metrics for an authorized user":    {given: good, path: "/metrics", user: "prometheus", want: answer{200, "metrics"}},
		"no metrics without a token":        {given: good, path: "/metrics", want: answer{401, "Unauthorized: give the bearer token of a service account\n"}},
		"no metrics for forged tokens":      {given: good, path: "/metrics", user: "forged", want: answer{401, "Unauthorized: give the bearer token of a service account\n"}},
		"no metrics for other users":        {given: good, path: "/metrics", user: "alice", want: answer{403, "Forbidden: needs a role with verb get on this path (nonResourceURLs)\n"}},
		"no metrics if authorization fails": {given: good, path: "/metrics", user: "unlucky", want: answer{500, "Internal Server Error: the authorization check at the API server failed\n"}},
		"nothing can be written":            {given: good, path: "/healthz", method: http.MethodPost, want: answer{405, "Method Not Allowed\n"}},
		"nothing else is served":            {given: good, path: "/", user: "prometheus", want: answer{404, "404 page not found\n"}},
		"metrics have no other spelling":    {given: good, path: "/metrics/", user: "alice", want: answer{404, "404 page not found\n"}},
		"profiles for an authorized user":   {given: profiled, path: "/debug/pprof/cmdline", user: "developer", want: answer{200, strings.Join(os.Args, "\x00")}},
		"no profiles without a token":       {given: profiled, path: "/debug/pprof/heap", want: answer{401, "Unauthorized: give the bearer token of a service account\n"}},
		"no profiles for other users":       {given: profiled, path: "/debug/pprof/profile", user: "prometheus", want: answer{403, "Forbidden: needs a role with verb get on this path (nonResourceURLs)\n"}},
		"the profiler is not served":        {given: good, path: "/debug/pprof/", user: "prometheus", want: answer{404, "404 page not found\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.given.access = fakeAccess()
			client, address := startServing(t, source, tc.given)
			method := tc.method
			if method == "" {
				method = http.MethodGet
			}
			req, err := http.NewRequestWithContext(t.Context(), method, address+tc.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			if tc.user != "" {
				req.Header.Set("Authorization", "Bearer "+tc.user)
			}
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, answer{resp.StatusCode, string(body)}); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSelfSignedCertificateNamesItsAddress(t *testing.T) {
	certificate, err := loopbackCertificate(t)(nil)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(certificate.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"127.0.0.1", "localhost"} {
		if err := leaf.VerifyHostname(name); err != nil {
			t.Error(err)
		}
	}
}

// writePair makes a certificate for a host and writes it and its key to files.
func writePair(t *testing.T, opts *Options, host string) {
	t.Helper()
	cert, key, err := certutil.GenerateSelfSignedCertKey(host, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for path, data := range map[string][]byte{opts.TLSCertFile: cert, opts.TLSPrivateKeyFile: key} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCertificateFilesAreReadAgain(t *testing.T) {
	dir := t.TempDir()
	opts := NewOptions()
	opts.TLSCertFile, opts.TLSPrivateKeyFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	writePair(t, opts, "first.example")
	source, err := newCertificateSource(opts)
	if err != nil {
		t.Fatal(err)
	}
	wantHost := func(host string) {
		t.Helper()
		certificate, err := source(nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := certificate.Leaf.VerifyHostname(host); err != nil {
			t.Error(err)
		}
	}
	wantHost("first.example")
	writePair(t, opts, "second.example")
	wantHost("second.example")
	if err := os.WriteFile(opts.TLSPrivateKeyFile, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	wantHost("second.example") // half of a change leaves the last good pair
}

func TestCertificateFilesMustBeGoodAtTheStart(t *testing.T) {
	opts := NewOptions()
	opts.TLSCertFile, opts.TLSPrivateKeyFile = file(t, "tls.crt", "x"), file(t, "tls.key", "y")
	_, err := newCertificateSource(opts)
	want := "reading --tls-cert-file and --tls-private-key-file: tls: failed to find any PEM data in certificate input"
	if err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
}

func TestListen(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for name, tc := range map[string]struct {
		port int
		want string // beginning of the error
	}{
		"port 0 serves nothing": {port: 0},
		"a port that is in use": {
			port: taken.Addr().(*net.TCPAddr).Port,
			want: fmt.Sprintf("serving health and metrics (--bind-address, --secure-port): listen tcp %s: bind: address already in use", taken.Addr()),
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := listen(&Options{BindAddress: "127.0.0.1", SecurePort: tc.port})
			if l != nil {
				t.Errorf("listens on %s", l.Addr())
			}
			if got := fmt.Sprint(err); tc.want != "" && got != tc.want || tc.want == "" && err != nil {
				t.Errorf("got error %v, want %q", err, tc.want)
			}
		})
	}
}
