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

// Cluster is the API server.
type Cluster struct {
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
func New(t testing.TB, objects ...runtime.Object) *Cluster {
	t.Helper()
	now := time.Now()
	faults := &Faults{Bind: map[string][]Fault{}, Get: map[string]int{}, start: now}
	c := &Cluster{
		Kube: Clientset{fake.NewSimpleClientset(), faults}, Batch: batchfake.NewSimpleClientset(), Faults: faults,
		t: t, start: now,
	}
	c.Kube.PrependReactor("*", "*", c.serve(c.Kube.Tracker()))
	c.Batch.PrependReactor("*", "*", c.serve(c.Batch.Tracker()))
	for _, object := range objects {
		c.Create(object)
	}
	return c
}

// Elapsed returns the time since New.
func (c *Cluster) Elapsed() time.Duration { return time.Since(c.start) }

// Create creates an object.
func (c *Cluster) Create(object runtime.Object) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stamp(object)
	tracker := c.Kube.Tracker()
	switch object.(type) {
	case *v1alpha1.PodGroup, *v1alpha1.Queue:
		tracker = c.Batch.Tracker()
	}
	if err := tracker.Add(object); err != nil {
		c.t.Fatal(err)
	}
}

// Update changes a pod as another client would. All pods are in namespace default.
func (c *Cluster) Update(name string, change func(*v1.Pod)) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	pods := v1.SchemeGroupVersion.WithResource("pods")
	object, err := c.Kube.Tracker().Get(pods, "default", name)
	if err != nil {
		c.t.Fatal(err)
	}
	change(object.(*v1.Pod))
	c.stamp(object)
	if err := c.Kube.Tracker().Update(pods, object, "default"); err != nil {
		c.t.Fatal(err)
	}
}

// DeletePod deletes a pod.
func (c *Cluster) DeletePod(name string) {
	c.t.Helper()
	if err := c.Kube.Tracker().Delete(v1.SchemeGroupVersion.WithResource("pods"), "default", name); err != nil {
		c.t.Fatal(err)
	}
}

// PodGroup returns a PodGroup as it is now.
func (c *Cluster) PodGroup(name string) *v1alpha1.PodGroup {
	c.t.Helper()
	object, err := c.Batch.Tracker().Get(v1alpha1.SchemeGroupVersion.WithResource("podgroups"), "default", name)
	if err != nil {
		c.t.Fatal(err)
	}
	return object.(*v1alpha1.PodGroup)
}

// Pod returns a pod as it is now.
func (c *Cluster) Pod(name string) *v1.Pod {
	c.t.Helper()
	object, err := c.Kube.Tracker().Get(v1.SchemeGroupVersion.WithResource("pods"), "default", name)
	if err != nil {
		c.t.Fatal(err)
	}
	return object.(*v1.Pod)
}

// Bound returns the pods that have a node, one a line, with the node.
func (c *Cluster) Bound() []string {
	c.t.Helper()
	lines := []string{}
	list, err := c.Kube.Tracker().List(v1.SchemeGroupVersion.WithResource("pods"), v1.SchemeGroupVersion.WithKind("Pod"), "")
	if err != nil {
		c.t.Fatal(err)
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
func (c *Cluster) Written() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	lines := append([]string{}, c.writes...)
	c.writes = nil
	SortByTime(lines)
	return lines
}

// Conflicts returns how many status writes were refused because the object had changed.
func (c *Cluster) Conflicts() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conflicts
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
func (c *Cluster) wrote(object runtime.Object) {
	c.writes = append(c.writes, c.Elapsed().String()+" "+describe(object))
}

// stamp gives an object a new resource version. The caller holds mu.
func (c *Cluster) stamp(object runtime.Object) {
	c.version++
	m, err := meta.Accessor(object)
	if err != nil {
		c.t.Fatal(err)
	}
	m.SetResourceVersion(strconv.FormatInt(c.version, 10))
}
