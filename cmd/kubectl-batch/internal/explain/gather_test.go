// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	k8stesting "k8s.io/client-go/testing"

	"github.com/batch-scheduler/batch-scheduler/cmd/kubectl-batch/internal/explain"
	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	batchfake "github.com/batch-scheduler/batch-scheduler/pkg/client/clientset/versioned/fake"
)

func labelled(group string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels = map[string]string{v1alpha1.LabelPodGroup: group} }
}

func annotated(group string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations = map[string]string{v1alpha1.AnnotationGroupName: group} }
}

func counted(pending int32) func(*v1alpha1.PodGroup) {
	return func(g *v1alpha1.PodGroup) { g.Status.Phase, g.Status.Pending = v1alpha1.PodGroupPending, pending }
}

// given are two clients of one cluster.
func given(g *v1alpha1.PodGroup, pods []corev1.Pod, events ...corev1.Event) (*fake.Clientset, *batchfake.Clientset) {
	var core []runtime.Object
	for i := range pods {
		core = append(core, &pods[i])
	}
	for i := range events {
		core = append(core, &events[i])
	}
	var batch []runtime.Object
	if g != nil {
		batch = append(batch, g)
	}
	return fake.NewClientset(core...), batchfake.NewClientset(append(batch, research())...)
}

func TestWhoIsAMember(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		group *v1alpha1.PodGroup
		pods  []corev1.Pod
		want  string
		lists int // of pods
	}{
		"by label": {
			group("g", 2, "research", counted(2)), append(pods("g", 2, labelled("g")), pod("other", labelled("h")), pod("none")),
			"g-0 g-1", 1,
		},
		"by the annotation of kube-batch": {
			group("g", 2, "research", counted(2)), append(pods("g", 2, annotated("g")), pod("other", annotated("h"))),
			"g-0 g-1", 2,
		},
		"by either": {
			group("g", 2, "research", counted(2)), []corev1.Pod{pod("a", annotated("g")), pod("b", labelled("g"))},
			"a b", 2,
		},
		"by annotation, and no scheduler has counted them": {
			group("g", 2, "research"), pods("g", 2, annotated("g")),
			"g-0 g-1", 2,
		},
		"the label takes precedence over the annotation": {
			group("g", 2, "research"), []corev1.Pod{pod("a", annotated("g"), labelled("h"))},
			"", 2,
		},
		"none, as the scheduler has counted": {
			group("g", 2, "research", counted(0)), []corev1.Pod{pod("a")},
			"", 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			core, batch := given(test.group, test.pods)
			f, err := explain.Reader{Core: core, Batch: batch, Namespace: "team", Now: noon, AllEvents: true}.Group(t.Context(), "g")
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for i := range f.Pods {
				got = append(got, f.Pods[i].Name)
			}
			if diff := cmp.Diff(test.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("members (-want +got):\n%s", diff)
			}
			lists := 0
			for _, action := range core.Actions() {
				if action.Matches("list", "pods") {
					lists++
				}
			}
			if lists != test.lists {
				t.Errorf("pods were listed %d times, want %d", lists, test.lists)
			}
		})
	}
}

// TestRequestsAreFew holds because each costs the API server, and the person who waits.
func TestRequestsAreFew(t *testing.T) {
	t.Parallel()
	core, batch := given(group("g", 64, "research", counted(63)), append(pods("g", 63, labelled("g")), pod("g-r", labelled("g"), running)))
	reader := explain.Reader{Core: core, Batch: batch, Namespace: "team", Now: noon, AllEvents: true}
	if _, err := reader.Group(t.Context(), "g"); err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, action := range append(core.Actions(), batch.Actions()...) {
		got[action.GetVerb()+" "+action.GetResource().Resource]++
	}
	want := map[string]int{"get podgroups": 1, "get queues": 1, "get jobs": 1, "list pods": 1, "list events": 3} // group, one that waits, one that runs
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// TestWhichJob has a Job named j, and one of the name of the PodGroup, which creates its pods only if their label says so.
func TestWhichJob(t *testing.T) {
	t.Parallel()
	owned := func(g *v1alpha1.PodGroup) {
		g.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "j", UID: "uid-j"}}
	}
	ofVolcano := func(g *v1alpha1.PodGroup) {
		g.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch.volcano.sh/v1alpha1", Kind: "Job", Name: "j", UID: "uid-j"}}
	}
	deletedJob := func(g *v1alpha1.PodGroup) {
		g.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "j", UID: "uid-before"}}
	}
	for name, test := range map[string]struct {
		group  *v1alpha1.PodGroup
		pods   []corev1.Pod
		member string // the group that the pods of the Job named g name
		want   string
	}{
		"the owner of the group":        {group: group("g", 1, "research", counted(0), owned), want: "j"},
		"the controller of the pods":    {group: group("g", 1, "research", counted(1)), pods: pods("g", 1, labelled("g"), controlledBy("j")), want: "j"},
		"the Job of the group's name":   {group: group("g", 1, "research", counted(0)), member: "g", want: "g"},
		"another Job of that name":      {group: group("g", 1, "research", counted(0)), member: "h"},
		"an owner that was deleted":     {group: group("g", 1, "research", counted(0), deletedJob), member: "g"},
		"a Job of another API, by name": {group: group("g", 1, "research", counted(0), ofVolcano), member: "g", want: "g"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			core, batch := given(test.group, test.pods)
			for name, member := range map[string]string{"j": "", "g": test.member} {
				job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID("uid-" + name)}}
				job.Spec.Template.Labels = map[string]string{v1alpha1.LabelPodGroup: member}
				if err := core.Tracker().Add(job); err != nil {
					t.Fatal(err)
				}
			}
			f, err := explain.Reader{Core: core, Batch: batch, Namespace: "team", Now: noon, AllEvents: true}.Group(t.Context(), "g")
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if f.Job != nil {
				got = f.Job.Name
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("Job (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAPodOutlivesItsPodGroup asks about a running pod whose PodGroup was deleted, and may have been created again.
func TestAPodOutlivesItsPodGroup(t *testing.T) {
	t.Parallel()
	uid := func(uid string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Annotations = map[string]string{v1alpha1.AnnotationQueue: "research", v1alpha1.AnnotationPodGroupUID: uid}
		}
	}
	for name, test := range map[string]struct {
		group *v1alpha1.PodGroup
		pod   corev1.Pod
		want  string
	}{
		"of a PodGroup":                     {group("g", 1, "research", counted(0)), pod("g-0", labelled("g"), running, uid("uid-g")), "PodGroup: team/g"},
		"of a deleted PodGroup":             {nil, pod("g-0", labelled("g"), running, uid("uid-g")), `PodGroup "g", for which it was bound`},
		"of a PodGroup that was made again": {group("g", 1, "research", counted(0)), pod("g-0", labelled("g"), running, uid("uid-old")), `PodGroup "g", for which it was bound`},
		"that has ended":                    {nil, pod("g-0", labelled("g"), succeeded, uid("uid-g")), "the pod has a node\n"},
		"that is pending":                   {nil, pod("g-0", labelled("g"), waiting("GroupNotFound", "no such PodGroup")), "Reason:   GroupNotFound"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			core, batch := given(test.group, []corev1.Pod{test.pod})
			f, err := explain.Reader{Core: core, Batch: batch, Namespace: "team", Now: noon, AllEvents: true}.Pod(t.Context(), "g-0")
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.ReplaceAll(f.Text(), "\n          ", " "); !strings.Contains(got, test.want) {
				t.Errorf("want %q in\n%s", test.want, got)
			}
		})
	}
}

