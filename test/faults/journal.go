// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
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
