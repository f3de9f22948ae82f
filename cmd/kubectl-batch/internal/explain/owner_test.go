// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/batch-scheduler/batch-scheduler/cmd/kubectl-batch/internal/explain"
	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// owner is an object from YAML, with the name "x" and the UID "uid-x".
func owner(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	o.SetName("x")
	o.SetUID("uid-x")
	return o
}

// controlled makes a pod one of the object "x".
func controlled(p *corev1.Pod) {
	p.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: "x", UID: "uid-x", Controller: ptr.To(true)}}
}

// ownedByX makes a PodGroup one of the object "x".
func ownedByX(g *v1alpha1.PodGroup) {
	g.OwnerReferences = []metav1.OwnerReference{{Kind: "PyTorchJob", Name: "x", UID: "uid-x"}}
}

func TestOwner(t *testing.T) {
	t.Parallel()
	const ofG = "labels: {scheduling.batch-scheduler.dev/pod-group: g}"
	for name, test := range map[string]struct {
		object string
		edits  []func(*v1alpha1.PodGroup) // of the PodGroup g
		pods   []corev1.Pod
		want   string // part of the answer, or of the error
	}{
		"the template of a Job names the PodGroup": {
			object: "{kind: Job, spec: {template: {metadata: {" + ofG + "}}}}",
			want:   "PodGroup: team/g",
		},
		"by the annotation of kube-batch": {
			object: "{kind: Job, spec: {template: {metadata: {annotations: {scheduling.k8s.io/group-name: g}}}}}",
			want:   "PodGroup: team/g",
		},
		"the label takes precedence over the annotation": {
			object: "{kind: Job, spec: {template: {metadata: {annotations: {scheduling.k8s.io/group-name: h}, " + ofG + "}}}}",
			want:   "PodGroup: team/g",
		},
		"the templates are in a list": {
			object: "{kind: JobSet, spec: {replicatedJobs: [{template: {spec: {template: {metadata: {" + ofG + "}}}}}]}}",
			want:   "PodGroup: team/g",
		},
		"templates name two PodGroups": {
			object: "{kind: MPIJob, spec: {launcher: {template: {metadata: {" + ofG + "}}}, worker: {template: {metadata: {labels: {scheduling.batch-scheduler.dev/pod-group: h}}}}}}",
			want:   "mpijob/x has pods of the PodGroups g, h; name one of them",
		},
		"the label of the object itself makes no pod a member": {
			object: "{kind: Job, metadata: {" + ofG + "}, spec: {}}",
			want:   `job/x names no PodGroup and controls no pods; "kubectl batch why pod/NAME" explains a pod`,
		},
		"the controller made the PodGroup": {
			object: "{kind: PyTorchJob, spec: {}}", edits: []func(*v1alpha1.PodGroup){ownedByX},
			want: "PodGroup: team/g",
		},
		"without a PodGroup, of a pending pod": {
			object: "{kind: Job, spec: {}}", pods: []corev1.Pod{pod("a", controlled, running), pod("b", controlled), pod("c", controlled), pod("other")},
			want: "Pod:      team/b",
		},
		"without a PodGroup and a pending pod": {
			object: "{kind: Job, spec: {}}", pods: []corev1.Pod{pod("a", controlled, running), pod("other")},
			want: "Pod:      team/a",
		},
		"the PodGroup does not exist, but a pod": {
			object: "{kind: Job, spec: {template: {metadata: {labels: {scheduling.batch-scheduler.dev/pod-group: h}}}}}",
			pods:   []corev1.Pod{pod("a", controlled, labelled("h"), waiting("GroupNotFound", "PodGroup \"h\" does not exist"))},
			want:   "Reason:   GroupNotFound",
		},
		"the PodGroup itself, by its full name": {
			object: "{kind: PodGroup, apiVersion: scheduling.batch-scheduler.dev/v1alpha1, spec: {}}",
			want:   `podgroup/x names PodGroup "x", which does not exist`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			core, batch := given(group("g", 2, "research", test.edits...), test.pods)
			reader := explain.Reader{Core: core, Batch: batch, Namespace: "team", Now: noon, AllEvents: true}
			f, err := reader.Owner(t.Context(), owner(t, test.object))
			var got string
			if err != nil {
				got = err.Error()
			} else {
				got = f.Text()
			}
			if !strings.Contains(got, test.want) {
				t.Errorf("want %q in\n%s", test.want, got)
			}
		})
	}
}
