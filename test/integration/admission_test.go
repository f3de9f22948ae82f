// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/client/clientset/versioned"
	"github.com/batch-scheduler/batch-scheduler/test/cluster"
)

// TestUse is about the shipped admission policies: who may name which queue and priority class, and
// who may write what the scheduler writes on pods. Both users may edit everything in both
// namespaces; only mary may use queue and class, and only namespace mary's may use the queue for its pods.
func TestUse(t *testing.T) {
	h := newHarness(t, cluster.Options{ControllerManager: true})
	h.do(threeNodes, queue("team", 1), priorityClass("urgent", 1000), group("old", 1, in("team")), plain("old", 1, "1cpu"))
	h.withPolicies("mary", "john")
	h.start()
	const (
		noQueue  = `may not use queue team`
		noClass  = `may not use priority class urgent`
		notYours = `only the scheduler writes the annotations`
	)
	annotate := `{"metadata":{"annotations":{"scheduling.batch-scheduler.dev/queue":"other"}}}`
	for name, test := range map[string]struct {
		as, in string
		do     func(*user) error
		want   string // in the refusal; empty if there must be none
	}{
		"a group in no queue":               {"john", "johns", makeGroup("none"), ""},
		"a group in the default queue":      {"john", "johns", makeGroup("default", in("default")), ""},
		"a group in another queue":          {"john", "johns", makeGroup("team", in("team")), noQueue},
		"a group in a queue one may use":    {"mary", "marys", makeGroup("team", in("team")), ""},
		"a group of a class":                {"john", "johns", makeGroup("urgent", ofClass("urgent")), noClass},
		"a group of a class one may use":    {"mary", "marys", makeGroup("urgent", ofClass("urgent")), ""},
		"a group that moves to a queue":     {"john", namespace, patchGroup("old", `{"spec":{"priorityClassName":"urgent"}}`), noClass},
		"another change of a group":         {"john", namespace, patchGroup("old", `{"spec":{"minMember":2}}`), ""},
		"a group that leaves its queue":     {"john", namespace, patchGroup("old", `{"spec":{"queue":"default"}}`), ""},
		"a pod in a queue":                  {"john", "johns", makePod("queued", label(v1alpha1.LabelQueue, "team")), noQueue},
		"a pod in a queue, by who may":      {"mary", "johns", makePod("queued", label(v1alpha1.LabelQueue, "team")), noQueue},
		"a pod in a queue, where one may":   {"john", "marys", makePod("queued", label(v1alpha1.LabelQueue, "team")), ""},
		"a pod in the default queue":        {"john", "johns", makePod("free", label(v1alpha1.LabelQueue, "default")), ""},
		"a pod that changes its queue":      {"john", namespace, patchPod("old-0", `{"metadata":{"labels":{"scheduling.batch-scheduler.dev/queue":"team"}}}`), noQueue},
		"a pod that is relabelled":          {"john", namespace, patchPod("old-0", `{"metadata":{"labels":{"color":"red"}}}`), ""},
		"a pod with an annotation of ours":  {"mary", "marys", makePod("own", annotated(v1alpha1.AnnotationQueue, "team")), notYours},
		"a pod that gets one":               {"mary", namespace, patchPod("old-0", annotate), notYours},
		"a pod that gets one by its status": {"mary", namespace, patchPod("old-0", annotate, "status"), notYours},
		"a binding that brings one":         {"mary", namespace, bindPod("old-0", annotated(v1alpha1.AnnotationQueue, "other")), notYours},
		"a job in a queue":                  {"john", "marys", makeJob("job"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.do(h.as(test.as, test.in))
			switch {
			case test.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case test.want != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got error %v, want one that it is forbidden: %s", err, test.want)
			}
		})
	}
	h.must(wait.PollUntilContextTimeout(h.ctx, idleCycles/10, waitTimeout, true, func(ctx context.Context) (bool, error) {
		pods, err := h.client.CoreV1().Pods("marys").List(ctx, metav1.ListOptions{LabelSelector: batchv1.JobNameLabel + "=job"})
		return err == nil && len(pods.Items) == 1 && pods.Items[0].Annotations[v1alpha1.AnnotationQueue] == "team", err
	}))
}

