// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1 "k8s.io/api/core/v1"

	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// indexed are pods of 1 cpu, created in this order, each with an index by a label.
func indexed(label string, indexes ...int) []Part {
	var parts []Part
	for _, index := range indexes {
		parts = append(parts, Pending(1, "1cpu", Label(label, fmt.Sprint(index))))
	}
	return parts
}

// ofController gives pods a controller.
func ofController(name string) PodOption {
	return Mutate(func(p *v1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: name, UID: "uid", Controller: ptr.To(true)}}
	})
}

// TestRanks is case TO21 of the acceptance list: pods of an indexed gang whose indexes are neighbours start in the same rack,
// whatever the order of their creation. The wanted text has the pods of each rack in the order of their creation.
func TestRanks(t *testing.T) {
	const completion = "batch.kubernetes.io/job-completion-index"
	twoRacks := []Row{rack("b", "r1", 4, "1cpu"), rack("b", "r2", 4, "1cpu")}
	for name, tc := range map[string]struct {
		racks   []Row
		members int32
		pods    []Part
		want    string
	}{
		"TO21: an indexed Job": {
			members: 8, racks: twoRacks, pods: indexed(completion, 7, 2, 5, 0, 3, 6, 1, 4),
			want: "r1: 1 3 4 6, r2: 0 2 5 7",
		},
		"a StatefulSet": {
			members: 8, racks: twoRacks, pods: indexed("apps.kubernetes.io/pod-index", 7, 6, 5, 4, 3, 2, 1, 0),
			want: "r1: 4 5 6 7, r2: 0 1 2 3",
		},
		"a training job": {
			members: 8, racks: twoRacks, pods: indexed("training.kubeflow.org/replica-index", 1, 3, 5, 7, 0, 2, 4, 6),
			want: "r1: 0 1 4 5, r2: 2 3 6 7",
		},
		"10 comes after 9": {
			members: 6, racks: []Row{rack("b", "r1", 4, "1cpu"), rack("b", "r2", 2, "1cpu")}, pods: indexed(completion, 12, 11, 10, 9, 8, 7),
			want: "r1: 2 3 4 5, r2: 0 1",
		},
		"pods of one controller are neighbours": {
			members: 8, racks: twoRacks,
			pods: []Part{
				Pending(1, "1cpu", Label(completion, "1"), ofController("b")), Pending(1, "1cpu", Label(completion, "1"), ofController("a")),
				Pending(1, "1cpu", Label(completion, "0"), ofController("b")), Pending(1, "1cpu", Label(completion, "0"), ofController("a")),
				Pending(1, "1cpu", Label(completion, "2"), ofController("a")), Pending(1, "1cpu", Label(completion, "3"), ofController("a")),
				Pending(1, "1cpu", Label(completion, "2"), ofController("b")), Pending(1, "1cpu", Label(completion, "3"), ofController("b")),
			},
			want: "r1: 1 3 4 5, r2: 0 2 6 7",
		},
		"pods without index come first, in the order of their creation": {
			members: 4, racks: []Row{rack("b", "r1", 2, "1cpu"), rack("b", "r2", 1, "1cpu"), rack("b", "r3", 1, "1cpu")},
			pods: append(indexed(completion, 1, 0), Pending(2, "1cpu")),
			want: "r1: 2 3, r2: 1, r3: 0",
		},
		"a higher priority comes before a lower index": {
			members: 3, racks: []Row{rack("b", "r1", 2, "1cpu"), rack("b", "r2", 1, "1cpu")},
			pods: append(indexed(completion, 0, 1), Pending(1, "1cpu", Label(completion, "2"), Priority(1))),
			want: "r1: 0 2, r2: 1",
		},
		"a label that is no number is no index": {
			members: 3, racks: []Row{rack("b", "r1", 2, "1cpu"), rack("b", "r2", 1, "1cpu")},
			pods: append(indexed(completion, 1, 0), Pending(1, "1cpu", Label(completion, "-1"))),
			want: "r1: 1 2, r2: 0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := New(t, BuiltIn(t), racks(append(tc.racks, Group("q/gang", tc.members, append(tc.pods, Prefer("rack", 0))...))...))
			transcript := c.Cycle()
			if got := byRack(transcript); got != tc.want {
				t.Errorf("got %q, want %q\n%s", got, tc.want, transcript)
			}
		})
	}
}

var bindOf = regexp.MustCompile(`bind q/gang-(\d+) b(r\d)n\d`)

// byRack returns the numbers of the pods in each rack.
func byRack(transcript string) string {
	pods := map[string][]string{}
	for _, bind := range bindOf.FindAllStringSubmatch(transcript, -1) {
		pods[bind[2]] = append(pods[bind[2]], bind[1])
	}
	var list []string
	for _, rack := range []string{"r1", "r2", "r3"} {
		if len(pods[rack]) > 0 {
			list = append(list, rack+": "+strings.Join(pods[rack], " "))
		}
	}
	return strings.Join(list, ", ")
}
