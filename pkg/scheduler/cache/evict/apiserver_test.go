// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package evict

import (
	"context"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	typedpolicyv1 "k8s.io/client-go/kubernetes/typed/policy/v1"
)

// kind is the kind of a request.
type kind string

const (
	dryRun     kind = "dry-run"
	annotate   kind = "annotate"
	evictPod   kind = "evict"
	readPod    kind = "get"
	readBudget kind = "budget"
)

// request is a request that the API server has received.
type request struct {
	kind      kind
	name      string // of the pod or budget
	sent, end time.Duration
	err       error
	effective bool // the pod is deleted by it
}

// apiServer is an API server in simulated time. Each request takes its latency, and many are served at the same time,
// which a fake clientset cannot do. It enforces disruption budgets.
type apiServer struct {
	kubernetes.Interface // nil: the evictor calls nothing else

	start   time.Time
	latency func(kind, string) time.Duration
	// fault returns an error, and whether the request takes effect nevertheless. The attempts of a pod begin with 1.
	fault func(k kind, name string, attempt int) (err error, lost bool)

	mu       sync.Mutex
	budgetOf map[string]string // by pod
	allowed  map[string]int    // by budget
	gone     map[string]bool   // pods, and the preemptor
	attempts map[string]int    // evictions
	log      []*request
}

func newAPIServer() *apiServer {
	return &apiServer{
		start:    time.Now(),
		latency:  func(kind, string) time.Duration { return 100 * time.Millisecond },
		fault:    func(kind, string, int) (error, bool) { return nil, false },
		budgetOf: map[string]string{}, allowed: map[string]int{}, gone: map[string]bool{}, attempts: map[string]int{},
	}
}

// serve handles a request. At its end, answer decides about it, with the lock held.
func (s *apiServer) serve(k kind, name string, answer func(attempt int) (err error, effective bool)) error {
	s.mu.Lock()
	r := &request{kind: k, name: name, sent: time.Since(s.start)}
	s.log = append(s.log, r)
	if k == evictPod {
		s.attempts[name]++
	}
	attempt := s.attempts[name]
	s.mu.Unlock()
	time.Sleep(s.latency(k, name))
	s.mu.Lock()
	defer s.mu.Unlock()
	r.end = time.Since(s.start)
	r.err, r.effective = answer(attempt)
	return r.err
}

func (s *apiServer) evict(e *policyv1.Eviction) error {
	k := evictPod
	if len(e.DeleteOptions.DryRun) > 0 {
		k = dryRun
	}
	return s.serve(k, e.Name, func(attempt int) (error, bool) {
		err, lost := s.fault(k, e.Name, attempt)
		budget := s.budgetOf[e.Name]
		switch {
		case err != nil && !lost:
			return err, false
		case s.gone[e.Name]:
			return apierrors.NewNotFound(v1.Resource("pods"), e.Name), false
		case budget != "" && s.allowed[budget] == 0:
			return refusedByBudget(), false
		case k == dryRun:
			return nil, false
		}
		if budget != "" {
			s.allowed[budget]--
		}
		s.gone[e.Name] = true
		return err, true
	})
}

func refusedByBudget() error {
	err := apierrors.NewTooManyRequests("budget", 0)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause}}
	return err
}

func (s *apiServer) CoreV1() typedcorev1.CoreV1Interface       { return coreAPI{apiServer: s} }
func (s *apiServer) PolicyV1() typedpolicyv1.PolicyV1Interface { return policyAPI{apiServer: s} }

type coreAPI struct {
	typedcorev1.CoreV1Interface
	*apiServer
}

func (c coreAPI) Pods(string) typedcorev1.PodInterface { return podAPI{apiServer: c.apiServer} }

type podAPI struct {
	typedcorev1.PodInterface
	*apiServer
}

func (p podAPI) Get(_ context.Context, name string, _ metav1.GetOptions) (*v1.Pod, error) {
	err := p.serve(readPod, name, func(int) (error, bool) { return p.existing(name), false })
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}, err
}

func (p podAPI) Patch(_ context.Context, name string, _ types.PatchType, _ []byte, _ metav1.PatchOptions, _ ...string) (*v1.Pod, error) {
	return &v1.Pod{}, p.serve(annotate, name, func(int) (error, bool) { return p.existing(name), false })
}

// existing returns NotFound if a pod does not exist. The caller holds the lock.
func (s *apiServer) existing(name string) error {
	if s.gone[name] {
		return apierrors.NewNotFound(v1.Resource("pods"), name)
	}
	return nil
}

type policyAPI struct {
	typedpolicyv1.PolicyV1Interface
	*apiServer
}

func (p policyAPI) Evictions(string) typedpolicyv1.EvictionInterface {
	return evictionAPI{apiServer: p.apiServer}
}

func (p policyAPI) PodDisruptionBudgets(string) typedpolicyv1.PodDisruptionBudgetInterface {
	return budgetAPI{apiServer: p.apiServer}
}

type evictionAPI struct {
	typedpolicyv1.EvictionInterface
	*apiServer
}

func (e evictionAPI) Evict(_ context.Context, eviction *policyv1.Eviction) error {
	return e.evict(eviction)
}

type budgetAPI struct {
	typedpolicyv1.PodDisruptionBudgetInterface
	*apiServer
}

func (b budgetAPI) Get(_ context.Context, name string, _ metav1.GetOptions) (*policyv1.PodDisruptionBudget, error) {
	budget := &policyv1.PodDisruptionBudget{}
	err := b.serve(readBudget, name, func(int) (error, bool) {
		budget.Status.DisruptionsAllowed = int32(b.allowed[name])
		return nil, false
	})
	return budget, err
}