// withPolicies puts the policies in force, and makes two users and a namespace for each, of which the first user and
// the service accounts of the first namespace may use queue team, and the user class urgent.
func (h *harness) withPolicies(may, mayNot string) {
	h.t.Helper()
	h.must(h.cluster.Apply(h.ctx, "../../config/admission"))
	for _, name := range []string{may + "s", mayNot + "s"} {
		_, err := h.client.CoreV1().Namespaces().Create(h.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		h.must(err)
	}
	user := func(name string) rbacv1.Subject { return rbacv1.Subject{Kind: rbacv1.UserKind, Name: name} }
	h.grant("editors", []rbacv1.PolicyRule{
		{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"podgroups"}, Verbs: []string{"create", "get", "patch"}},
		{APIGroups: []string{""}, Resources: []string{"pods", "pods/status", "pods/binding"}, Verbs: []string{"create", "get", "patch"}},
		{APIGroups: []string{batchv1.GroupName}, Resources: []string{"jobs"}, Verbs: []string{"create"}},
	}, user(may), user(mayNot))
	use := func(group, resource, name string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: []string{name}, Verbs: []string{"use"}}}
	}
	h.grant("use-team", use(v1alpha1.GroupName, "queues", "team"), user(may), rbacv1.Subject{Kind: rbacv1.GroupKind, Name: "system:serviceaccounts:" + may + "s"})
	h.grant("use-urgent", use("scheduling.k8s.io", "priorityclasses", "urgent"), user(may))
	// Policies are in force a moment after they are created, and so are the service accounts of namespaces.
	refused := func(err error) bool {
		return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "may not use")
	}
	first, second := h.as(may, may+"s"), h.as(mayNot, mayNot+"s")
	h.must(wait.PollUntilContextTimeout(h.ctx, 100*time.Millisecond, waitTimeout, true, func(context.Context) (bool, error) {
		return refused(makeGroup("probe", in("team"))(second)) && refused(makePod("probe", label(v1alpha1.LabelQueue, "team"))(second)) &&
			!apierrors.IsForbidden(makePod("probe")(first)), nil
	}))
}

func (h *harness) grant(name string, rules []rbacv1.PolicyRule, to ...rbacv1.Subject) {
	h.t.Helper()
	for i := range to {
		to[i].APIGroup = rbacv1.GroupName
	}
	meta := metav1.ObjectMeta{Name: name}
	_, err := h.client.RbacV1().ClusterRoles().Create(h.ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
	h.must(err)
	_, err = h.client.RbacV1().ClusterRoleBindings().Create(h.ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, Subjects: to, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
	}, metav1.CreateOptions{})
	h.must(err)
}

// user is a client that acts as a user in a namespace.
type user struct {
	ctx       context.Context
	namespace string
	client    kubernetes.Interface
	batch     versioned.Interface
}

func (h *harness) as(name, namespace string) *user {
	h.t.Helper()
	config := rest.CopyConfig(h.cluster.RESTConfig())
	config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: []string{"system:authenticated"}}
	client, err := kubernetes.NewForConfig(config)
	h.must(err)
	batch, err := versioned.NewForConfig(config)
	h.must(err)
	return &user{h.ctx, namespace, client, batch}
}

func makeGroup(name string, parts ...part) func(*user) error {
	return func(u *user) error {
		g := &gangParts{group: &v1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.PodGroupSpec{MinMember: 1}}}
		for _, part := range parts {
			part(g)
		}
		_, err := u.batch.SchedulingV1alpha1().PodGroups(u.namespace).Create(u.ctx, g.group, metav1.CreateOptions{})
		return err
	}
}

func patchGroup(name, patch string) func(*user) error {
	return func(u *user) error {
		_, err := u.batch.SchedulingV1alpha1().PodGroups(u.namespace).Patch(u.ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	}
}

func makePod(name string, edits ...func(*corev1.Pod)) func(*user) error {
	return func(u *user) error {
		pod := newPod(name, "1cpu", edits...)
		pod.Namespace = u.namespace
		_, err := u.client.CoreV1().Pods(u.namespace).Create(u.ctx, pod, metav1.CreateOptions{})
		return err
	}
}

func patchPod(name, patch string, subresource ...string) func(*user) error {
	return func(u *user) error {
		_, err := u.client.CoreV1().Pods(u.namespace).Patch(u.ctx, name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, subresource...)
		return err
	}
}

// bindPod binds a pod with the annotations of another one.
func bindPod(name string, like func(*corev1.Pod)) func(*user) error {
	return func(u *user) error {
		pod := newPod(name, "", like)
		return u.client.CoreV1().Pods(u.namespace).Bind(u.ctx, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: pod.Annotations}, Target: corev1.ObjectReference{Kind: "Node", Name: "n1"},
		}, metav1.CreateOptions{})
	}
}

// makeJob makes a Job of one pod in queue team.
func makeJob(name string) func(*user) error {
	return func(u *user) error {
		spec := podSpec("1cpu")
		spec.RestartPolicy = corev1.RestartPolicyNever
		_, err := u.client.BatchV1().Jobs(u.namespace).Create(u.ctx, &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: batchv1.JobSpec{Completions: ptr.To[int32](1), Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelQueue: "team"}}, Spec: spec,
			}},
		}, metav1.CreateOptions{})
		return err
	}
}
