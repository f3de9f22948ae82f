// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package fakecluster is an API server for tests, made of fake clientsets. It adds what the
// scheduler's writers rely on and the fakes lack: resource versions and conflicts, preconditions,
// and the binding subresource. It makes binds and reads of pods slow or faulty on request, and keeps
// a transcript of all writes.
//
// Use it in a bubble of testing/synctest: the times of its transcript are exact there.
package fakecluster

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	batchfake "github.com/batch-scheduler/batch-scheduler/pkg/client/clientset/versioned/fake"
)

// APIServer is the API server.
type APIServer struct {
	Kube   Clientset
	Batch  *batchfake.Clientset
	Faults *Faults

	t     testing.TB
	start time.Time

	mu        sync.Mutex
	version   int64
	writes    []string // with their time
	conflicts int
}

// New returns an API server with some objects.
func New(t testing.TB, objects ...runtime.Object) *APIServer {
	t.Helper()
	now := time.Now()
	faults := &Faults{Bind: map[string][]Fault{}, Get: map[string]int{}, start: now}
	s := &APIServer{
		Kube: Clientset{fake.NewSimpleClientset(), faults}, Batch: batchfake.NewSimpleClientset(), Faults: faults,
		t: t, start: now,
	}
	s.Kube.PrependReactor("*", "*", s.serve(s.Kube.Tracker()))
	s.Batch.PrependReactor("*", "*", s.serve(s.Batch.Tracker()))
	for _, object := range objects {
		s.Create(object)
	}
	return s
}

// Elapsed returns the time since New.
func (s *APIServer) Elapsed() time.Duration { return time.Since(s.start) }

// Create creates an object.
func (s *APIServer) Create(object runtime.Object) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stamp(object)
	tracker := s.Kube.Tracker()
	switch object.(type) {
	case *v1alpha1.PodGroup, *v1alpha1.Queue, *v1alpha1.Topology:
		tracker = s.Batch.Tracker()
	}
	if err := tracker.Add(object); err != nil {
		s.t.Fatal(err)
	}
}

// Update changes a pod as another client would. All pods are in namespace default.
func (s *APIServer) Update(name string, change func(*v1.Pod)) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	pods := v1.SchemeGroupVersion.WithResource("pods")
	object, err := s.Kube.Tracker().Get(pods, "default", name)
	if err != nil {
		s.t.Fatal(err)
	}
	change(object.(*v1.Pod))
	s.stamp(object)
	if err := s.Kube.Tracker().Update(pods, object, "default"); err != nil {
		s.t.Fatal(err)
	}
}

// DeletePod deletes a pod.
func (s *APIServer) DeletePod(name string) {
	s.t.Helper()
	if err := s.Kube.Tracker().Delete(v1.SchemeGroupVersion.WithResource("pods"), "default", name); err != nil {
		s.t.Fatal(err)
	}
}

// PodGroup returns a PodGroup as it is now.
func (s *APIServer) PodGroup(name string) *v1alpha1.PodGroup {
	s.t.Helper()
	object, err := s.Batch.Tracker().Get(v1alpha1.SchemeGroupVersion.WithResource("podgroups"), "default", name)
	if err != nil {
		s.t.Fatal(err)
	}
	return object.(*v1alpha1.PodGroup)
}

// Pod returns a pod as it is now.
func (s *APIServer) Pod(name string) *v1.Pod {
	s.t.Helper()
	object, err := s.Kube.Tracker().Get(v1.SchemeGroupVersion.WithResource("pods"), "default", name)
	if err != nil {
		s.t.Fatal(err)
	}
	return object.(*v1.Pod)
}

// Bound returns the pods that have a node, one a line, with the node.
func (s *APIServer) Bound() []string {
	s.t.Helper()
	lines := []string{}
	list, err := s.Kube.Tracker().List(v1.SchemeGroupVersion.WithResource("pods"), v1.SchemeGroupVersion.WithKind("Pod"), "")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, pod := range list.(*v1.PodList).Items {
		if pod.Spec.NodeName != "" {
			lines = append(lines, pod.Name+" "+pod.Spec.NodeName)
		}
	}
	return lines
}

// Written returns the status writes and events since the last call, each with its time. Lines of the
// same time are sorted.
func (s *APIServer) Written() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := append([]string{}, s.writes...)
	s.writes = nil
	SortByTime(lines)
	return lines
}

// Conflicts returns how many status writes were refused because the object had changed.
func (s *APIServer) Conflicts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conflicts
}

// SortByTime sorts lines that begin with a duration.
func SortByTime(lines []string) {
	at := func(line string) time.Duration {
		moment, _, _ := strings.Cut(line, " ")
		d, _ := time.ParseDuration(moment)
		return d
	}
	slices.SortStableFunc(lines, func(a, b string) int { return cmp.Or(cmp.Compare(at(a), at(b)), cmp.Compare(a, b)) })
}

// wrote adds a line to the transcript. The caller holds mu.
func (s *APIServer) wrote(object runtime.Object) {
	s.writes = append(s.writes, s.Elapsed().String()+" "+describe(object))
}

// stamp gives an object a new resource version. The caller holds mu.
func (s *APIServer) stamp(object runtime.Object) {
	s.version++
	m, err := meta.Accessor(object)
	if err != nil {
		s.t.Fatal(err)
	}
	m.SetResourceVersion(strconv.FormatInt(s.version, 10))
}
