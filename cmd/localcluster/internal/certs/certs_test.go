// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package certs_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/batch-scheduler/batch-scheduler/cmd/localcluster/internal/certs"
)

func TestServerAndClientVerifyEachOther(t *testing.T) {
	ours, theirs := authority(t), authority(t)
	server := serve(t, ours)
	for name, test := range map[string]struct {
		roots, signer *certs.Authority
		name          string // with which the client calls the server
		want          string // part of the error; empty: accepted
	}{
		"the same authority":               {ours, ours, "127.0.0.1", ""},
		"another of its names":             {ours, ours, "localhost", ""},
		"the server has another authority": {theirs, ours, "127.0.0.1", "certificate signed by unknown authority"},
		"the client has another authority": {ours, theirs, "127.0.0.1", "remote error: tls"},
		"a wrong server name":              {ours, ours, "example.com", "certificate is valid for localhost, not example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := get(t, server, test.name, test.roots, test.signer)
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %q and error %v, want an error with %q", got, err, test.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff("admin of [system:masters]", got); diff != "" {
				t.Errorf("identity of the client (-want +got):\n%s", diff)
			}
		})
	}
}

// Certificates stay valid when the authority is loaded again, as after a restart.
func TestAuthorityIsLoadedAgain(t *testing.T) {
	data, err := certs.NewAuthority(moment())
	if err != nil {
		t.Fatal(err)
	}
	before, after := load(t, data), load(t, data)
	server := serve(t, after)
	if _, err = get(t, server, "localhost", before, before); err != nil {
		t.Error(err)
	}
	_, err = certs.LoadAuthority(data, moment().AddDate(1, 0, 1))
	if err == nil || !strings.Contains(err.Error(), "begin with an empty state directory") {
		t.Errorf("expired authority: got error %v", err)
	}
}

func TestClientCertificateIsNotForServers(t *testing.T) {
	a := authority(t)
	pair, err := a.Client("admin")
	if err != nil {
		t.Fatal(err)
	}
	_, err = certificate(t, pair.Certificate).Verify(x509.VerifyOptions{
		Roots: pool(t, a), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, CurrentTime: moment(),
	})
	if err == nil {
		t.Error("a client certificate is accepted as a server certificate")
	}
}

func TestLifetime(t *testing.T) {
	a := authority(t)
	c := certificate(t, a.Certificate())
	if !c.NotBefore.Before(moment()) || !c.NotAfter.After(moment().AddDate(0, 6, 0)) {
		t.Errorf("valid from %s to %s, want from before to long after %s", c.NotBefore, c.NotAfter, moment())
	}
}

func TestServiceAccountKeyFormat(t *testing.T) {
	data, err := certs.ServiceAccountKey()
	if err != nil {
		t.Fatal(err)
	}
	block, rest := pem.Decode(data)
	if block == nil || block.Type != "EC PRIVATE KEY" || len(rest) > 0 {
		t.Fatalf("got %q", data)
	}
	if _, err := x509.ParseECPrivateKey(block.Bytes); err != nil {
		t.Error(err)
	}
}

func moment() time.Time {
	return time.Now() // TLS handshakes use the real clock
}

func authority(t *testing.T) *certs.Authority {
	t.Helper()
	data, err := certs.NewAuthority(moment())
	if err != nil {
		t.Fatal(err)
	}
	return load(t, data)
}

func load(t *testing.T, data []byte) *certs.Authority {
	t.Helper()
	a, err := certs.LoadAuthority(data, moment())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// serve starts a server that requires client certificates and responds with the identity of the client.
func serve(t *testing.T, a *certs.Authority) (url string) {
	t.Helper()
	pair, err := a.Server([]string{"localhost"}, []net.IP{net.ParseIP("127.0.0.1")})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		subject := r.TLS.PeerCertificates[0].Subject
		_, _ = w.Write([]byte(subject.CommonName + " of [" + strings.Join(subject.Organization, " ") + "]"))
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // failed handshakes are expected
	server.TLS = &tls.Config{
		Certificates: []tls.Certificate{keyPair(t, pair)},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    pool(t, a),
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}

func get(t *testing.T, url, name string, roots, signer *certs.Authority) (string, error) {
	t.Helper()
	pair, err := signer.Client("admin", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{
		RootCAs: pool(t, roots), Certificates: []tls.Certificate{keyPair(t, pair)}, ServerName: name,
	}}}
	defer client.CloseIdleConnections()
	response, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

func keyPair(t *testing.T, pair certs.Pair) tls.Certificate {
	t.Helper()
	c, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func pool(t *testing.T, a *certs.Authority) *x509.CertPool {
	t.Helper()
	p := x509.NewCertPool()
	if !p.AppendCertsFromPEM(a.Certificate()) {
		t.Fatal("the authority's certificate is not readable")
	}
	return p
}

func certificate(t *testing.T, data []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(data)
	if block == nil {
		t.Fatalf("not PEM: %q", data)
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
