// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"testing"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// TestAdviceAboutTrees: the advice about a tree of groups is another one than that about a PodGroup with the same reason.
func TestAdviceAboutTrees(t *testing.T) {
	for reason, messages := range map[string][2]string{
		v1alpha1.ReasonGroupNotFound: {
			`CompositePodGroup "ray", the parent of PodGroup "cpu", does not exist in the namespace, or the scheduler cannot read it`,
			`PodGroup "no-group" does not exist in the namespace of the pod; create it or correct the label scheduling.batch-scheduler.dev/pod-group`,
		},
		v1alpha1.ReasonInvalidSubGroups: {
			`the parents of CompositePodGroup "a" form a cycle`, `spec.subGroups: subgroup "x": its parents form a cycle, or more than 4 levels`,
		},
		v1alpha1.ReasonGroupConflict: {
			`the groups of the tree have different priorities: CompositePodGroup "root" has 5, PodGroup "b" has 0`,
			"pods with one scheduling.batch-scheduler.dev/group-key name different sizes in scheduling.batch-scheduler.dev/min-member: 2 and 4",
		},
	} {
		of, other := messageAdvice(reason, messages[0]), messageAdvice(reason, messages[1])
		if of == "" || other != advice(reason) || of == other {
			t.Errorf("%s: the advice about a tree is %q, else %q", reason, of, other)
		}
	}
}
