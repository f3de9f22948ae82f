// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package evict

import "sync"

// precedence orders those who wait for a permit.
type precedence int

const (
	begun precedence = iota // the job is being evicted
	other
)

// permits bounds how many requests of all plans are in flight. A free permit goes to the first that waits, and to jobs
// that are being evicted before all others: they are completed before other jobs begin.
type permits struct {
	mu      sync.Mutex
	free    int
	waiting [2][]chan struct{} // by precedence
}

// acquire waits for a permit.
func (s *permits) acquire(p precedence) {
	s.mu.Lock()
	if s.free > 0 {
		s.free--
		s.mu.Unlock()
		return
	}
	granted := make(chan struct{})
	s.waiting[p] = append(s.waiting[p], granted)
	s.mu.Unlock()
	<-granted
}

// release returns a permit.
func (s *permits) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p, waiting := range s.waiting {
		if len(waiting) > 0 {
			close(waiting[0])
			s.waiting[p] = waiting[1:]
			return
		}
	}
	s.free++
}
