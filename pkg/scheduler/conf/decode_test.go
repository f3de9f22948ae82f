// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/config/v1alpha1"
)

// TestDecoderAgreesWithKubernetes compares the decoder with the one that other programs use for Kubernetes types.
func TestDecoderAgreesWithKubernetes(t *testing.T) {
	for name, given := range map[string]string{
		"the built-in default":  defaultYAML,
		"nothing but an action": "actions: allocate",
		"lists, switches, arguments of every type, a duration": `
actions: [allocate, backfill]
starvationAfter: 1h30m
tiers:
- plugins:
  - {name: gang, enableJobOrder: false, enableNodeOrder: true, arguments: {}}
  - {name: drf, arguments: {a: 1, b: "2", c: true, d: x, e: 0.5}}
- {}
- plugins: []
`,
		"null fields":      "apiVersion: null\nactions: allocate\ntiers: [{plugins: null}]\nstarvationAfter:\n",
		"a comma too many": "actions: 'allocate, '",
	} {
		t.Run(name, func(t *testing.T) {
			var want, got v1alpha1.SchedulerConfiguration
			if err := yaml.UnmarshalStrict([]byte(given), &want); err != nil {
				t.Fatal(err)
			}
			root, err := document([]byte(given))
			if err != nil {
				t.Fatal(err)
			}
			r := newReport("f", root.Line)
			if ok := (&decoder{r}).decode(root, nil, reflect.ValueOf(&got).Elem()); !ok || r.err() != nil {
				t.Fatal(r.err())
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("object (-sigs.k8s.io/yaml +decoder):\n%s", diff)
			}
		})
	}
}
