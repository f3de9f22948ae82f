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

// TestDeclarationsThatCannotBeRead: a pod and a node with a value that cannot be read have one event, and another one if they
// get another such value.
func TestDeclarationsThatCannotBeRead(t *testing.T) {
	run(t, 1, objects([]runtime.Object{group("a", 3)}), func(h *harness) {
		expect := func(what string, want int) {
			t.Helper()
			h.converge()
			h.wait(2 * time.Minute) // the recorder drops equal events for a minute
			got := 0
			for _, line := range h.Written() {
				if strings.Contains(line, v1alpha1.EventInvalidRunTime) || strings.Contains(line, v1alpha1.EventInvalidUnavailableFrom) {
					got++
				}
			}
			if got != want {
				t.Errorf("%s: %d events, want %d", what, got, want)
			}
		}
		limited := func(value string) func(*v1.Pod) {
			return func(p *v1.Pod) {
				p.Annotations = map[string]string{v1alpha1.AnnotationMaximumExecutionTime: value}
			}
		}
		h.Create(with(member("a", "p"), limited("1h")))
		expect("a new pod", 1)
		h.Update("p", func(p *v1.Pod) { p.Labels["some"] = "label" })
		h.converge()
		h.Rebuild()
		expect("a change of a label", 0)
		h.Update("p", limited("2h"))
		expect("another value", 1)
		h.Update("p", limited("3600"))
		expect("a number", 0)

		unavailable := node("n9")
		unavailable.Annotations = map[string]string{v1alpha1.AnnotationUnavailableFrom: "tomorrow"}
		h.Create(unavailable)
		expect("a new node", 1)
	})
}
