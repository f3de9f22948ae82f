// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/errors"
)

// TestRefused is A25: what the API server refuses, with what words. What it accepts and cannot
// work shows in conditions, see TestWaiting.
func TestRefused(t *testing.T) {
	h := newHarness(t, noControllers)
	h.do(threeNodes)
	h.start()
	for name, test := range map[string]struct {
		given string // kind, and the object as JSON without version and kind
		want  string
	}{
		"minMember 0": {
			`podgroups {"metadata":{"name":"a"},"spec":{"minMember":0}}`,
			"spec.minMember in body should be greater than or equal to 1",
		},
		"a name that is none": {
			`podgroups {"metadata":{"name":"Not_A_Name"}}`,
			"a lowercase RFC 1123 subdomain must consist of",
		},
		"a queue that cannot be one": {
			`podgroups {"metadata":{"name":"a"},"spec":{"queue":"Other's"}}`,
			"must be the name of a Queue",
		},
		"the priority of the system": {
			`podgroups {"metadata":{"name":"a"},"spec":{"priorityClassName":"system-node-critical"}}`,
			"use a PriorityClass of your own",
		},
		"weight 0": {
			`queues {"metadata":{"name":"q"},"spec":{"weight":0}}`,
			"spec.weight in body should be greater than or equal to 1",
		},
		"a negative capability": {
			`queues {"metadata":{"name":"q"},"spec":{"capability":{"cpu":"-1"}}}`,
			"no quantity may be negative",
		},
		"a guarantee above the capability": {
			`queues {"metadata":{"name":"q"},"spec":{"capability":{"cpu":"1"},"guarantee":{"cpu":"2"}}}`,
			"must not exceed capability",
		},
		"a queue with a dot in its name": {
			`queues {"metadata":{"name":"q.1"}}`,
			"at most 63 characters and no dot",
		},
	} {
		t.Run(name, func(t *testing.T) {
			kind, object, _ := strings.Cut(test.given, " ")
			err := h.post(kind, object)
			if !errors.IsInvalid(err) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one that it is invalid: %s", err, test.want)
			}
		})
	}
	h.do(gang("a", 1, pods(1, "1cpu")))
	h.awaitStable(`a: Running Scheduled; 1 running`, "")
}

// post creates an object of our kinds from raw JSON, which can say what Go types cannot.
func (h *harness) post(kind, object string) error {
	singular := map[string]string{"podgroups": "PodGroup", "queues": "Queue"}[kind]
	body := `{"apiVersion":"scheduling.batch-scheduler.dev/v1alpha1","kind":"` + singular + `",` + object[1:]
	request := h.batch.SchedulingV1alpha1().RESTClient().Post().Resource(kind)
	if kind == "podgroups" {
		request = request.Namespace(namespace)
	}
	return request.Body([]byte(body)).SetHeader("Content-Type", "application/json").Do(h.ctx).Error()
}
