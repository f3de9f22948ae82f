package faults

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// journal notes what went wrong, and what the API server has answered to binds.
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

// answered notes the API server's own answer, whether the scheduler gets to see it or not.
func (j *journal) answered(r request, code int) {
	if r.kind != Bind {
		return
	}
	j.mu.Lock()
	j.binds[r.path] = append(j.binds[r.path], code)
	tell := j.onBind
	if code == http.StatusCreated {
		j.bound++
	} else {
		tell = nil
	}
	n := j.bound
	j.mu.Unlock()
	if tell != nil {
		tell(n)
	}
}

// OnBind has f called whenever the API server has taken a bind, with the number of such binds since
// OnBind was called; before the scheduler gets the answer.
func (p *Proxy) OnBind(f func(n int)) {
	p.journal.mu.Lock()
	defer p.journal.mu.Unlock()
	p.journal.bound, p.journal.onBind = 0, f
}

// BoundTwice returns an error that names the pods that a scheduler has tried to bind although it had
// bound them. The API server refuses that, but nothing should depend on it.
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

// Faults tells how often what went wrong, a line each.
func (p *Proxy) Faults() string {
	p.journal.mu.Lock()
	defer p.journal.mu.Unlock()
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(p.journal.faults)) {
		lines = append(lines, fmt.Sprintf("%s: %d", name, p.journal.faults[name]))
	}
	return strings.Join(lines, "\n")
}
