// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// journal records faults and the API server's responses to binds.
type journal struct {
	mu     sync.Mutex
	faults map[string]int
	binds  map[string][]int // codes, by path
	bound  int
	onBind func(n int) // may be nil

	onRequest func(method, path string, body []byte) // may be nil
}

func newJournal() *journal {
	return &journal{faults: map[string]int{}, binds: map[string][]int{}}
}

func (j *journal) fault(r request, f *Fault) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.faults[string(r.kind)+" "+f.String()]++
}

// answered records the API server's response, whether or not the scheduler receives it.
func (j *journal) answered(r request, code int) {
	if r.kind != Bind {
		return
	}
	j.mu.Lock()
	j.binds[r.path] = append(j.binds[r.path], code)
	notify := j.onBind
	if code == http.StatusCreated {
		j.bound++
	} else {
		notify = nil
	}
	n := j.bound
	j.mu.Unlock()
	if notify != nil {
		notify(n)
	}
}

// OnBind calls f whenever the API server has accepted a bind, with the number of such binds since the call of OnBind,
// before the scheduler receives the response.
func (p *Proxy) OnBind(f func(n int)) {
	p.journal.mu.Lock()
	defer p.journal.mu.Unlock()
	p.journal.bound, p.journal.onBind = 0, f
}

// OnRequest calls f with each request before it is forwarded or gets its fault. Reads have no body.
func (p *Proxy) OnRequest(f func(method, path string, body []byte)) {
	p.journal.mu.Lock()
	defer p.journal.mu.Unlock()
	p.journal.onRequest = f
}

// show calls the function of OnRequest.
func (j *journal) show(r *http.Request) error {
	j.mu.Lock()
	notify := j.onRequest
	j.mu.Unlock()
	if notify == nil {
		return nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	notify(r.Method, r.URL.Path, body)
	return nil
}

// BoundTwice returns an error with the pods that a scheduler tried to bind again after a bind. The API server rejects
// that, but the scheduler must not depend on it.
func (p *Proxy) BoundTwice() error {
	p.journal.mu.Lock()
	defer p.journal.mu.Unlock()
	var twice []string
	for _, path := range slices.Sorted(maps.Keys(p.journal.binds)) {
		codes := p.journal.binds[path]
		if first := slices.Index(codes, http.StatusCreated); first >= 0 && first < len(codes)-1 {
			twice = append(twice, fmt.Sprintf("%s %v", path, codes))
		}
	}
	if len(twice) == 0 {
		return nil
	}
	return fmt.Errorf("%d pods were bound again after they had been bound; answers:\n%s", len(twice), strings.Join(twice, "\n"))
}

// Faults returns the number of each fault, one per line.
func (p *Proxy) Faults() string {
	p.journal.mu.Lock()
	defer p.journal.mu.Unlock()
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(p.journal.faults)) {
		lines = append(lines, fmt.Sprintf("%s: %d", name, p.journal.faults[name]))
	}
	return strings.Join(lines, "\n")
}
