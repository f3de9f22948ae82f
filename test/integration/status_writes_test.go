// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/test/cluster"
)

// sentRequests are the requests of the scheduler.
type sentRequests struct {
	mu   sync.Mutex
	list []string // method, path and body
}

func (r *sentRequests) record(method, path string, body []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, fmt.Sprintf("%s %s %s", method, path, body))
}

// with returns the requests whose paths contain a text.
func (r *sentRequests) with(part string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []string
	for _, request := range r.list {
		if fields := strings.Fields(request); strings.Contains(fields[1], part) {
			found = append(found, request)
		}
	}
	return found
}

// TestStatusWrites: the scheduler writes the status of a group of another API at most twice from its creation to the end of
// its pods: when the gang has started, and when it has ended. A gang that waits for more than a second has one more write,
// with the reason. Counts between are written only if pods end more than two seconds apart.
func TestStatusWrites(t *testing.T) {
	h := newHarness(t, cluster.Options{WorkloadAPI: true, FeatureGates: []string{"GangScheduling=true"}})
	h.applyFiles("scheduler-plugins.crd.yaml", "volcano.crd.yaml")
	proxy, args := h.newProxy()
	sent := &sentRequests{}
	proxy.OnRequest(sent.record)
	h.do(nodes("n", 3, "4cpu"))
	sources := map[string]struct {
		groups        otherAPI
		spec          string
		waits, writes []string // parts of the writes
	}{
		"native": {
			h.native(), `{"schedulingPolicy":{"gang":{"minCount":3}}}`,
			[]string{`"PodGroupScheduled","status":"False"`}, []string{`"PodGroupScheduled","status":"True"`},
		},
		"scheduler-plugins": {
			h.schedulerPlugins(), `{"minMember":3}`,
			[]string{`"phase":"Scheduling"`}, []string{`"phase":"Running","running":3`, `"phase":"Finished","running":0,"succeeded":3`},
		},
		"volcano": {
			h.volcano(), `{"minMember":3}`,
			[]string{`"phase":"Inqueue"`}, []string{`"phase":"Running"`, `"phase":"Completed"`},
		},
	}
	for source := range sources {
		h.grantSource(source)
	}
	h.start(append(args, h.sourcePolicy("own", "native", "scheduler-plugins", "volcano"))...)
	for source, s := range sources {
		s.groups.group(namespace, source, s.spec)
		s.groups.members(namespace, source, 3, "1cpu")
		s.groups.group(namespace, source+"-late", s.spec)
		s.groups.members(namespace, source+"-late", 3, "1cpu", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "late"} })
	}
	for source, s := range sources {
		h.eventually(func() error { return sent.statusWrites(source, s.writes[:1]) })
		h.eventually(func() error { return sent.statusWrites(source+"-late", s.waits) })
	}
	h.do(node("late", "12cpu"))
	for source, s := range sources {
		h.eventually(func() error {
			return sent.statusWrites(source+"-late", slices.Concat(s.waits, s.writes[:1]))
		})
	}
	h.pass(3 * time.Second) // longer than the least time between two writes
	for i := range 3 {      // the pods of a group end in different cycles, but within two seconds
		for source := range sources {
			for _, name := range []string{source, source + "-late"} {
				_, err := h.client.CoreV1().Pods(namespace).Patch(h.ctx, fmt.Sprintf("%s-%d", name, i), types.MergePatchType, []byte(`{"status":{"phase":"Succeeded"}}`), metav1.PatchOptions{}, "status")
				h.must(err)
			}
		}
	}
	whole := func() (err error) {
		for source, s := range sources {
			err = errors.Join(err, sent.statusWrites(source, s.writes), sent.statusWrites(source+"-late", slices.Concat(s.waits, s.writes)))
		}
		return err
	}
	h.eventually(whole)
	h.pass(3 * time.Second) // longer than counts are held back
	h.must(whole())
}

// statusWrites compares the writes of a PodGroup with parts of them, in order.
func (r *sentRequests) statusWrites(name string, want []string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var got []string
	for _, request := range r.list {
		if method, _, _ := strings.Cut(request, " "); method != http.MethodGet && strings.Contains(strings.ReplaceAll(request, "/status ", " "), "/podgroups/"+name+" ") {
			got = append(got, request)
		}
	}
	if !slices.EqualFunc(got, want, strings.Contains) {
		return fmt.Errorf("group %s: writes\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	return nil
}
