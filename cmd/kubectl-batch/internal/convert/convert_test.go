// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/batch-scheduler/batch-scheduler/cmd/kubectl-batch/internal/convert"
)

const (
	volcano = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\n"
	kai     = "apiVersion: scheduling.run.ai/v2\nkind: Queue\n"
)

// read converts files, and describes the result in lines: a line for each Queue and each loss.
func read(files ...string) (string, error) {
	c := convert.New(convert.Options{GPU: "nvidia.com/gpu"})
	for i, text := range files {
		if err := c.Read(fmt.Sprintf("%d.yaml", i+1), strings.NewReader(text)); err != nil {
			return "", err
		}
	}
	result, err := c.Result()
	if err != nil {
		return "", err
	}
	var lines []string
	for _, queue := range result.Queues {
		spec, err := yaml.Marshal(queue.Spec)
		if err != nil {
			return "", err
		}
		lines = append(lines, queue.Name+": "+strings.Join(strings.Fields(string(spec)), " "))
	}
	for _, loss := range result.Losses {
		lines = append(lines, "lost "+loss.Queue+" "+loss.Field)
	}
	return strings.Join(lines, "\n"), nil
}

// TestVolcano has a case for each setting of a Queue of Volcano.
func TestVolcano(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ spec, want string }{
		"nothing":                        {`{}`, "q: weight: 1"},
		"defaults":                       {`{weight: 1, reclaimable: true, dequeueStrategy: traverse, priority: 0, parent: root, preemptable: true}`, "q: weight: 1"},
		"weight":                         {`{weight: 7}`, "q: weight: 7"},
		"weight 0 is the default":        {`{weight: 0}`, "q: weight: 1"},
		"largest weight":                 {`{weight: 65535}`, "q: weight: 65535"},
		"capability":                     {`{capability: {cpu: 4, memory: 8Gi, nvidia.com/gpu: "2"}}`, `q: capability: cpu: "4" memory: 8Gi nvidia.com/gpu: "2" weight: 1`},
		"0 cpu and memory are no limit":  {`{capability: {cpu: 0, memory: "0"}}`, "q: weight: 1"},
		"0 of another resource is one":   {`{capability: {nvidia.com/gpu: 0}}`, `q: capability: nvidia.com/gpu: "0" weight: 1`},
		"a resource that pods lack":      {`{capability: {gpus: 1, pods: 3}}`, "q: capability: pods: \"3\" weight: 1\nlost q spec.capability.gpus"},
		"deserved":                       {`{deserved: {cpu: 4}}`, `q: guarantee: cpu: "4" weight: 1`},
		"guarantee":                      {`{guarantee: {resource: {cpu: 4}}}`, "q: guarantee: cpu: \"4\" weight: 1\nlost q spec.guarantee.resource"},
		"deserved above the guarantee":   {`{deserved: {cpu: 4, memory: 1Gi}, guarantee: {resource: {cpu: 2, pods: 9}}}`, "q: guarantee: cpu: \"4\" memory: 1Gi pods: \"9\" weight: 1\nlost q spec.guarantee.resource"},
		"deserved below the guarantee":   {`{deserved: {cpu: 2}, guarantee: {resource: {cpu: 4}}}`, "q: guarantee: cpu: \"4\" weight: 1\nlost q spec.guarantee.resource"},
		"deserved above the capability":  {`{deserved: {cpu: 8, memory: 2Gi}, capability: {cpu: 4}}`, "q: capability: cpu: \"4\" guarantee: cpu: \"4\" memory: 2Gi weight: 1\nlost q spec.guarantee"},
		"deserved, and cpu has no limit": {`{deserved: {cpu: 8}, capability: {cpu: 0}}`, `q: guarantee: cpu: "8" weight: 1`},
		"not reclaimable":                {`{reclaimable: false}`, "q: reclaimable: false weight: 1\nlost q spec.reclaimable"},
		"a parent in another file":       {`{parent: department}`, "q: weight: 1\nlost q spec.parent"},
		"priority":                       {`{priority: 3}`, "q: weight: 1\nlost q spec.priority"},
		"fifo":                           {`{dequeueStrategy: fifo}`, "q: weight: 1\nlost q spec.dequeueStrategy"},
		"not preemptable":                {`{preemptable: false}`, "q: weight: 1\nlost q spec.preemptable"},
		"affinity, dra, clusters, type":  {`{type: a, extendClusters: [{name: c}], dra: {capability: {a: {count: 1}}}, affinity: {nodeGroupAffinity: {}}}`, "q: weight: 1\nlost q spec.affinity\nlost q spec.dra\nlost q spec.extendClusters\nlost q spec.type"},
		"the same, but empty":            {`{type: "", extendClusters: [], dra: {}, affinity: {}}`, "q: weight: 1"},
		"unknown fields":                 {`{colour: red, guarantee: {percentage: 5}}`, "q: weight: 1\nlost q spec.colour\nlost q spec.guarantee.percentage"},
		"null is the same as nothing":    {`{weight: null, capability: null, colour: null}`, "q: weight: 1"},
		"a quantity in another notation": {`{capability: {memory: "1e3", cpu: "0.5"}}`, `q: capability: cpu: 500m memory: "1e3" weight: 1`},
		"a quantity that is a number":    {`{capability: {memory: 34359738368}}`, `q: capability: memory: "34359738368" weight: 1`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := read(volcano + "metadata: {name: q}\nspec: " + test.spec)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestKAI has a case for each setting of a Queue of KAI Scheduler.
func TestKAI(t *testing.T) {
	t.Parallel()
	const (
		free = `{quota: 0, limit: -1, overQuotaWeight: 1}`
		open = `resources: {cpu: ` + free + `, memory: ` + free + `, gpu: ` + free + `}`
	)
	gpu := func(settings string) string {
		return `{resources: {cpu: ` + free + `, memory: ` + free + `, gpu: {` + settings + `}}}`
	}
	const none = `cpu: "0" memory: "0" nvidia.com/gpu: "0"`
	for name, test := range map[string]struct{ spec, want string }{
		"no limits":                      {`{` + open + `}`, "q: weight: 1"},
		"defaults":                       {`{priority: 100, displayName: "", parentQueue: "", preemptMinRuntime: 0s, ` + open + `}`, "q: weight: 1"},
		"no settings mean nothing":       {`{resources: {cpu: {}}}`, "q: capability: " + none + " weight: 1"},
		"a limit of cpu and memory":      {`{resources: {cpu: {limit: 2500}, memory: {limit: 4096}}}`, "q: capability: cpu: 2500m memory: 4096M nvidia.com/gpu: \"0\" weight: 1\nlost q spec.resources.*.overQuotaWeight"},
		"a limit of gpu":                 {gpu(`limit: 8, overQuotaWeight: 1`), `q: capability: nvidia.com/gpu: "8" weight: 1`},
		"a quota":                        {gpu(`limit: -1, quota: 4, overQuotaWeight: 1`), `q: guarantee: nvidia.com/gpu: "4" weight: 1`},
		"a part of a gpu":                {gpu(`limit: 0.5, quota: 0.25, overQuotaWeight: 1`), `q: capability: nvidia.com/gpu: 500m guarantee: nvidia.com/gpu: 250m weight: 1`},
		"a quota above the limit":        {gpu(`limit: 2, quota: 4, overQuotaWeight: 1`), "q: capability: nvidia.com/gpu: \"2\" guarantee: nvidia.com/gpu: \"2\" weight: 1\nlost q spec.resources"},
		"a quota where the limit is 0":   {gpu(`quota: 4, overQuotaWeight: 1`), "q: capability: nvidia.com/gpu: \"0\" weight: 1\nlost q spec.resources"},
		"an unlimited quota":             {gpu(`limit: -1, quota: -1, overQuotaWeight: 1`), "q: weight: 1\nlost q spec.resources.gpu.quota"},
		"weights that differ":            {gpu(`limit: -1, overQuotaWeight: 8`), "q: weight: 8\nlost q spec.resources.*.overQuotaWeight"},
		"the weight of gpu counts":       {`{resources: {cpu: {limit: -1, overQuotaWeight: 9}, gpu: {limit: 4, overQuotaWeight: 2}, memory: {limit: -1, overQuotaWeight: 2}}}`, "q: capability: nvidia.com/gpu: \"4\" weight: 2\nlost q spec.resources.*.overQuotaWeight"},
		"not if the queue has none":      {`{resources: {cpu: {limit: -1, overQuotaWeight: 9}, gpu: {overQuotaWeight: 2}, memory: {limit: -1, overQuotaWeight: 9}}}`, `q: capability: nvidia.com/gpu: "0" weight: 9`},
		"a weight of gpu of 0":           {gpu(`limit: -1`), "q: weight: 1\nlost q spec.resources.*.overQuotaWeight"},
		"no weights":                     {`{resources: {cpu: {limit: -1}, gpu: {limit: -1}, memory: {limit: -1}}}`, "q: weight: 1\nlost q spec.resources.*.overQuotaWeight"},
		"a weight with a fraction":       {`{resources: {cpu: {limit: -1, overQuotaWeight: 1.5}}}`, "q: capability: memory: \"0\" nvidia.com/gpu: \"0\" weight: 2\nlost q spec.resources.*.overQuotaWeight"},
		"a weight that is too large":     {`{resources: {cpu: {limit: -1, overQuotaWeight: 70000}}}`, "q: capability: memory: \"0\" nvidia.com/gpu: \"0\" weight: 65535\nlost q spec.resources.*.overQuotaWeight"},
		"a lending limit":                {gpu(`limit: -1, overQuotaWeight: 1, quota: 4, lendingLimit: 0`), "q: guarantee: nvidia.com/gpu: \"4\" weight: 1\nlost q spec.resources.gpu.lendingLimit"},
		"a lending limit without effect": {gpu(`limit: -1, overQuotaWeight: 1, quota: 4, lendingLimit: 4`), `q: guarantee: nvidia.com/gpu: "4" weight: 1`},
		"a parent in another file":       {`{parentQueue: department, ` + open + `}`, "q: weight: 1\nlost q spec.parentQueue"},
		"a display name":                 {`{displayName: Q, ` + open + `}`, "q: weight: 1\nlost q spec.displayName"},
		"priority":                       {`{priority: 0, ` + open + `}`, "q: weight: 1\nlost q spec.priority"},
		"minimum run times":              {`{preemptMinRuntime: 1m, reclaimMinRuntime: 2h, ` + open + `}`, "q: weight: 1\nlost q spec.preemptMinRuntime\nlost q spec.reclaimMinRuntime"},
		"unknown fields":                 {`{colour: red, resources: {cpu: ` + free + `, memory: ` + free + `, gpu: ` + free + `, tpu: {limit: 1}}}`, "q: weight: 1\nlost q spec.colour\nlost q spec.resources.tpu"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := read(kai + "metadata: {name: q}\nspec: " + test.spec)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestFiles is about what belongs to several queues: parents, lists, several files.
func TestFiles(t *testing.T) {
	t.Parallel()
	const (
		top    = "metadata: {name: top}\nspec: {weight: 3}\n"
		below  = "metadata: {name: below}\nspec: {parent: top}\n"
		list   = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: a}}\n- {apiVersion: scheduling.run.ai/v2, kind: Queue, metadata: {name: b}, spec: {resources: {cpu: {limit: -1, overQuotaWeight: 1}}}}\n"
		typed  = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: QueueList\nitems:\n- {metadata: {name: a}}\n- {metadata: {name: b}, spec: {weight: 2}}\n"
		closed = "metadata: {name: q}\nstatus: {state: Closing}\n"
	)
	for name, test := range map[string]struct {
		files []string
		want  string
	}{
		"nothing":                         {[]string{"# only a comment\n---\n"}, ""},
		"documents":                       {[]string{"# a comment\n---\n" + volcano + "metadata: {name: b}\n---\n" + volcano + "metadata: {name: a}\n"}, "b: weight: 1\na: weight: 1"},
		"a list":                          {[]string{list}, "a: weight: 1\nb: capability: memory: \"0\" nvidia.com/gpu: \"0\" weight: 1"},
		"an empty list":                   {[]string{"apiVersion: v1\nkind: List\nitems: []\n"}, ""},
		"a typed list":                    {[]string{typed}, "a: weight: 1\nb: weight: 2"},
		"JSON":                            {[]string{`{"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"Queue","metadata":{"name":"a"}}`}, "a: weight: 1"},
		"a parent":                        {[]string{volcano + top + "---\n" + volcano + below}, "below: weight: 1\nlost top spec\nlost below spec.parent"},
		"a parent in a later file":        {[]string{volcano + below, volcano + top}, "below: weight: 1\nlost below spec.parent\nlost top spec"},
		"a parent of another scheduler":   {[]string{volcano + below, kai + "metadata: {name: top}\nspec: {resources: {cpu: {limit: -1, overQuotaWeight: 1}}}\n"}, "below: weight: 1\ntop: capability: memory: \"0\" nvidia.com/gpu: \"0\" weight: 1\nlost below spec.parent"},
		"a parent by its status":          {[]string{kai + "metadata: {name: top}\nspec: {resources: {cpu: {limit: -1}}}\nstatus: {childQueues: [below]}\n"}, "lost top spec"},
		"the root of Volcano":             {[]string{volcano + "metadata: {name: root}\nspec: {weight: 1, reclaimable: false}\n---\n" + volcano + "metadata: {name: q}\nspec: {parent: root}\n"}, "q: weight: 1"},
		"the root of Volcano, limited":    {[]string{volcano + "metadata: {name: root}\nspec: {capability: {cpu: 1}}\n"}, "lost root spec.capability"},
		"a queue of KAI with that name":   {[]string{kai + "metadata: {name: root}\nspec: {resources: {cpu: {limit: -1, overQuotaWeight: 1}}}\n"}, "root: capability: memory: \"0\" nvidia.com/gpu: \"0\" weight: 1"},
		"a queue that Volcano has closed": {[]string{volcano + closed}, "q: weight: 1\nlost q status.state"},
		"the tree of hdrf": {
			[]string{volcano + "metadata: {name: q, annotations: {volcano.sh/hierarchy: root/q, volcano.sh/hierarchy-weights: 1/2, other: a}}\n"},
			"q: weight: 1\nlost q metadata.annotations[volcano.sh/hierarchy]\nlost q metadata.annotations[volcano.sh/hierarchy-weights]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := read(test.files...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestWrongInput(t *testing.T) {
	t.Parallel()
	named := func(spec string) string { return "metadata: {name: q}\nspec: " + spec + "\n" }
	for name, test := range map[string]struct{ given, want string }{
		"no YAML":                    {"a: b: c", "document 1: error converting YAML to JSON: yaml: mapping values are not allowed in this context"},
		"a field twice":              {volcano + named(`{weight: 1, weight: 2}`), `document 1: error converting YAML to JSON: yaml: unmarshal errors: line 4: key "weight" already set in map`},
		"no object":                  {"- a", "document 1: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array"},
		"no kind":                    {"metadata: {name: q}", "document 1: apiVersion and kind are required"},
		"another kind":               {volcano + named(`{}`) + "---\napiVersion: v1\nkind: Namespace\n", "document 2: Namespace (v1) cannot be converted; convert reads Queues of Volcano (scheduling.volcano.sh/v1beta1) and KAI Scheduler (scheduling.run.ai/v2)"},
		"another kind of Volcano":    {"apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\n", "document 1: PodGroup (scheduling.volcano.sh/v1beta1) cannot be converted"},
		"another version":            {"apiVersion: scheduling.run.ai/v1\nkind: Queue\n", "document 1: Queue (scheduling.run.ai/v1) cannot be converted"},
		"one of ours":                {"apiVersion: scheduling.batch-scheduler.dev/v1alpha1\nkind: Queue\n", "document 1: this is already a Queue of scheduling.batch-scheduler.dev"},
		"items that are no list":     {"apiVersion: v1\nkind: List\nitems: 3\n", "document 1: items: not a list"},
		"an item of a list":          {"apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Pod}]\n", "document 1, item 1: Pod (v1) cannot be converted"},
		"no name":                    {volcano, "document 1: metadata.name: is required"},
		"a name with a dot":          {volcano + "metadata: {name: a.b}", `document 1: metadata.name: "a.b" cannot be the name of a Queue, which is the value of a label`},
		"a long name":                {volcano + "metadata: {name: " + strings.Repeat("a", 64) + "}", "which is the value of a label: must be no more than 63 characters"},
		"a spec that is no object":   {volcano + named(`3`), `document 1: Queue "q": spec: 3 is not an object`},
		"a weight that is no number": {volcano + named(`{weight: many}`), `document 1: Queue "q": spec.weight: "many" is not a number`},
		"a weight with a fraction":   {volcano + named(`{weight: 1.5}`), `document 1: Queue "q": spec.weight: 1.5 is not a whole number`},
		"a large weight":             {volcano + named(`{weight: 65536}`), `document 1: Queue "q": spec.weight: 65536 is not in 0 to 65535`},
		"a negative weight":          {volcano + named(`{weight: -1}`), `document 1: Queue "q": spec.weight: -1 is not in 0 to 65535`},
		"no quantity":                {volcano + named(`{capability: {cpu: lots}}`), `document 1: Queue "q": spec.capability.cpu: "lots" is not a quantity, such as 4, 500m or 64Gi`},
		"a negative quantity":        {volcano + named(`{deserved: {cpu: -1}}`), `document 1: Queue "q": spec.deserved.cpu: -1 is negative`},
		"a list of quantities":       {volcano + named(`{guarantee: {resource: {cpu: [1]}}}`), `document 1: Queue "q": spec.guarantee.resource.cpu: a list is not a quantity`},
		"no boolean":                 {volcano + named(`{reclaimable: "false"}`), `document 1: Queue "q": spec.reclaimable: "false" is not true or false`},
		"another strategy":           {volcano + named(`{dequeueStrategy: lifo}`), `document 1: Queue "q": spec.dequeueStrategy: "lifo" is not fifo or traverse`},
		"no resources":               {kai + named(`{}`), `document 1: Queue "q": spec.resources: is required`},
		"a limit with a unit":        {kai + named(`{resources: {cpu: {limit: 500m}}}`), `document 1: Queue "q": spec.resources.cpu.limit: "500m" is not a number`},
		"a negative limit":           {kai + named(`{resources: {gpu: {limit: -2}}}`), `document 1: Queue "q": spec.resources.gpu.limit: -2 is not -1 (unlimited) or an amount`},
		"a negative quota":           {kai + named(`{resources: {memory: {quota: -0.5}}}`), `document 1: Queue "q": spec.resources.memory.quota: -0.5 is not -1 (unlimited) or an amount`},
		"a negative KAI weight":      {kai + named(`{resources: {cpu: {overQuotaWeight: -1}}}`), `document 1: Queue "q": spec.resources.cpu.overQuotaWeight: -1 is negative`},
		"no duration":                {kai + named(`{reclaimMinRuntime: 5, resources: {cpu: {}}}`), `document 1: Queue "q": spec.reclaimMinRuntime: 5 is not a string`},
		"another duration":           {kai + named(`{reclaimMinRuntime: "5", resources: {cpu: {}}}`), `document 1: Queue "q": spec.reclaimMinRuntime: "5" is not a duration, such as 90s`},
		"the same name twice":        {volcano + named(`{}`) + "---\n" + kai + named(`{resources: {cpu: {}}}`), `-f 1.yaml: document 2: Queue "q" is also in -f 1.yaml: document 1`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := read(test.given)
			if err == nil {
				t.Fatalf("converted to %s", got)
			}
			if text := strings.Join(strings.Fields(err.Error()), " "); !strings.Contains(text, test.want) {
				t.Errorf("got error %q, want %q", text, test.want)
			}
		})
	}
}
