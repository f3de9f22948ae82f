// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Fault is what the proxy does with a request.
type Fault struct {
	// Code is the status of the response; 0: the connection is closed. A response with 429 has a Retry-After of a
	// second.
	Code int

	// Done reports that the API server receives the request nevertheless. A watch starts, and ends with an error.
	Done bool

	// Pause is the delay of the response.
	Pause time.Duration

	// Late is the delay of the request after the response, if Done.
	Late time.Duration
}

func (f *Fault) String() string {
	text := "cut"
	if f.Code != 0 {
		text = strconv.Itoa(f.Code)
	}
	if f.Pause > 0 {
		text += " after " + f.Pause.String()
	}
	switch {
	case f.Late > 0:
		text += ", done later"
	case f.Done:
		text += ", done"
	}
	return text
}

// All are the faults of requests that modify objects. There is no 429 after the effect, because an API server does
// not return it. The longest pause exceeds the scheduler's request timeout.
//
//nolint:gochecknoglobals // a list that no one writes to
var All = []Fault{
	{Code: http.StatusConflict}, {Code: http.StatusConflict, Done: true},
	{Code: http.StatusInternalServerError}, {Code: http.StatusInternalServerError, Done: true},
	{Code: http.StatusTooManyRequests},
	{Code: http.StatusGatewayTimeout}, {Code: http.StatusGatewayTimeout, Done: true},
	{Code: http.StatusGatewayTimeout, Pause: 16 * time.Second},
	{Code: 0}, {Code: 0, Done: true},
	{Code: http.StatusGone},
	{Code: 0, Done: true, Late: 250 * time.Millisecond},
}

// Rule makes some requests fail.
type Rule struct {
	Kinds   []Kind
	Percent uint64
	Faults  []Fault // one of them is chosen
}

// fates choose the faults of requests.
type fates struct {
	seed uint64

	mu    sync.Mutex
	rules []Rule
	count map[request]uint64 // requests so far
}

func newFates(seed uint64) *fates { return &fates{seed: seed, count: map[request]uint64{}} }

func (f *fates) set(rules []Rule) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = rules
}

// choose returns the fault of a request, nil if it succeeds.
func (f *fates) choose(r request) *Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, rule := range f.rules {
		for _, kind := range rule.Kinds {
			if kind != r.kind {
				continue
			}
			f.count[r]++
			hash := fnv.New64a()
			fmt.Fprintln(hash, f.seed, r.kind, r.path, f.count[r])
			n := scatter(hash.Sum64())
			if n%100 >= rule.Percent {
				return nil
			}
			return &rule.Faults[n/100%uint64(len(rule.Faults))]
		}
	}
	return nil
}

// scatter mixes the bits of a hash; FNV leaves the last characters in the lowest bits.
func scatter(n uint64) uint64 {
	n = (n ^ n>>33) * 0xff51afd7ed558ccd
	n = (n ^ n>>33) * 0xc4ceb9fe1a85ec53
	return n ^ n>>33
}

// fail applies a fault to a request.
func (p *Proxy) fail(w http.ResponseWriter, r *http.Request, request request, fault *Fault) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the client has closed the connection
	}
	do := func() {
		again := r.Clone(context.WithoutCancel(r.Context()))
		again.Body = io.NopCloser(bytes.NewReader(body))
		lost := httptest.NewRecorder()
		p.forward.ServeHTTP(lost, again)
		p.journal.answered(request, lost.Code)
	}
	switch {
	case fault.Late > 0:
		time.AfterFunc(fault.Late, do)
	case fault.Done:
		do()
	}
	select {
	case <-time.After(fault.Pause):
		answer(w, fault)
	case <-r.Context().Done():
	}
}

func answer(w http.ResponseWriter, fault *Fault) {
	if fault.Code == 0 {
		panic(http.ErrAbortHandler) // closes the stream
	}
	if fault.Code == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(fault.Code)
	_ = json.NewEncoder(w).Encode(status(fault)) // it fails only if the client has closed the connection
}

// endStream starts a watch and ends it with an error event.
func endStream(w http.ResponseWriter, fault *Fault) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	_ = json.NewEncoder(w).Encode(map[string]any{"type": "ERROR", "object": status(fault)})
}

// reason returns the status reason of the code.
func reason(code int) metav1.StatusReason {
	switch code {
	case http.StatusConflict:
		return metav1.StatusReasonConflict
	case http.StatusGone:
		return metav1.StatusReasonExpired
	case http.StatusTooManyRequests:
		return metav1.StatusReasonTooManyRequests
	case http.StatusInternalServerError:
		return metav1.StatusReasonInternalError
	case http.StatusGatewayTimeout:
		return metav1.StatusReasonTimeout
	}
	return metav1.StatusReasonUnknown
}

func status(fault *Fault) *metav1.Status {
	s := &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(fault.Code), Reason: reason(fault.Code),
		Message: "a fault that a test has made: " + fault.String(),
	}
	if fault.Code == http.StatusTooManyRequests {
		s.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
	}
	return s
}
