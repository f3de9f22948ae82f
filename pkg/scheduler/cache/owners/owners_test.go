// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package owners

import (
	"context"
	"errors"
	"fmt"
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
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/cache/internal/fakediscovery"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/cache/internal/kindwatch"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/ownerapi"
)

var (
	jobSets = ownerapi.RulesOf(api.Grouping{Kinds: api.KindJobSet})

	jobSetsServed = &metav1.APIResourceList{GroupVersion: "jobset.x-k8s.io/v1alpha2", APIResources: []metav1.APIResource{{Name: "jobsets"}}}
)

// apis is a fake API server with JobSet s, in virtual time.
type apis struct {
	discovery fakediscovery.Discovery
	dynamic   *dynamicfake.FakeDynamicClient
	watcher   *Watcher

	mu      sync.Mutex
	seen    []string
	refused map[string]error // by verb
}

func newAPIs() *apis {
	s := &apis{refused: map[string]error{}}
	kinds := map[schema.GroupVersionResource]string{}
	for _, a := range ownerapi.All() {
		for _, r := range a.Resources {
			kinds[r] = a.Kind + "List"
		}
	}
	set := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": map[string]any{"namespace": "ns", "name": "s", "uid": "u"},
		"spec": map[string]any{"replicatedJobs": []any{map[string]any{"name": "w", "replicas": int64(2), "template": map[string]any{}}}},
	}}
	s.dynamic = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, set)
	s.dynamic.PrependReactor("*", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		err := s.refused[a.GetVerb()]
		return err != nil, nil, err
	})
	s.watcher = New(Options{
		Options: kindwatch.Options{
			Dynamic: s.dynamic, Discovery: &s.discovery,
			Handler: toolscache.ResourceEventHandlerFuncs{
				AddFunc: func(obj any) {
					o := obj.(*api.Owner)
					if len(o.Gangs) == 0 {
						s.record("added " + o.Name + " without gangs")
						return
					}
					s.record(fmt.Sprintf("added %s of %d", o.Name, o.Gangs[0].MinMember))
				},
				DeleteFunc: func(obj any) { s.record("deleted " + obj.(*api.Owner).Name) },
			},
			Failed: func(_ context.Context, resource string, _ error) { s.record("failed " + resource) },
			Clock:  clock.RealClock{}, Log: logr.Discard(),
		},
		Gone: func(ref api.OwnerRef) { s.record("gone " + ref.Name + " " + string(ref.UID)) },
	})
	return s
}

func (s *apis) record(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, what)
}

// expect compares what was seen since the last call.
func (s *apis) expect(t *testing.T, what string, want ...string) {
	t.Helper()
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = slices.Compact(s.seen) // no model takes back what it has asked for
	if !slices.Equal(s.seen, want) {
		t.Errorf("%s: %q, want %q", what, s.seen, want)
	}
	s.seen = nil
}

func (s *apis) run(t *testing.T, test func(ctx context.Context)) {
	ctx, stop := context.WithCancel(t.Context())
	defer synctest.Wait()
	defer stop()
	test(ctx)
}

// refuse has the requests with a verb for objects fail, until the function that it returns is called.
func (s *apis) refuse(verb string, err error) (stop func()) {
	s.setRefused(verb, err)
	return func() { s.setRefused(verb, nil) }
}

func (s *apis) setRefused(verb string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused[verb] = err
}

func ref(name, uid string) api.OwnerRef {
	return api.OwnerRef{OwnerKey: api.OwnerKey{Kind: "JobSet", Namespace: "ns", Name: name}, UID: types.UID(uid)}
}

// TestRulesChange asserts that another rule about a kind reads the objects again.
func TestRulesChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIs()
		s.discovery.Serve(jobSetsServed)
		s.run(t, func(ctx context.Context) {
			s.watcher.Enable(ctx, ownerapi.RulesOf(api.Grouping{Kinds: api.KindTrainJob}))
			s.expect(t, "JobSets of TrainJobs", "added s without gangs")
			s.watcher.Keep(jobSets)
			s.expect(t, "all JobSets", "deleted s", "added s of 2")
			s.watcher.Keep(nil)
			s.expect(t, "none", "deleted s")
		})
	})
}

