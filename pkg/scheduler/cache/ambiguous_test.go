// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// TestAmbiguousGroup: a pod that names two gangs has one event, also if it changes or the model is built again, and
// another one if it names others.
func TestAmbiguousGroup(t *testing.T) {
	run(t, 1, objects([]runtime.Object{group("a", 3)}), func(h *harness) {
		expect := func(what string, want int) {
			t.Helper()
			h.converge()
			h.wait(2 * time.Minute) // the recorder drops equal events for a minute
			got := 0
			for _, line := range h.Written() {
				got += strings.Count(line, v1alpha1.EventAmbiguousGroup)
			}
			if got != want {
				t.Errorf("%s: %d events, want %d", what, got, want)
			}
		}
		name := func(annotations map[string]string) func(*v1.Pod) {
			return func(p *v1.Pod) { p.Annotations = annotations }
		}
		h.Create(with(member("a", "p"), name(map[string]string{v1alpha1.AnnotationGroupName: "b"})))
		expect("a new pod", 1)
		h.Update("p", func(p *v1.Pod) { p.Labels["some"] = "label" })
		h.converge()
		h.Rebuild()
		expect("a change of a label", 0)
		h.Update("p", name(map[string]string{v1alpha1.AnnotationGroupName: "c"}))
		expect("another gang", 1)
		h.Update("p", name(nil))
		expect("one gang", 0)
	})
}
