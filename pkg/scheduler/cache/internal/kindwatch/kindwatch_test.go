// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/cache/internal/fakediscovery"
)

// server is a fake API server with a Thing in two versions and a Gadget, in virtual time.
type server struct {
	discovery fakediscovery.Discovery
	watcher   *Watcher

	mu      sync.Mutex
	seen    []string // events
	refused error    // of lists
}

func resource(version, name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "example.com", Version: version, Resource: name}
}

func served(version string, names ...string) *metav1.APIResourceList {
	list := &metav1.APIResourceList{GroupVersion: "example.com/" + version}
	for _, name := range names {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: name})
	}
	return list
}

// read returns an object with a prefix before its name.
func read(prefix string) func(*unstructured.Unstructured) metav1.Object {
	return func(u *unstructured.Unstructured) metav1.Object {
		return &metav1.ObjectMeta{Namespace: u.GetNamespace(), Name: u.GetName(), Labels: map[string]string{"as": prefix + u.GetName()}}
	}
}

func thing(rule string) *Kind {
	return &Kind{Name: "Thing", Rule: rule, Versions: []Version{
		{resource("v2", "things"), read(rule + "v2 ")}, {resource("v1", "things"), read(rule + "v1 ")},
	}}
}

func gadget() *Kind {
	return &Kind{Name: "Gadget", Versions: []Version{{resource("v1", "gadgets"), read("")}}}
}

func newServer() *server {
	s := &server{}
	object := func(version, kind, name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/" + version, "kind": kind, "metadata": map[string]any{"namespace": "ns", "name": name},
		}}
	}
	kinds := map[schema.GroupVersionResource]string{resource("v1", "things"): "ThingList", resource("v2", "things"): "ThingList", resource("v1", "gadgets"): "GadgetList"}
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds,
		object("v1", "Thing", "a"), object("v2", "Thing", "a"), object("v1", "Gadget", "g"))
	client.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.refused != nil, nil, s.refused
	})
	label := func(obj any) string { return obj.(metav1.Object).GetLabels()["as"] }
	s.watcher = New(Options{
		Dynamic: client, Discovery: &s.discovery,
		Handler: toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(obj any) { s.record("added " + label(obj)) },
			DeleteFunc: func(obj any) { s.record("deleted " + label(obj)) },
		},
		Failed:     func(_ context.Context, resource string, _ error) { s.record("failed " + resource) },
		Unreadable: apierrors.IsForbidden,
		Clock:      clock.RealClock{}, Log: logr.Discard(),
	})
	return s
}

func (s *server) record(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, what)
}

func (s *server) refuse(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = err
}

// expect compares what was seen since the last call. Each kind has a goroutine of its own, so only the order of what
// concerns the same kind counts: that of the last letter.
func (s *server) expect(t *testing.T, when string, want ...string) {
	t.Helper()
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	got := slices.Compact(s.seen)
	for _, messages := range [][]string{got, want} {
		slices.SortStableFunc(messages, func(a, b string) int { return cmp.Compare(a[len(a)-1], b[len(b)-1]) })
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", when, got, want)
	}
	s.seen = nil
}

func run(t *testing.T, test func(ctx context.Context, s *server)) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer stop()
		test(ctx, newServer())
	})
}

// TestKindsComeAndGo runs a watcher while a kind appears, changes its version and its rule, disappears, and is not needed any more.
func TestKindsComeAndGo(t *testing.T) {
	run(t, func(ctx context.Context, s *server) {
		s.watcher.Enable(ctx, []*Kind{thing("")})
		s.expect(t, "not served")
		s.discovery.Serve(served("v1", "others", "things"))
		time.Sleep(AskEvery + time.Second)
		s.expect(t, "served a minute later", "added v1 a")
		s.discovery.Serve(served("v1", "things"), served("v2", "things"))
		time.Sleep(AskEvery)
		s.expect(t, "another version is preferred", "deleted v1 a", "added v2 a")
		s.discovery.Before(func() error { return errors.New("no answer") })
		s.discovery.Serve()
		time.Sleep(AskEvery)
		s.expect(t, "no answer")
		s.discovery.Before(nil)
		time.Sleep(AskEvery)
		s.expect(t, "gone", "deleted v2 a")
		s.discovery.Serve(served("v1", "things", "gadgets"))
		s.watcher.Enable(ctx, []*Kind{gadget()})
		s.expect(t, "another kind besides", "added g", "added v1 a")
		s.watcher.Keep([]*Kind{thing("new ")})
		s.expect(t, "another rule, and one kind less", "deleted g", "deleted v1 a", "added new v1 a")
		s.watcher.Keep(nil)
		s.expect(t, "not needed", "deleted new v1 a")
		s.discovery.TakeAsked()
		time.Sleep(3 * AskEvery)
		if asked := s.discovery.TakeAsked(); asked > 0 {
			t.Errorf("no kind is enabled, and the API server was asked %d times", asked)
		}
	})
}

// TestNothingEnabled asserts that a watcher without kinds sends no request.
func TestNothingEnabled(t *testing.T) {
	run(t, func(ctx context.Context, s *server) {
		s.watcher.Enable(ctx, nil)
		time.Sleep(3 * AskEvery)
		if asked := s.discovery.TakeAsked(); asked > 0 {
			t.Errorf("the API server was asked %d times", asked)
		}
	})
}

// TestEnableWaits asserts that Enable waits while lists fail, except for kinds that cannot be read.
func TestEnableWaits(t *testing.T) {
	for name, tc := range map[string]struct {
		err   error
		waits bool
	}{
		"no failure": {nil, false},
		"forbidden":  {apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "", nil), false},
		"an error":   {errors.New("no answer"), true},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(ctx context.Context, s *server) {
				s.discovery.Serve(served("v1", "things"))
				s.refuse(tc.err)
				var enabled bool
				go func() {
					s.watcher.Enable(ctx, []*Kind{thing("")})
					s.mu.Lock()
					defer s.mu.Unlock()
					enabled = true
				}()
				synctest.Wait()
				s.mu.Lock()
				if enabled == tc.waits {
					t.Errorf("Enable has returned: %t", enabled)
				}
				s.mu.Unlock()
				s.refuse(nil)
				time.Sleep(time.Hour) // the informer tries again
				_, feed := s.watcher.Find("Thing")
				if _, known := feed.Get("ns", "a"); !known || !feed.Synced() {
					t.Error("the object is not known")
				}
			})
		})
	}
}

// TestDiscoveryDoesNotDelayReaders asserts that objects can be read while the API server does not answer a question.
func TestDiscoveryDoesNotDelayReaders(t *testing.T) {
	run(t, func(ctx context.Context, s *server) {
		s.discovery.Serve(served("v1", "things"))
		s.watcher.Enable(ctx, []*Kind{thing("")})
		answer := make(chan struct{})
		s.discovery.Before(func() error {
			<-answer
			return nil
		})
		time.Sleep(AskEvery + time.Second)
		read := make(chan bool, 1)
		go func() {
			_, feed := s.watcher.Find("Thing")
			_, known := feed.Get("ns", "a")
			read <- known
		}()
		select {
		case known := <-read:
			if !known {
				t.Error("the object is not known")
			}
		case <-time.After(time.Hour):
			t.Error("the object cannot be read")
		}
		close(answer)
	})
}