func TestWhatIsNotThere(t *testing.T) {
	t.Parallel()
	forbid := func(k8stesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(v1alpha1.Resource("queues"), "research", fmt.Errorf("no"))
	}
	for name, test := range map[string]struct {
		pod    bool
		events []corev1.Event
		refuse string // a resource
		want   string // part of the answer, or of the error
	}{
		"a queue that may not be read": {refuse: "queues", want: "Unread:   queue research: queues.scheduling.batch-scheduler.dev"},
		"the role to read queues":      {refuse: "queues", want: "batch-scheduler-view."},
		"events that may not be read":  {refuse: "events", want: "Unread:   events: "},
		"Jobs that may not be read":    {refuse: "jobs", want: "Unread:   Job: "},
		"pods that may not be read":    {refuse: "pods", want: "is forbidden"},
		"a group that is not there":    {refuse: "podgroups", want: "is forbidden"},
		"an event of a group of that name before": {
			events: []corev1.Event{
				event("PodGroup", "g", 5, "QueueFull", "now"),
				{
					ObjectMeta:     metav1.ObjectMeta{Namespace: "team", Name: "g.old"},
					InvolvedObject: corev1.ObjectReference{Kind: "PodGroup", Namespace: "team", Name: "g", UID: "uid-old"}, Message: "then",
				},
			},
			want: "5m ago QueueFull: now\n",
		},
		"a pod of a group is answered by the group": {pod: true, want: "PodGroup: team/g"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			core, batch := given(group("g", 1, "research", counted(1)), pods("g", 1, labelled("g")), test.events...)
			if test.refuse != "" {
				core.PrependReactor("*", test.refuse, forbid)
				batch.PrependReactor("*", test.refuse, forbid)
			}
			reader := explain.Reader{Core: core, Batch: batch, Namespace: "team", Now: noon, AllEvents: true}
			read, of := reader.Group, "g"
			if test.pod {
				read, of = reader.Pod, "g-0"
			}
			f, err := read(t.Context(), of)
			got := fmt.Sprint(err)
			if err == nil {
				got = f.Text()
			}
			if !strings.Contains(got, test.want) || strings.Contains(got, "then") {
				t.Errorf("want %q in\n%s", test.want, got)
			}
		})
	}
}

// TestEventsAreNotWaitedFor has an API server that never answers about them.
func TestEventsAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	core, batch := given(group("g", 1, "research", counted(1)), pods("g", 1, labelled("g")))
	answer := make(chan struct{})
	defer close(answer)
	silent := fake.NewClientset()
	silent.PrependReactor("list", "events", func(k8stesting.Action) (bool, runtime.Object, error) {
		<-answer
		return false, nil, nil
	})
	f, err := explain.Reader{Core: eventsOf{core, silent}, Batch: batch, Namespace: "team", Now: noon}.Group(t.Context(), "g")
	if err != nil {
		t.Fatal(err)
	}
	if want := "Unread:   events: reading them takes long"; !strings.Contains(f.Text(), want) {
		t.Errorf("want %q in\n%s", want, f.Text())
	}
}

// eventsOf is a cluster with the events of another, because a fake client answers one request at a time.
type eventsOf struct {
	kubernetes.Interface
	other kubernetes.Interface
}

func (e eventsOf) CoreV1() corev1client.CoreV1Interface {
	return coreEventsOf{e.Interface.CoreV1(), e.other.CoreV1()}
}

type coreEventsOf struct {
	corev1client.CoreV1Interface
	other corev1client.CoreV1Interface
}

func (e coreEventsOf) Events(namespace string) corev1client.EventInterface {
	return e.other.Events(namespace)
}
