// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/cmd/kubectl-batch/internal/gang"
	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// spec returns a valid Spec with the edits applied.
func spec(edits ...func(*gang.Spec)) gang.Spec {
	w := gang.Spec{Name: "train", Replicas: 8, CPU: "4", Memory: "64Gi", GPU: "1", Image: "trainer:7", Command: []string{"run"}}
	for _, edit := range edits {
		edit(&w)
	}
	return w
}

// words sums a gang up in a line.
func words(g gang.Gang) string {
	pods := g.Job.Spec.Template
	return fmt.Sprintf("job %s of %d for %s in %s, group %s min %d queue %q class %q", g.Job.Name, *g.Job.Spec.Parallelism,
		pods.Spec.SchedulerName, pods.Labels[v1alpha1.LabelPodGroup], g.Group.Name, g.Group.Spec.MinMember, g.Group.Spec.Queue, g.Group.Spec.PriorityClassName)
}

func TestNew(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		given gang.Spec
		want  string // or the error
	}{
		"all of it": {spec(), `job train of 8 for batch-scheduler in train, group train min 8 queue "" class ""`},
		"elastic, in a queue": {
			spec(func(w *gang.Spec) { w.Grouping = gang.Grouping{Queue: "research", PriorityClass: "high", Min: 2} }),
			`job train of 8 for batch-scheduler in train, group train min 2 queue "research" class "high"`,
		},
		"no name":               {spec(func(w *gang.Spec) { w.Name = "" }), `--name is required: the name of the Job and its PodGroup`},
		"a name that is none":   {spec(func(w *gang.Spec) { w.Name = "Train_1" }), `--name: "Train_1" is invalid: it must consist of at most 63 lower case letters, digits and '-', and begin and end with a letter or digit`},
		"a name that is long":   {spec(func(w *gang.Spec) { w.Name = strings.Repeat("a", 64) }), `--name: "` + strings.Repeat("a", 64) + `" is invalid: it must consist of at most 63 lower case letters, digits and '-', and begin and end with a letter or digit`},
		"no image":              {spec(func(w *gang.Spec) { w.Image = "" }), `--image is required: the container image of the pods`},
		"no replicas":           {spec(func(w *gang.Spec) { w.Replicas = 0 }), `--replicas: 0 is invalid; it must be at least 1`},
		"negative minimum":      {spec(func(w *gang.Spec) { w.Min = -1 }), `--min: -1 is invalid; it must be at least 1`},
		"more than all":         {spec(func(w *gang.Spec) { w.Min = 9 }), `9 pods must start together, but the Job runs at most 8 at a time; decrease --min (minMember), or increase --replicas (parallelism)`},
		"an amount that is no":  {spec(func(w *gang.Spec) { w.CPU = "many" }), `--cpu: "many" is not a quantity, such as 4, 500m or 64Gi`},
		"a negative amount":     {spec(func(w *gang.Spec) { w.Memory = "-1Gi" }), `--memory: -1Gi is negative`},
		"half a GPU":            {spec(func(w *gang.Spec) { w.GPU = "500m" }), `--gpu: 500m is not a whole number`},
		"nothing but its place": {spec(func(w *gang.Spec) { w.CPU, w.Memory, w.GPU = "", "", "" }), `job train of 8 for batch-scheduler in train, group train min 8 queue "" class ""`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, err := gang.New(test.given)
			compare(t, test.want, g, err)
		})
	}
}

func TestWhatPodsAskFor(t *testing.T) {
	t.Parallel()
	g, err := gang.New(spec())
	if err != nil {
		t.Fatal(err)
	}
	asked := g.Job.Spec.Template.Spec.Containers[0].Resources
	got := fmt.Sprint(asked.Requests.Cpu(), " ", asked.Requests.Memory(), " ", asked.Requests.Name(gang.GPU, "").String(), ", at most ", asked.Limits.Name(gang.GPU, "").String(), " of ", len(asked.Limits))
	if diff := cmp.Diff("4 64Gi 1, at most 1 of 1", got); diff != "" {
		t.Error(diff)
	}
}

const (
	job      = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec:\n  parallelism: 4\n  completions: 9\n  template: {spec: {restartPolicy: Never}}\n"
	podGroup = "---\napiVersion: scheduling.batch-scheduler.dev/v1alpha1\nkind: PodGroup\nmetadata: {name: g}\nspec: {minMember: 3, queue: q}\n"
)

