// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	binding = "/api/v1/namespaces/ns/pods/p/binding"
	watch   = "/api/v1/pods?watch=true"
)

// server counts the binds that reach it; watches send one event and stay open.
func server(t *testing.T) (target *rest.Config, binds *atomic.Int32) {
	binds = &atomic.Int32{}
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("watch") {
			fmt.Fprintln(w, "first")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		binds.Add(1)
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintln(w, `{"kind":"Status","status":"Success"}`)
	}))
	t.Cleanup(s.Close)
	config := &rest.Config{Host: s.URL}
	config.CAData = pemOf(s)
	return config, binds
}

// proxy returns a proxy and a client that uses it.
func proxy(t *testing.T, target *rest.Config, seed uint64) (*Proxy, *http.Client, string) {
	t.Helper()
	p, err := Start(Options{Target: target, Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	direct, through := filepath.Join(t.TempDir(), "direct"), filepath.Join(t.TempDir(), "through")
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: target.Host, CertificateAuthorityData: target.CAData}
	config.Contexts["c"], config.CurrentContext = &clientcmdapi.Context{Cluster: "c"}, "c"
	if err = clientcmd.WriteToFile(*config, direct); err != nil {
		t.Fatal(err)
	}
	if err = p.Kubeconfig(direct, through); err != nil {
		t.Fatal(err)
	}
	changed, err := clientcmd.BuildConfigFromFlags("", through)
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(changed)
	if err != nil {
		t.Fatal(err)
	}
	return p, client, changed.Host
}

func TestFaults(t *testing.T) {
	for name, test := range map[string]struct {
		given Fault
		code  int // 0: no response
		binds int32
		twice bool // a second bind without a fault is one too many
	}{
		"a response without the effect": {Fault{Code: 409}, 409, 0, false},
		"a response after the effect":   {Fault{Code: 500, Done: true}, 500, 1, true},
		"no response and no effect":     {Fault{}, 0, 0, false},
		"no response after the effect":  {Fault{Done: true}, 0, 1, true},
		"an effect after the response":  {Fault{Code: 504, Done: true, Late: time.Millisecond}, 504, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			target, binds := server(t)
			p, client, address := proxy(t, target, 1)
			landed := make(chan int, 2)
			p.OnBind(func(n int) { landed <- n })
			p.Set(Rule{Kinds: []Kind{Bind}, Percent: 100, Faults: []Fault{test.given}})
			if code := post(client, address+binding); code != test.code {
				t.Errorf("got code %d, want %d", code, test.code)
			}
			if test.binds > 0 {
				<-landed
			}
			if n := binds.Load(); n != test.binds {
				t.Errorf("%d binds reached the server, want %d", n, test.binds)
			}
			p.Set()
			if code := post(client, address+binding); code != http.StatusCreated {
				t.Errorf("got code %d without a fault", code)
			}
			if err := p.BoundTwice(); (err != nil) != test.twice {
				t.Errorf("bound twice: %v, want %v", err, test.twice)
			}
		})
	}
}

func TestWatches(t *testing.T) {
	target, _ := server(t)
	p, client, address := proxy(t, target, 1)
	response, err := client.Get(address + watch)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	first := make([]byte, 5)
	if _, err = io.ReadFull(response.Body, first); err != nil || string(first) != "first" {
		t.Fatalf("read %q: %v", first, err)
	}
	if n := p.CutWatches(); n != 1 {
		t.Errorf("cut %d watches, want 1", n)
	}
	if _, err = io.ReadAll(response.Body); err == nil {
		t.Error("the watch ended without an error")
	}
	p.Set(Rule{Kinds: []Kind{Watch}, Percent: 100, Faults: []Fault{{Code: 410, Done: true}}})
	response, err = client.Get(address + watch)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	all, err := io.ReadAll(response.Body)
	if err != nil || !strings.Contains(string(all), `"type":"ERROR"`) || !strings.Contains(string(all), `"reason":"Expired"`) {
		t.Errorf("the watch returned %q: %v", all, err)
	}
}

func TestDown(t *testing.T) {
	target, _ := server(t)
	p, client, address := proxy(t, target, 1)
	if err := p.Down(); err != nil {
		t.Fatal(err)
	}
	if code := post(client, address+binding); code != 0 {
		t.Errorf("got code %d while down", code)
	}
	if err := p.Up(); err != nil {
		t.Fatal(err)
	}
	if code := post(client, address+binding); code != http.StatusCreated {
		t.Errorf("got code %d after Up", code)
	}
}

// TestSeed checks that the same seed gives the same faults in any order of requests.
func TestSeed(t *testing.T) {
	fate := func(seed uint64, paths ...string) map[string]string {
		f := newFates(seed)
		f.set([]Rule{{Kinds: []Kind{Bind}, Percent: 10, Faults: All}})
		found := map[string]string{}
		for _, path := range paths {
			for attempt := range 3 {
				if fault := f.choose(request{Bind, path}); fault != nil {
					found[fmt.Sprint(path, attempt)] = fault.String()
				}
			}
		}
		return found
	}
	var there, back []string
	for i := range 1000 {
		there, back = append(there, fmt.Sprint(i)), append(back, fmt.Sprint(999-i))
	}
	first, second, other := fate(1, there...), fate(1, back...), fate(2, there...)
	if fmt.Sprint(first) != fmt.Sprint(second) {
		t.Error("the same seed chose other faults in another order")
	}
	if fmt.Sprint(first) == fmt.Sprint(other) {
		t.Error("another seed chose the same faults")
	}
	if n := len(first); n < 240 || n > 360 {
		t.Errorf("%d of 3000 requests fail, want about 300", n)
	}
}

// post returns the code of the response, 0 if there is none.
func post(client *http.Client, url string) int {
	response, err := client.Post(url, "application/json", strings.NewReader("{}"))
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	return response.StatusCode
}

func pemOf(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}
