// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"flag"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/test/cluster"
)

// The bound on time holds for -groups 10000 -nodes 5000; the defaults keep the test short.
var (
	loadPodGroups = flag.Int("groups", 200, "how many groups are in the namespace when TestWhyIsQuick asks about one")
	loadNodes     = flag.Int("nodes", 5, "how many nodes there are then")
)

const (
	whyGroups     = 10_000 // from so many groups on the time is asserted
	whyBound      = 200 * time.Millisecond
	whyRuns       = 20
	perPodGroup   = 2 // pods
	byteTolerance = 512
)

// TestWhyIsQuick asks about one group among few and among many. It must not make more requests nor read more.
func TestWhyIsQuick(t *testing.T) {
	h := newHarness(t, cluster.Options{Nodes: *loadNodes, NoKubelets: true})
	p := h.newPlugin()
	h.load(0, 10)
	before := h.traffic(p, "why", "load-3")
	h.load(10, *loadPodGroups)
	after := h.traffic(p, "why", "load-3")
	if diff := cmp.Diff(slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after))); diff != "" {
		t.Errorf("requests among 10 groups and among %d (-few +many):\n%s", *loadPodGroups, diff)
	}
	few, many := 0, 0
	for _, path := range slices.Sorted(maps.Keys(after)) {
		few, many = few+before[path].bytes, many+after[path].bytes
		t.Logf("%8s %6d bytes %s", after[path].took.Round(time.Millisecond/10), after[path].bytes, path)
	}
	if many > few+byteTolerance {
		t.Errorf("%d bytes were read among 10 groups, %d among %d", few, many, *loadPodGroups)
	}

	var times []time.Duration
	for range whyRuns {
		start := time.Now()
		if out, ok := p.run("why", "load-3"); !ok {
			t.Fatal(out)
		}
		times = append(times, time.Since(start))
	}
	slices.Sort(times)
	median := times[len(times)/2]
	t.Logf("why takes %s among %d groups on %d nodes (median of %d, from %s to %s)", median, *loadPodGroups, *loadNodes, whyRuns, times[0], times[len(times)-1])
	if *loadPodGroups >= whyGroups && median > whyBound {
		t.Errorf("why takes %s, over %s", median, whyBound)
	}
}

// load creates pending PodGroups load-<from> to load-<to> with pods and with the event that the scheduler writes.
func (h *harness) load(from, to int) {
	h.t.Helper()
	const message = "needs 2 more pods of 1 cpu; 0/5000 nodes are available: 5000 Insufficient cpu"
	h.each(to-from, func(i int) error {
		name := fmt.Sprint("load-", from+i)
		created, err := h.batch.SchedulingV1alpha1().PodGroups(namespace).Create(h.ctx, &v1alpha1.PodGroup{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.PodGroupSpec{MinMember: perPodGroup},
		}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		created.Status = v1alpha1.PodGroupStatus{Phase: v1alpha1.PodGroupPending, Pending: perPodGroup, Conditions: []metav1.Condition{{
			Type: v1alpha1.ConditionPodGroupScheduled, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNotEnoughResources,
			Message: message, LastTransitionTime: metav1.Now(),
		}}}
		if _, err = h.batch.SchedulingV1alpha1().PodGroups(namespace).UpdateStatus(h.ctx, created, metav1.UpdateOptions{}); err != nil {
			return err
		}
		for member := range perPodGroup {
			pod := newPod(fmt.Sprintf("%s-%d", name, member), "1cpu", label(v1alpha1.LabelPodGroup, name))
			if _, err = h.client.CoreV1().Pods(namespace).Create(h.ctx, pod, metav1.CreateOptions{}); err != nil {
				return err
			}
		}
		_, err = h.client.EventsV1().Events(namespace).Create(h.ctx, &eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{Name: name + ".1"}, EventTime: metav1.NowMicro(), ReportingController: "batch-scheduler",
			ReportingInstance: "test", Action: "Scheduling", Reason: v1alpha1.ReasonNotEnoughResources, Type: corev1.EventTypeWarning, Note: message,
			Regarding: corev1.ObjectReference{
				APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "PodGroup", Namespace: namespace, Name: name, UID: created.UID,
			},
		}, metav1.CreateOptions{})
		return err
	})
}

// exchange is a request and its answer.
type exchange struct {
	bytes int // of the answer
	took  time.Duration
}

// traffic runs the plugin once and returns what it has asked the API server, by path and query.
func (h *harness) traffic(p plugin, args ...string) map[string]exchange {
	h.t.Helper()
	target, err := url.Parse(h.cluster.RESTConfig().Host)
	h.must(err)
	forward := httputil.NewSingleHostReverseProxy(target)
	forward.Transport, err = rest.TransportFor(h.cluster.RESTConfig())
	h.must(err)
	var mu sync.Mutex
	seen := map[string]exchange{}
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, request *http.Request) {
		start, counted := time.Now(), &counter{ResponseWriter: out}
		forward.ServeHTTP(counted, request)
		mu.Lock()
		defer mu.Unlock()
		key := request.Method + " " + request.URL.String()
		for seen[key] != (exchange{}) {
			key += " again"
		}
		seen[key] = exchange{counted.bytes, time.Since(start)}
	}))
	defer server.Close()
	forward.ErrorLog = log.New(io.Discard, "", 0)
	cmd := p.command(h.ctx, args...)
	cmd.Env = append(cmd.Env, "KUBECONFIG=/dev/null")
	cmd.Args = append(cmd.Args, "--server", server.URL, "--namespace", namespace)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "Reason:") {
		h.t.Fatalf("%v: %s", err, out)
	}
	server.Close() // when all requests have ended, those that were given up too
	return seen
}

type counter struct {
	http.ResponseWriter
	bytes int
}

func (c *counter) Write(data []byte) (int, error) {
	c.bytes += len(data)
	return c.ResponseWriter.Write(data)
}
