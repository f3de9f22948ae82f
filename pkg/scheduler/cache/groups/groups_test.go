// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package groups

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/cache/internal/fakediscovery"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/groupapi"
)

// apis is a fake API server with one PodGroup of Volcano, in virtual time.
type apis struct {
	discovery fakediscovery.Discovery
	watcher   *Watcher

	mu   sync.Mutex
	seen []string // events, and questions about APIs
}

func newAPIs() *apis {
	s := &apis{}
	kinds := map[schema.GroupVersionResource]string{}
	for _, a := range groupapi.All() {
		kinds[a.Resource] = "PodGroupList"
	}
	group := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
		"metadata": map[string]any{"namespace": "ns", "name": "g", "uid": "u"}, "spec": map[string]any{"minMember": int64(2)},
	}}
	s.watcher = New(Options{
		Dynamic:   dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, group),
		Discovery: &s.discovery,
		Handler: toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(obj any) { s.record("added " + obj.(*groupapi.Object).Name) },
			DeleteFunc: func(obj any) { s.record("deleted " + obj.(*groupapi.Object).Name) },
		},
		Failed: func(context.Context, string, error) { s.record("failed") },
		Clock:  clock.RealClock{}, Log: logr.Discard(),
	})
	return s
}

func (s *apis) record(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, what)
}

// take returns what was recorded since the last call.
func (s *apis) take() []string {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen
	s.seen = nil
	return seen
}

var volcano = &metav1.APIResourceList{GroupVersion: "scheduling.volcano.sh/v1beta1", APIResources: []metav1.APIResource{{Name: "podgroups"}}}

func (s *apis) expect(t *testing.T, what string, want ...string) {
	t.Helper()
	if got := s.take(); !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
	known := s.watcher.Get(api.SourceVolcano, "ns", "g") != nil
	if len(want) > 0 && known != (want[len(want)-1] == "added g") {
		t.Errorf("%s: the group is known: %v", what, known)
	}
}

// TestAPIsComeAndGo runs a watcher while an API appears, disappears, and is not needed any more.
func TestAPIsComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, sources := newAPIs(), api.GroupSources{Volcano: true}
		ctx, stop := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer stop()

		s.watcher.Enable(ctx, sources)
		s.expect(t, "the API is not served")
		s.discovery.Serve(volcano)
		time.Sleep(askEvery + time.Second)
		s.expect(t, "the API is served a minute later", "added g")
		s.discovery.Before(func() error { return errors.New("no answer") })
		s.discovery.Serve()
		time.Sleep(askEvery)
		s.expect(t, "the API server does not answer")
		s.discovery.Before(nil)
		time.Sleep(askEvery)
		s.expect(t, "the API is gone", "deleted g")
		s.discovery.Serve(volcano)
		s.watcher.Enable(ctx, sources)
		s.expect(t, "the source is enabled again", "added g")
		s.watcher.Keep(api.GroupSources{})
		s.expect(t, "the source is not needed any more", "deleted g")
		s.discovery.TakeAsked()
		time.Sleep(3 * askEvery)
		if asked := s.discovery.TakeAsked(); asked > 0 {
			t.Errorf("no source is enabled, and the API server was asked %d times", asked)
		}
	})
}

// TestNoSource asserts that a watcher without other sources sends no request.
func TestNoSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIs()
		s.discovery.Serve(volcano)
		s.watcher.Enable(t.Context(), api.GroupSources{})
		time.Sleep(3 * askEvery)
		s.expect(t, "no source")
		if asked := s.discovery.TakeAsked(); asked > 0 {
			t.Errorf("the API server was asked %d times", asked)
		}
	})
}

// TestDiscoveryDoesNotDelayReaders asserts that groups can be read while the API server does not answer a discovery.
func TestDiscoveryDoesNotDelayReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIs()
		s.discovery.Serve(volcano)
		ctx, stop := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer stop()
		s.watcher.Enable(ctx, api.GroupSources{Volcano: true})
		s.expect(t, "enabled", "added g")
		answer := make(chan struct{})
		s.discovery.Before(func() error {
			<-answer
			return nil
		})
		time.Sleep(askEvery + time.Second)
		read := make(chan struct{})
		go func() {
			defer close(read)
			s.watcher.Get(api.SourceVolcano, "ns", "g")
		}()
		select {
		case <-read:
		case <-time.After(time.Hour):
			t.Error("the group cannot be read")
		}
		close(answer)
	})
}
