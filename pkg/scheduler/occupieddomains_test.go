// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// TestOccupiedDomains: gang has its pods on nodes of the racks a/r1, a/r2 and b/r1, and of block b alone.
func TestOccupiedDomains(t *testing.T) {
	on := func(node string, change func(*v1.Pod)) func(*backlogModel, int) {
		return func(m *backlogModel, i int) {
			p := m.pod(fmt.Sprintf("gang-%d", i), node, "1", "gang")
			p.Spec.NodeName, p.Spec.NodeSelector = node, nil
			if change != nil {
				change(p)
			}
			m.Events().SetPod(p)
		}
	}
	for name, tc := range map[string]struct {
		required, preferred string
		pods                []func(*backlogModel, int)
		want                string
	}{
		"no pod has a node":         {required: "block", pods: []func(*backlogModel, int){on("", nil)}},
		"no constraint":             {pods: []func(*backlogModel, int){on("1", nil)}},
		"a level that is not known": {required: "row", pods: []func(*backlogModel, int){on("1", nil)}},
		"a required level":          {required: "rack", pods: []func(*backlogModel, int){on("1", nil), on("2", nil), on("", nil)}, want: "rack 1 a/r1"},
		"a preferred level":         {preferred: "rack", pods: []func(*backlogModel, int){on("4", nil), on("3", nil), on("1", nil)}, want: "rack 3 a/r1 a/r2 b/r1"},
		"both":                      {required: "block", preferred: "rack", pods: []func(*backlogModel, int){on("3", nil), on("1", nil)}, want: "block 1 a\nrack 2 a/r1 a/r2"},
		"both are the same":         {required: "rack", preferred: "rack", pods: []func(*backlogModel, int){on("1", nil)}, want: "rack 1 a/r1"},
		"a node in no domain":       {preferred: "rack", pods: []func(*backlogModel, int){on("5", nil), on("1", nil)}, want: "rack 1 a/r1"},
		"only nodes in no domain":   {preferred: "rack", pods: []func(*backlogModel, int){on("5", nil)}},
		"a pod that is being deleted is there, and one that has ended is not": {
			required: "rack",
			pods: []func(*backlogModel, int){
				on("1", func(p *v1.Pod) { p.DeletionTimestamp = &metav1.Time{} }),
				on("3", func(p *v1.Pod) { p.Status.Phase = v1.PodSucceeded }),
			},
			want: "rack 1 a/r1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newBacklogModel(t)
			for i, labels := range [][]string{{"block=a", "rack=r1"}, {"block=a", "rack=r1"}, {"block=a", "rack=r2"}, {"block=b", "rack=r1"}, {"block=b"}} {
				m.labelled(fmt.Sprint(i+1), labels...)
			}
			m.topology("t", "t", "block", "rack")
			group := &v1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "gang", UID: "gang"}, Spec: v1alpha1.PodGroupSpec{MinMember: 1}}
			if tc.required+tc.preferred != "" {
				group.Spec.TopologyConstraint = &v1alpha1.TopologyConstraint{RequiredTopologyLevel: tc.required, PreferredTopologyLevel: tc.preferred}
			}
			m.Events().SetPodGroup(group)
			for i, add := range tc.pods {
				add(m, i)
			}
			m.Events().Recompute()
			if diff := cmp.Diff(tc.want, string(occupiedDomains(m.Jobs()["group/ns/gang"]))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
