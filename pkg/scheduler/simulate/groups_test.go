// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
)

// TestGroupsOfOtherAPIs: a simulation reads the PodGroups of the sources that its policy enables. One node has the capacity for two
// pods.
func TestGroupsOfOtherAPIs(t *testing.T) {
	const node = `apiVersion: v1
kind: Node
metadata: {name: node}
status: {allocatable: {cpu: "2", pods: "10"}}
---
apiVersion: scheduling.batch-scheduler.dev/v1alpha1
kind: Queue
metadata: {name: default}
---
`
	pods := func(metadata, spec string) string {
		text := ""
		for _, name := range []string{"a", "b"} {
			text += "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " + name + ", namespace: ns, " + metadata + "}\n" +
				"spec: {schedulerName: batch-scheduler, " + spec + `containers: [{name: c, image: i, resources: {requests: {cpu: "1"}}}]}` + "\n"
		}
		return text
	}
	group := func(apiVersion, spec string) string {
		return "apiVersion: " + apiVersion + "\nkind: PodGroup\nmetadata: {name: g, namespace: ns}\nspec: " + spec + "\n"
	}
	plugins := pods("labels: {scheduling.x-k8s.io/pod-group: g}", "")
	volcano := pods("annotations: {scheduling.k8s.io/group-name: g}", "")
	kai := pods("annotations: {pod-group-name: g}, labels: {kai.scheduler/subgroup-name: workers}", "")
	native := pods("labels: {}", "schedulingGroup: {podGroupName: g}, ")
	for name, tc := range map[string]struct {
		objects, sources string
		want             int // pods bound
	}{
		"scheduler-plugins":              {group("scheduling.x-k8s.io/v1alpha1", "{minMember: 2}") + plugins, "scheduler-plugins", 2},
		"scheduler-plugins, too many":    {group("scheduling.x-k8s.io/v1alpha1", "{minMember: 3}") + plugins, "scheduler-plugins", 0},
		"scheduler-plugins, not enabled": {group("scheduling.x-k8s.io/v1alpha1", "{minMember: 2}") + plugins, "volcano", 0},
		"volcano":                        {group("scheduling.volcano.sh/v1beta1", "{minMember: 2, queue: default}") + volcano, "volcano", 2},
		"volcano, not enabled":           {group("scheduling.volcano.sh/v1beta1", "{minMember: 2, queue: default}") + volcano, "own", 0},
		"volcano, not supported":         {group("scheduling.volcano.sh/v1beta1", "{networkTopology: {mode: hard}}") + volcano, "volcano", 0},
		"kai":                            {group("scheduling.run.ai/v2alpha2", "{minMember: 2, queue: default, subGroups: [{name: workers, minMember: 2}]}") + kai, "kai", 2},
		"kai, too many in a subgroup":    {group("scheduling.run.ai/v2alpha2", "{queue: default, subGroups: [{name: workers, minMember: 3}]}") + kai, "kai", 0},
		"kai, not enabled":               {group("scheduling.run.ai/v2alpha2", "{minMember: 2, queue: default}") + kai, "own", 0},
		"native":                         {group("scheduling.k8s.io/v1alpha2", "{schedulingPolicy: {gang: {minCount: 2}}}") + native, "native", 2},
		"two APIs": {
			group("scheduling.x-k8s.io/v1alpha1", "{minMember: 2}") + "---\n" + group("scheduling.volcano.sh/v1beta1", "{minMember: 3}") + plugins, "volcano, scheduler-plugins", 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			objects, path := filepath.Join(dir, "objects.yaml"), filepath.Join(dir, "policy")
			for file, content := range map[string]string{objects: node + tc.objects, path: "groupSources: [" + tc.sources + "]\n" + conf.DefaultYAML()} {
				if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			result := run(t, snapshot(t, objects), path)
			if got := len(result.Bound); got != tc.want {
				t.Errorf("%d pods bound, want %d: %+v", got, tc.want, result.Waiting)
			}
		})
	}
}