// TestLookups: objects that pods name are gone if the API server says so, and not before it is known.
func TestLookups(t *testing.T) {
	for name, test := range map[string]func(*testing.T, *apis, context.Context){
		"an object that exists": func(t *testing.T, s *apis, ctx context.Context) {
			s.watcher.Enable(ctx, jobSets)
			s.watcher.Resolve([]api.OwnerRef{ref("s", "u"), ref("s", "")})
			time.Sleep(time.Minute)
			s.expect(t, "a minute later", "added s of 2")
		},
		"objects that do not exist": func(t *testing.T, s *apis, ctx context.Context) {
			s.watcher.Enable(ctx, jobSets)
			s.watcher.Resolve([]api.OwnerRef{ref("other", ""), ref("s", "v")})
			s.expect(t, "at once", "added s of 2")
			time.Sleep(firstLookup)
			s.expect(t, "after the first lookup", "gone other ", "gone s v")
		},
		"an object that is not needed any more": func(t *testing.T, s *apis, ctx context.Context) {
			s.watcher.Enable(ctx, jobSets)
			s.watcher.Resolve([]api.OwnerRef{ref("other", "")})
			s.watcher.Resolve(nil)
			time.Sleep(time.Minute)
			s.expect(t, "a minute later", "added s of 2")
		},
		"the API server does not answer for a while": func(t *testing.T, s *apis, ctx context.Context) {
			s.watcher.Enable(ctx, jobSets)
			answer := s.refuse("get", errors.New("no answer"))
			s.watcher.Resolve([]api.OwnerRef{ref("other", "")})
			time.Sleep(10 * time.Second)
			s.expect(t, "no answer", "added s of 2")
			answer()
			time.Sleep(maxPause)
			s.expect(t, "an answer", "gone other ")
		},
		"a kind that is not served": func(t *testing.T, s *apis, ctx context.Context) {
			s.discovery.Serve()
			s.watcher.Enable(ctx, jobSets)
			s.watcher.Resolve([]api.OwnerRef{ref("s", "")})
			time.Sleep(firstLookup)
			s.expect(t, "after the first lookup", "gone s ")
		},
		"a kind that is served since the last question": func(t *testing.T, s *apis, ctx context.Context) {
			s.discovery.Serve()
			s.watcher.Enable(ctx, jobSets)
			s.discovery.Serve(jobSetsServed)
			s.watcher.Resolve([]api.OwnerRef{ref("s", "")})
			time.Sleep(firstLookup)
			s.expect(t, "after the first lookup", "added s of 2")
		},
		"a kind that cannot be converted": func(t *testing.T, s *apis, ctx context.Context) {
			s.refuse("list", apierrors.NewInternalError(errors.New("conversion webhook failed")))
			s.watcher.Enable(ctx, jobSets) // returns
			s.watcher.Resolve([]api.OwnerRef{ref("s", "")})
			time.Sleep(time.Minute)
			s.expect(t, "a minute later", "failed jobsets.jobset.x-k8s.io")
		},
		"a kind that the scheduler must not read, and may later": func(t *testing.T, s *apis, ctx context.Context) {
			allow := s.refuse("list", apierrors.NewForbidden(schema.GroupResource{Resource: "jobsets"}, "", nil))
			s.watcher.Enable(ctx, jobSets)
			s.watcher.Resolve([]api.OwnerRef{ref("other", "")})
			synctest.Wait()
			s.mu.Lock()
			if !slices.Contains(s.seen, "failed jobsets.jobset.x-k8s.io") {
				t.Errorf("%q, want a failure", s.seen)
			}
			s.mu.Unlock()
			time.Sleep(time.Minute)
			s.mu.Lock()
			if slices.Contains(s.seen, "gone other ") {
				t.Error("an object of a kind that cannot be read is gone")
			}
			s.seen = nil
			s.mu.Unlock()
			allow()
			time.Sleep(2 * time.Minute)
			s.mu.Lock()
			s.seen = slices.DeleteFunc(s.seen, func(what string) bool { return what == "failed jobsets.jobset.x-k8s.io" })
			s.mu.Unlock()
			s.expect(t, "allowed", "added s of 2", "gone other ")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newAPIs()
				s.discovery.Serve(jobSetsServed)
				s.run(t, func(ctx context.Context) { test(t, s, ctx) })
			})
		})
	}
}

// TestNoKind asserts that a watcher without rules sends no request.
func TestNoKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIs()
		s.discovery.Serve(jobSetsServed)
		s.watcher.Enable(t.Context(), ownerapi.RulesOf(api.Grouping{Kinds: api.KindJob | api.KindKueue}))
		time.Sleep(3 * kindwatch.AskEvery)
		s.expect(t, "no rule")
		if asked := s.discovery.TakeAsked() + len(s.dynamic.Actions()); asked > 0 {
			t.Errorf("%d requests were sent", asked)
		}
	})
}
