// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package capacity_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/batch-scheduler/batch-scheduler/test/capacity"
)

// amounts are names and quantities in turn.
func amounts(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

func TestCompare(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		amounts, limits corev1.ResourceList
		excess, lacking string
	}{
		"as much as there is": {amounts("cpu", "2"), amounts("cpu", "2000m"), "", ""},
		"more than there is":  {amounts("cpu", "2500m"), amounts("cpu", "2"), "2500m cpu of 2", "2500m cpu of 2"},
		"an unknown resource": {amounts("gpu", "1"), amounts("cpu", "2"), "", "1 gpu of 0"},
		"nothing of it":       {amounts("gpu", "0"), amounts("cpu", "2"), "", ""},
		"the first by name":   {amounts("b", "2", "a", "2"), amounts("a", "1", "b", "1"), "2 a of 1", "2 a of 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := capacity.Excess(test.amounts, test.limits); got != test.excess {
				t.Errorf("excess %q, want %q", got, test.excess)
			}
			if got := capacity.Lacking(test.amounts, test.limits); got != test.lacking {
				t.Errorf("lacking %q, want %q", got, test.lacking)
			}
		})
	}
}

func TestAPodTakesWhatItAsksForAndOnePod(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{
		{Resources: corev1.ResourceRequirements{Requests: amounts("cpu", "1")}}, {Resources: corev1.ResourceRequirements{Requests: amounts("cpu", "500m")}},
	}}}
	sum := amounts("cpu", "4")
	capacity.Subtract(sum, capacity.Request(pod))
	capacity.Add(sum, amounts("pods", "3"))
	if diff := cmp.Diff(amounts("cpu", "2500m", "pods", "2"), sum); diff != "" {
		t.Errorf("what is left of 4 cpu and 3 pods (-want +got):\n%s", diff)
	}
}
