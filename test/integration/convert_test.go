// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/test/cluster"
)

// unusualQueues are Queues of other schedulers with values at the limits of what the API server accepts in a Queue.
const unusualQueues = `
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: empty}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: volcano-0}
spec:
  weight: 65535
  capability: {cpu: "0.1", memory: 1e18, pods: 0, nvidia.com/gpu: 1e3, hugepages-2Mi: 2Mi, ephemeral-storage: 10.5Gi, gpus: 1}
  deserved: {cpu: 100, memory: 123456789012345678, nvidia.com/gpu: "1e3"}
  guarantee: {resource: {pods: 5, cpu: 1n}}
  reclaimable: false
---
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {name: 0-kai}
spec:
  resources:
    cpu: {limit: 1500.5, quota: 1e6, overQuotaWeight: 0.001}
    memory: {limit: 1e12, quota: 0.5, overQuotaWeight: 1e9}
    gpu: {limit: 0.25, quota: 0.125}
`

// TestConvertedQueues checks that the API server accepts what "kubectl batch convert" prints.
func TestConvertedQueues(t *testing.T) {
	h := newHarness(t, cluster.Options{})
	convert := h.newPlugin()
	for name, test := range map[string]struct {
		args  []string
		input string
		want  []string // Queues
	}{
		"Volcano":       {args: []string{"-f", "../../cmd/kubectl-batch/app/testdata/convert/volcano.yaml"}, want: []string{"vision"}},
		"KAI Scheduler": {args: []string{"-f", "../../cmd/kubectl-batch/app/testdata/convert/kai.yaml"}, want: []string{"team"}},
		"unusual":       {args: []string{"-f", "-"}, input: unusualQueues, want: []string{"empty", "volcano-0", "0-kai"}},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := convert.command(h.ctx, append([]string{"convert"}, test.args...)...)
			var out, warnings bytes.Buffer
			cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(test.input), &out, &warnings
			if err := cmd.Run(); err != nil {
				t.Fatalf("%v: %s", err, warnings.String())
			}
			var got []string
			for document := range strings.SplitSeq(out.String(), "---\n") {
				var printed v1alpha1.Queue
				if err := yaml.UnmarshalStrict([]byte(document), &printed); err != nil {
					t.Fatal(err)
				}
				got = append(got, printed.Name)
				stored, err := h.batch.SchedulingV1alpha1().Queues().Patch(h.ctx, printed.Name, types.ApplyPatchType, []byte(document),
					metav1.PatchOptions{FieldManager: "test", FieldValidation: metav1.FieldValidationStrict, DryRun: []string{metav1.DryRunAll}})
				if err != nil {
					t.Errorf("%v:\n%s", err, document)
					continue
				}
				if printed.Spec.Reclaimable == nil {
					printed.Spec.Reclaimable = ptr.To(true) // the default
				}
				if diff := cmp.Diff(printed.Spec, stored.Spec); diff != "" {
					t.Errorf("spec (-printed +stored):\n%s", diff)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("Queues (-want +got):\n%s", diff)
			}
		})
	}
}