func TestRead(t *testing.T) {
	t.Parallel()
	with := func(old, text string) string { return strings.Replace(job, old, text, 1) }
	for name, test := range map[string]struct {
		given    string
		grouping gang.Grouping
		want     string // or the error
	}{
		"a Job":                    {given: job, want: `job j of 4 for batch-scheduler in j, group j min 4 queue "" class ""`},
		"a Job, and flags":         {given: job, grouping: gang.Grouping{Queue: "q", Min: 2}, want: `job j of 4 for batch-scheduler in j, group j min 2 queue "q" class ""`},
		"a Job with few to do":     {given: with("completions: 9", "completions: 2"), want: `job j of 4 for batch-scheduler in j, group j min 2 queue "" class ""`},
		"a Job and its group":      {given: job + podGroup, want: `job j of 4 for batch-scheduler in g, group g min 3 queue "q" class ""`},
		"the group first":          {given: strings.TrimPrefix(podGroup, "---\n") + "---\n" + job, want: `job j of 4 for batch-scheduler in g, group g min 3 queue "q" class ""`},
		"a group and flags":        {given: job + podGroup, grouping: gang.Grouping{Queue: "other"}, want: "--queue, --min and --priority-class cannot be combined with a PodGroup in the file; set them there"},
		"a label that is there":    {given: with("template: {", "template: {metadata: {labels: {scheduling.batch-scheduler.dev/pod-group: x}}, "), want: `job j of 4 for batch-scheduler in x, group x min 4 queue "" class ""`},
		"a label for others":       {given: with("template: {", "template: {metadata: {labels: {scheduling.batch-scheduler.dev/pod-group: x}}, ") + podGroup, want: "the pods of Job j belong to PodGroup x, not to g; correct the label scheduling.batch-scheduler.dev/pod-group"},
		"an annotation for others": {given: with("template: {", "template: {metadata: {annotations: {scheduling.k8s.io/group-name: x}}, ") + podGroup, want: "the pods of Job j belong to PodGroup x, not to g; correct the label scheduling.batch-scheduler.dev/pod-group"},
		"a scheduler of its own":   {given: with("restartPolicy: Never", "restartPolicy: Never, schedulerName: mine"), want: `job j of 4 for mine in j, group j min 4 queue "" class ""`},
		"the stock scheduler":      {given: with("restartPolicy: Never", "restartPolicy: Never, schedulerName: default-scheduler"), want: "the pods of Job j use default-scheduler, which does not support PodGroups; remove schedulerName, or set it to batch-scheduler"},
		"a gang beyond the Job":    {given: with("parallelism: 4", "parallelism: 2") + podGroup, want: "3 pods must start together, but the Job runs at most 2 at a time; decrease --min (minMember), or increase --replicas (parallelism)"},
		"two Jobs":                 {given: job + "---\n" + job, want: "more than one Job; submit one at a time"},
		"two groups":               {given: job + podGroup + podGroup, want: "more than one PodGroup; submit one at a time"},
		"no Job":                   {given: podGroup, want: "no Job found"},
		"nothing":                  {given: "# nothing\n---\n", want: "no Job found"},
		"a Job without a name":     {given: with("name: j", "generateName: j-"), want: "the Job has no name; set metadata.name"},
		"a queue":                  {given: "apiVersion: scheduling.batch-scheduler.dev/v1alpha1\nkind: Queue\nmetadata: {name: q}\n", want: "a Queue is neither a Job nor a PodGroup"},
		"a misspelt field":         {given: with("parallelism", "paralelism"), want: `strict decoding error: unknown field "spec.paralelism"`},
		"another kind":             {given: "apiVersion: v1\nkind: ConfigMap\n", want: "submit accepts a Job and its PodGroup; create the ConfigMap (v1) with kubectl apply"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, err := gang.Read(strings.NewReader(test.given), test.grouping, gang.Lifetime{})
			compare(t, test.want, g, err)
		})
	}
}

// compare compares a gang, or an error as far as it is wanted.
func compare(t *testing.T, want string, g gang.Gang, err error) {
	t.Helper()
	got := ""
	if err != nil {
		got = err.Error()
		got = got[:min(len(got), len(want))]
	} else {
		got = words(g)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestIn(t *testing.T) {
	t.Parallel()
	g, err := gang.New(spec())
	if err != nil {
		t.Fatal(err)
	}
	if err = g.In("a"); err != nil || g.Job.Namespace != "a" || g.Group.Namespace != "a" {
		t.Errorf("got %q and %q, error %v", g.Job.Namespace, g.Group.Namespace, err)
	}
	if err = g.In("b"); err == nil || err.Error() != "train has namespace a, not b; use -n a" {
		t.Errorf("moved to another namespace: %v", err)
	}
}

func TestOwnersOf(t *testing.T) {
	t.Parallel()
	owned := func(version, kind, name string, controller bool) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: name, UID: types.UID("uid-" + name), Controller: &controller}}
	}
	pod := func(name string, owners []metav1.OwnerReference) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), OwnerReferences: owners}}
	}
	for name, test := range map[string]struct {
		group []metav1.OwnerReference
		pods  []corev1.Pod
		want  string // or the error
	}{
		"a Job, listed once":       {pods: []corev1.Pod{pod("a", owned("batch/v1", "Job", "j", true)), pod("b", owned("batch/v1", "Job", "j", true))}, want: "[{j uid-j}] []"},
		"two Jobs":                 {pods: []corev1.Pod{pod("a", owned("batch/v1", "Job", "k", true)), pod("b", owned("batch/v1", "Job", "j", true))}, want: "[{j uid-j} {k uid-k}] []"},
		"a Job without pods yet":   {group: owned("batch/v1", "Job", "j", false), want: "[{j uid-j}] []"},
		"pods without owner":       {pods: []corev1.Pod{pod("a", nil)}, want: "[] [{a uid-a}]"},
		"an owner that makes none": {pods: []corev1.Pod{pod("a", owned("v1", "ConfigMap", "c", false))}, want: "[] [{a uid-a}]"},
		"another controller":       {pods: []corev1.Pod{pod("a", owned("batch/v1", "Job", "j", true)), pod("b", owned("apps/v1", "ReplicaSet", "web-1", true))}, want: "pod b of PodGroup g belongs to ReplicaSet web-1, which cancel does not delete; delete that object first"},
		"another kind of Job":      {pods: []corev1.Pod{pod("a", owned("batch.volcano.sh/v1alpha1", "Job", "j", true))}, want: "pod a of PodGroup g belongs to Job j, which cancel does not delete; delete that object first"},
		"nothing":                  {want: "[] []"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			group := &v1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: "g", OwnerReferences: test.group}}
			owners, err := gang.OwnersOf(group, test.pods)
			got := fmt.Sprint(owners.Jobs, " ", owners.Pods)
			if err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
