// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/batch-scheduler/batch-scheduler/cmd/localcluster/annotation"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/test/cluster"
)

// otherAPI is an API of PodGroups on a cluster.
type otherAPI struct {
	h        *harness
	resource dynamic.NamespaceableResourceInterface
	label    string // by which pods name their group; empty for the annotation of Volcano, or another annotation
}

func (h *harness) otherAPI(group, version, label string) otherAPI {
	h.t.Helper()
	client, err := dynamic.NewForConfig(h.cluster.RESTConfig())
	h.must(err)
	return otherAPI{h, client.Resource(schema.GroupVersionResource{Group: group, Version: version, Resource: "podgroups"}), label}
}

func (h *harness) schedulerPlugins() otherAPI {
	return h.otherAPI("scheduling.x-k8s.io", "v1alpha1", api.LabelSchedulerPluginsGroup)
}

func (h *harness) volcano() otherAPI {
	return h.otherAPI("scheduling.volcano.sh", "v1beta1", "")
}

// applyFiles applies objects of testdata/groups.
func (h *harness) applyFiles(names ...string) {
	h.t.Helper()
	var objects []*unstructured.Unstructured
	for _, name := range names {
		objects = append(objects, h.objects(h.read(filepath.Join("testdata", "groups", name)))...)
	}
	h.must(cluster.ApplyObjects(h.ctx, h.cluster.RESTConfig(), objects))
}

// grantSource installs what the scheduler needs for a group source.
func (h *harness) grantSource(name string) {
	h.t.Helper()
	h.must(h.cluster.Apply(h.ctx, filepath.Join("..", "..", "config", "groupsources", name)))
}

// sourcePolicy returns the flag of a policy with group sources.
func (h *harness) sourcePolicy(sources ...string) string {
	return "--scheduler-conf=" + h.file("policy.yaml", policyOf(sources...))
}

func policyOf(sources ...string) string {
	return "groupSources: [" + strings.Join(sources, ", ") + "]\n" + conf.DefaultYAML()
}

// group creates a PodGroup. The spec is JSON.
func (a otherAPI) group(namespace, name, spec string) {
	a.h.t.Helper()
	object := &unstructured.Unstructured{}
	a.h.must(object.UnmarshalJSON(fmt.Appendf(nil, `{"apiVersion":%q,"kind":"PodGroup","metadata":{"name":%q},"spec":%s}`, a.version(), name, spec)))
	a.h.eventually(func() error { // an API that has just been defined
		_, err := a.resource.Namespace(namespace).Create(a.h.ctx, object, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
}

func (a otherAPI) version() string {
	switch a.label {
	case api.LabelSchedulerPluginsGroup:
		return api.SourceSchedulerPlugins.APIVersion()
	case "":
		return api.SourceVolcano.APIVersion()
	case api.AnnotationKAIGroup:
		return api.SourceKAI.APIVersion()
	}
	return api.SourceNative.APIVersion()
}

// member returns a pod of a group.
func (a otherAPI) member(namespace, name, group, request string, edits ...func(*corev1.Pod)) *corev1.Pod {
	p := newPod(name, request, edits...)
	p.Namespace = namespace
	switch a.label {
	case "":
		annotated("scheduling.k8s.io/group-name", group)(p)
	case api.AnnotationKAIGroup:
		annotated(a.label, group)(p)
	case "schedulingGroup":
		p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &group}
	default:
		label(a.label, group)(p)
	}
	return p
}

// members creates pods of a group.
func (a otherAPI) members(namespace, group string, count int, request string, edits ...func(*corev1.Pod)) {
	a.h.t.Helper()
	for i := range count {
		_, err := a.h.client.CoreV1().Pods(namespace).Create(a.h.ctx, a.member(namespace, fmt.Sprintf("%s-%d", group, i), group, request, edits...), metav1.CreateOptions{})
		a.h.must(err)
	}
}

// status compares fields of the status of a group.
func (a otherAPI) status(namespace, name string, want map[string]string) error {
	object, err := a.resource.Namespace(namespace).Get(a.h.ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	status, _, _ := unstructured.NestedMap(object.Object, "status")
	for field, value := range want {
		if got := fmt.Sprint(status[field]); got != value {
			return fmt.Errorf("group %s/%s: status.%s is %s, want %s: %v", namespace, name, field, got, value, status)
		}
	}
	return nil
}

// onlyStatus fails the test if the scheduler has written anything else of a group than its status.
func (a otherAPI) onlyStatus(namespace, name string) {
	a.h.t.Helper()
	object, err := a.resource.Namespace(namespace).Get(a.h.ctx, name, metav1.GetOptions{})
	a.h.must(err)
	for _, entry := range object.GetManagedFields() {
		if entry.Manager == "batch-scheduler" && strings.Contains(strings.ReplaceAll(entry.FieldsV1.GetRawString(), `"f:status"`, ""), `"f:spec"`) {
			a.h.t.Errorf("the scheduler has written more than the status of %s: %s", name, entry.FieldsV1.GetRawString())
		}
	}
	if object.GetGeneration() > 1 && a.label != "" {
		a.h.t.Errorf("the spec of %s has generation %d", name, object.GetGeneration())
	}
}

// bound compares the names of the pods of a namespace that have a node.
func (h *harness) bound(namespace string, want ...string) error {
	return h.pods(namespace, func(p *corev1.Pod) bool { return p.Spec.NodeName != "" }, want)
}

// ending compares the names of the pods of the test that are being deleted.
func (h *harness) ending(want ...string) error {
	return h.pods(namespace, func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil }, want)
}

// pods compares the names of some pods of a namespace.
func (h *harness) pods(namespace string, which func(*corev1.Pod) bool, want []string) error {
	list, err := h.client.CoreV1().Pods(namespace).List(h.ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var got []string
	for i := range list.Items {
		if which(&list.Items[i]) {
			got = append(got, list.Items[i].Name)
		}
	}
	slices.Sort(got)
	return difference(strings.Join(want, " "), strings.Join(got, " "))
}

// waits compares why a pod waits.
func (h *harness) waits(namespace, name, reason, part string) error {
	pod, err := h.client.CoreV1().Pods(namespace).Get(h.ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == reason && strings.Contains(c.Message, part) {
			return nil
		}
	}
	return fmt.Errorf("pod %s does not wait with reason %s and message %q: %v", name, reason, part, pod.Status.Conditions)
}

// TestGroupsOfOperators: the PodGroups of scheduler-plugins and the pods that four operators create start together, with
// the scheduler names that the operators set, and their status is written (IP1).
func TestGroupsOfOperators(t *testing.T) {
	h := newHarness(t, noControllers)
	h.applyFiles("scheduler-plugins.crd.yaml")
	h.grantSource("scheduler-plugins")
	h.do(nodes("n", 2, "4cpu"))
	h.start("--scheduler-name=batch-scheduler,scheduler-plugins-scheduler", h.sourcePolicy("own", "scheduler-plugins"))
	plugins := h.schedulerPlugins()

	h.applyFiles("training-operator.yaml", "mpi-operator.yaml", "spark-operator.yaml", "kuberay.yaml")
	for name, count := range map[string]string{"torch": "3", "mpi": "2", "pi-pg": "1", "ray": "2"} {
		h.eventually(func() error {
			return plugins.status(namespace, name, map[string]string{"phase": "Running", "running": count})
		})
		plugins.onlyStatus(namespace, name)
	}

	plugins.group(namespace, "late", `{"minMember":3}`)
	plugins.members(namespace, "late", 2, "0cpu")
	h.eventually(func() error { return h.waits(namespace, "late-0", "NotEnoughPods", "2 of 3 pods") })
	h.eventually(func() error { return plugins.status(namespace, "late", map[string]string{"phase": "Pending"}) })
	plugins.group(namespace, "large", `{"minMember":2}`)
	plugins.members(namespace, "large", 2, "3cpu")
	h.eventually(func() error { return h.waits(namespace, "large-0", "Unschedulable", "nodes are available") })
	h.eventually(func() error {
		return plugins.status(namespace, "large", map[string]string{"phase": "Scheduling", "running": "0"})
	})
	h.eventually(func() error {
		return h.bound(namespace, "mpi-launcher-x7k2p", "mpi-worker-0", "pi-driver", "ray-head-4xk2p", "ray-small-worker-p9d8s",
			"torch-master-0", "torch-worker-0", "torch-worker-1")
	})
}

// TestGroupsOfOneName: groups of one name in two namespaces, and in two APIs, are counted apart (IP2). A pod that names
// groups of two APIs is a member of that of this scheduler, and has one event (IM1).
func TestGroupsOfOneName(t *testing.T) {
	h := newHarness(t, noControllers)
	h.applyFiles("scheduler-plugins.crd.yaml")
	h.grantSource("scheduler-plugins")
	_, err := h.client.CoreV1().Namespaces().Create(h.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, metav1.CreateOptions{})
	h.must(err)
	h.do(nodes("n", 1, "8cpu"), queue("q", 1))
	h.start(h.sourcePolicy("own", "scheduler-plugins"))
	plugins := h.schedulerPlugins()

	plugins.group(namespace, "train", `{"minMember":2}`)
	plugins.group("other", "train", `{"minMember":2}`)
	h.do(group("train", 2), group("both", 2))
	plugins.members(namespace, "train", 1, "1cpu")
	plugins.members("other", "train", 1, "1cpu")
	h.do(members("both", pods(1, "1cpu", label(api.LabelSchedulerPluginsGroup, "train"), label("scheduling.batch-scheduler.dev/pod-group", "both"))))
	for _, pod := range []string{"default/train-0", "other/train-0", "default/both-0"} {
		in, name, _ := strings.Cut(pod, "/")
		h.eventually(func() error { return h.waits(in, name, "NotEnoughPods", "1 of 2 pods") })
	}
	plugins.members("other", "train", 2, "1cpu", func(p *corev1.Pod) { p.Name += "-more" })
	h.eventually(func() error {
		return plugins.status("other", "train", map[string]string{"phase": "Running", "running": "3"})
	})
	h.eventually(func() error { return h.bound(namespace) })
	h.eventually(func() error {
		return h.event("AmbiguousGroup", "a member of the first, PodGroup both, and not of group train of scheduler-plugins")
	})
	if n := h.events("AmbiguousGroup"); n != 1 {
		t.Errorf("%d events about two gangs, want 1", n)
	}
}

// events returns how many events have a reason.
func (h *harness) events(reason string) (n int) {
	h.t.Helper()
	list, err := h.client.EventsV1().Events("").List(h.ctx, metav1.ListOptions{})
	h.must(err)
	for i := range list.Items {
		if list.Items[i].Reason == reason {
			n++
		}
	}
	return n
}

// TestGroupCreatedAgain: a group is deleted while its pods run, and created again with another size and queue. The running
// pods count in their queue, and new pods are a gang of the new group (IM2).
func TestGroupCreatedAgain(t *testing.T) {
	h := newHarness(t, cluster.Options{WorkloadAPI: true, FeatureGates: []string{"GangScheduling=true"}})
	h.applyFiles("scheduler-plugins.crd.yaml", "volcano.crd.yaml")
	for _, source := range []string{"native", "scheduler-plugins", "volcano"} {
		h.grantSource(source)
	}
	h.do(nodes("n", 2, "8cpu"), queue("q", 1), queue("r", 1))
	h.start(h.sourcePolicy("own", "native", "scheduler-plugins", "volcano"))
	for name, groups := range map[string]otherAPI{"plugins": h.schedulerPlugins(), "volcano": h.otherAPI("scheduling.volcano.sh", "v1beta1", "")} {
		inQueue := func(queue string, from int) func(*corev1.Pod) {
			return func(p *corev1.Pod) {
				label("scheduling.batch-scheduler.dev/queue", queue)(p)
				p.Name += "-" + queue + strings.Repeat("-more", from)
			}
		}
		groups.group(namespace, name, `{"minMember":3}`)
		groups.members(namespace, name, 3, "1cpu", inQueue("q", 0))
		h.eventually(func() error {
			return groups.status(namespace, name, map[string]string{"phase": "Running", "running": "3"})
		})
		h.must(groups.resource.Namespace(namespace).Delete(h.ctx, name, metav1.DeleteOptions{}))
		groups.group(namespace, name, `{"minMember":5}`)
		groups.members(namespace, name, 4, "1cpu", inQueue("r", 0))
		h.eventually(func() error { return h.waits(namespace, name+"-0-r", "NotEnoughPods", "4 of 5 pods") })
		groups.members(namespace, name, 1, "1cpu", inQueue("r", 1))
		h.eventually(func() error {
			return groups.status(namespace, name, map[string]string{"phase": "Running", "running": "5"})
		})
	}
	h.eventually(func() error {
		return errors.Join(h.queueHolds("q", "6"), h.queueHolds("r", "10"))
	})
}

// queueHolds compares the cpu that a queue has allocated.
func (h *harness) queueHolds(name, want string) error {
	q, err := h.batch.SchedulingV1alpha1().Queues().Get(h.ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	cpu := q.Status.Allocated[corev1.ResourceCPU]
	if got := cpu.String(); got != want {
		return fmt.Errorf("queue %s has allocated %s cpu, want %s", name, got, want)
	}
	return nil
}

// TestGroupsOfVolcano: a group is Inqueue before it has pods, if it could ever start (IV1, IV2). What the scheduler cannot
// honour keeps the pods waiting, and its account may change nothing but the status (IV3).
func TestGroupsOfVolcano(t *testing.T) {
	h := newHarness(t, noControllers)
	h.applyFiles("volcano.crd.yaml")
	h.grantSource("volcano")
	h.do(nodes("n", 2, "4cpu"), queue("small", 1, atMost("2cpu")))
	h.start(h.sourcePolicy("own", "volcano"))
	volcano := h.volcano()

	volcano.group(namespace, "train", `{"minMember":3,"minResources":{"cpu":"6"}}`)
	volcano.group(namespace, "nowhere", `{"minMember":1,"queue":"nowhere"}`)
	volcano.group(namespace, "huge", `{"minMember":2,"minResources":{"cpu":"9"}}`)
	volcano.group(namespace, "capped", `{"minMember":1,"queue":"small","minResources":{"cpu":"3"}}`)
	volcano.group(namespace, "roles", `{"minMember":1,"minTaskMember":{"worker":1}}`)
	volcano.group(namespace, "tiers", `{"minMember":1,"networkTopology":{}}`)
	for name, want := range map[string][2]string{
		"train": {"Inqueue", "NotEnoughPods"}, "nowhere": {"Pending", "QueueNotFound"}, "huge": {"Pending", "ExceedsClusterCapacity"},
		"capped": {"Pending", "ExceedsQueueCapability"}, "roles": {"Inqueue", "NotEnoughPods"}, "tiers": {"Pending", "TopologyNotFound"},
	} {
		h.eventually(func() error {
			return errors.Join(volcano.status(namespace, name, map[string]string{"phase": want[0]}), volcano.unschedulable(name, want[1]))
		})
	}
	volcano.members(namespace, "roles", 1, "1cpu")
	h.eventually(func() error {
		return h.waits(namespace, "roles-0", "NotEnoughPods", "subgroup worker has 0 of 1 pods")
	})
	volcano.members(namespace, "tiers", 1, "1cpu")
	h.eventually(func() error { return h.waits(namespace, "tiers-0", "TopologyNotFound", "no topology exists") })

	volcano.members(namespace, "train", 2, "2cpu")
	h.eventually(func() error { return h.waits(namespace, "train-1", "NotEnoughPods", "2 of 3 pods") })
	h.must(h.bound(namespace))
	_, err := h.client.CoreV1().Pods(namespace).Create(h.ctx, volcano.member(namespace, "train-2", "train", "2cpu"), metav1.CreateOptions{})
	h.must(err)
	h.eventually(func() error {
		return volcano.status(namespace, "train", map[string]string{"phase": "Running", "running": "3"})
	})
	h.must(h.bound(namespace, "train-0", "train-1", "train-2"))
	volcano.onlyStatus(namespace, "train")

	account := rest.CopyConfig(h.cluster.RESTConfig())
	account.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:batch-scheduler-system:batch-scheduler"}
	client, err := dynamic.NewForConfig(account)
	h.must(err)
	patch := func(body string) error {
		_, patchErr := client.Resource(schema.GroupVersionResource{Group: "scheduling.volcano.sh", Version: "v1beta1", Resource: "podgroups"}).
			Namespace(namespace).Patch(h.ctx, "train", types.MergePatchType, []byte(body), metav1.PatchOptions{})
		return patchErr
	}
	for name, body := range map[string]string{
		"spec": `{"spec":{"minMember":1}}`, "label": `{"metadata":{"labels":{"a":"b"}}}`, "finalizer": `{"metadata":{"finalizers":["a.b/c"]}}`,
	} {
		h.eventually(func() error { // a policy is in force a moment after it is created
			patchErr := patch(body)
			if apierrors.IsForbidden(patchErr) && strings.Contains(patchErr.Error(), "only the status") {
				return nil
			}
			return fmt.Errorf("a change of the %s is not refused: %w", name, patchErr)
		})
	}
	h.must(patch(`{"status":{"running":3}}`))
}

// unschedulable compares the reason of the condition Unschedulable of a group of Volcano.
func (a otherAPI) unschedulable(name, want string) error {
	object, err := a.resource.Namespace(namespace).Get(a.h.ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == "Unschedulable" && c["status"] == "True" && c["reason"] == want && c["transitionID"] != "" {
			return nil
		}
	}
	return errors.Join(err, fmt.Errorf("group %s is not Unschedulable with reason %s: %v", name, want, conditions))
}

// unschedulableOnNodePool compares the reason of the condition UnschedulableOnNodePool of a group of KAI Scheduler, and a part of
// its message.
func (a otherAPI) unschedulableOnNodePool(name, want, part string) error {
	object, err := a.resource.Namespace(namespace).Get(a.h.ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	conditions, _, err := unstructured.NestedSlice(object.Object, "status", "schedulingConditions")
	for _, c := range conditions {
		c, ok := c.(map[string]any)
		if !ok || c["type"] != "UnschedulableOnNodePool" || c["nodePool"] != "default" || c["status"] != "True" || c["reason"] != "Unschedulable" {
			continue
		}
		reasons, _, _ := unstructured.NestedSlice(c, "reasons")
		if strings.Contains(fmt.Sprint(reasons), "reason:"+want) && strings.Contains(fmt.Sprint(c["message"]), part) {
			return nil
		}
	}
	return errors.Join(err, fmt.Errorf("group %s is not UnschedulableOnNodePool with reason %s and message %q: %v", name, want, part, conditions))
}

func (h *harness) native() otherAPI {
	return h.otherAPI("scheduling.k8s.io", "v1alpha2", "schedulingGroup")
}

// scheduledCondition compares the condition PodGroupScheduled of a native group: "status/reason", and a part of the message.
func (a otherAPI) scheduledCondition(name, want, part string) error {
	return a.condition(name, "PodGroupScheduled", want, part)
}

// condition compares a condition of a native group.
func (a otherAPI) condition(name, kind, want, part string) error {
	object, err := a.resource.Namespace(namespace).Get(a.h.ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, c := range conditions {
		c, ok := c.(map[string]any)
		if ok && c["type"] == kind && fmt.Sprint(c["status"], "/", c["reason"]) == want && strings.Contains(fmt.Sprint(c["message"]), part) {
			return nil
		}
	}
	return errors.Join(err, fmt.Errorf("group %s has no condition %s that is %s with message %q: %v", name, kind, want, part, conditions))
}

// scheduledSince returns since when the condition PodGroupScheduled of a native group is True.
func (a otherAPI) scheduledSince(name string) string {
	a.h.t.Helper()
	a.h.must(a.scheduledCondition(name, "True/Scheduled", ""))
	object, err := a.resource.Namespace(namespace).Get(a.h.ctx, name, metav1.GetOptions{})
	a.h.must(err)
	conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	a.h.must(err)
	for _, c := range conditions {
		if c := c.(map[string]any); c["type"] == "PodGroupScheduled" {
			return fmt.Sprint(c["lastTransitionTime"])
		}
	}
	return ""
}

// TestNativeGroups: gangs of Kubernetes' own PodGroups start whole, by the priority of the group, and their condition is
// written (IN1, IN4). Basic groups change nothing (IN7), and what the scheduler cannot honour keeps the pods waiting
// (IN5, IN6). A group that is deleted is kept until its pods have ended (IN3).
func TestNativeGroups(t *testing.T) {
	h := newHarness(t, cluster.Options{ControllerManager: true, WorkloadAPI: true, FeatureGates: []string{
		"WorkloadWithJob=true", "GangScheduling=true", "TopologyAwareWorkloadScheduling=true", "WorkloadAwarePreemption=true",
	}})
	h.grantSource("native")
	h.do(nodes("n", 3, "1cpu"), priorityClass("low", 1), priorityClass("high", 5))
	h.start(h.sourcePolicy("own", "native"))
	native := h.native()

	h.do(indexedJob("train", 4, "1cpu"))
	name := h.groupOfJob("train")
	h.eventually(func() error {
		return native.scheduledCondition(name, "False/Unschedulable", "3/3 nodes are available")
	})
	h.ofJob("train", func(pod string) error {
		h.eventually(func() error { return h.waits(namespace, pod, "Unschedulable", "nodes are available") })
		return nil
	})
	h.must(h.bound(namespace))
	h.do(node("n-more", "1cpu"))
	h.eventually(func() error { return native.scheduledCondition(name, "True/Scheduled", "all 4 pods") })
	native.onlyStatus(namespace, name)
	members, err := h.podsWith("batch.kubernetes.io/job-name=train")
	h.must(err)
	since := native.scheduledSince(name)
	h.must(h.client.CoreV1().Pods(namespace).Delete(h.ctx, members[0].Name, metav1.DeleteOptions{}))
	h.eventually(func() error { // the Job creates another one, and the condition stays
		if _, getErr := h.client.CoreV1().Pods(namespace).Get(h.ctx, members[0].Name, metav1.GetOptions{}); !apierrors.IsNotFound(getErr) {
			return fmt.Errorf("pod %s still exists: %w", members[0].Name, getErr)
		}
		return h.runTogether("batch.kubernetes.io/job-name=train", 4)
	})
	h.must(difference(since, native.scheduledSince(name)))

	h.must(native.resource.Namespace(namespace).Delete(h.ctx, name, metav1.DeleteOptions{}))
	object, err := native.resource.Namespace(namespace).Get(h.ctx, name, metav1.GetOptions{})
	h.must(err)
	if object.GetDeletionTimestamp() == nil {
		t.Error("the group is not being deleted while its pods run")
	}
	h.must(native.scheduledCondition(name, "True/Scheduled", "all 4 pods"))

	native.group(namespace, "first", `{"schedulingPolicy":{"gang":{"minCount":3}},"priorityClassName":"low"}`)
	native.group(namespace, "second", `{"schedulingPolicy":{"gang":{"minCount":3}},"priorityClassName":"high"}`)
	native.group(namespace, "racks", `{"schedulingPolicy":{"gang":{"minCount":1}},"schedulingConstraints":{"topology":[{"key":"rack"}]}}`)
	native.group(namespace, "mixed", `{"schedulingPolicy":{"gang":{"minCount":4}}}`)
	native.group(namespace, "basic", `{"schedulingPolicy":{"basic":{}}}`)
	native.members(namespace, "first", 3, "1cpu", prioritized("high"))
	native.members(namespace, "second", 3, "1cpu", prioritized("low"))
	native.members(namespace, "racks", 1, "0cpu")
	h.eventually(func() error {
		return h.waits(namespace, "racks-0", "TopologyNotFound", `no topology has a level "rack", and it is no node label with a prefix`)
	})
	native.members(namespace, "mixed", 4, "0cpu", func(p *corev1.Pod) {
		if p.Name == "mixed-0" || p.Name == "mixed-1" {
			p.Spec.SchedulerName = "default-scheduler"
		}
	})
	h.eventually(func() error {
		return h.waits(namespace, "mixed-3", "NotEnoughPods", "2 of 4 members name another scheduler")
	})
	h.eventually(func() error { return h.waits(namespace, "first-0", "Unschedulable", "nodes are available") })
	h.eventually(func() error { return h.waits(namespace, "second-0", "Unschedulable", "nodes are available") })
	h.must(h.client.BatchV1().Jobs(namespace).Delete(h.ctx, "train", metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)}))
	h.eventually(func() error { return native.scheduledCondition("second", "True/Scheduled", "all 3 pods") })
	h.must(h.waits(namespace, "first-0", "Unschedulable", "nodes are available"))

	native.members(namespace, "basic", 2, "1cpu")
	h.eventually(func() error { // one of the two fits
		return errors.Join(h.bound(namespace, "basic-0", "second-0", "second-1", "second-2"))
	})
}

// TestNativeGroupIsEvicted: a native group shows that its gang is evicted (DisruptionTarget), and loses all of its pods with
// disruptionMode PodGroup. A group of Volcano that is not preemptable stays.
func TestNativeGroupIsEvicted(t *testing.T) {
	h := newHarness(t, cluster.Options{WorkloadAPI: true, FeatureGates: []string{"GangScheduling=true", "WorkloadAwarePreemption=true"}})
	h.applyFiles("volcano.crd.yaml")
	h.grantSource("native")
	h.grantSource("volcano")
	h.do(nodes("n", 1, "4cpu"), priorityClass("high", 5))
	h.start("--scheduler-conf=" + h.file("policy.yaml", "groupSources: [native, volcano]\n"+evictingPolicy))
	native, volcano := h.native(), h.otherAPI("scheduling.volcano.sh", "v1beta1", "")

	volcano.group(namespace, "stays", `{"minMember":1}`)
	_, err := volcano.resource.Namespace(namespace).Patch(h.ctx, "stays", types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"volcano.sh/preemptable":"false"}}}`), metav1.PatchOptions{})
	h.must(err)
	volcano.members(namespace, "stays", 1, "1cpu")
	native.group(namespace, "low", `{"schedulingPolicy":{"gang":{"minCount":1}},"disruptionMode":"PodGroup"}`)
	native.members(namespace, "low", 3, "1cpu", annotated(annotation.TerminateAfter, "1h"))
	h.eventually(func() error { return h.bound(namespace, "low-0", "low-1", "low-2", "stays-0") })
	h.eventually(func() error { return native.condition("low", "PodGroupScheduled", "True/Scheduled", "") })

	h.do(gang("new", 1, pods(1, "1cpu", priority("high"))))
	h.eventually(func() error {
		return native.condition("low", "DisruptionTarget", "True/PreemptionByScheduler", "the gang (3 pods) is being evicted by preempt for default/new")
	})
	h.must(native.condition("low", "PodGroupScheduled", "True/Scheduled", ""))
	h.eventually(func() error { return h.ending("low-0", "low-1", "low-2") })
}

// groupOfJob returns the name of the native group that a Job has created.
func (h *harness) groupOfJob(job string) string {
	h.t.Helper()
	name := ""
	h.eventually(func() error {
		pods, err := h.client.CoreV1().Pods(namespace).List(h.ctx, metav1.ListOptions{LabelSelector: "batch.kubernetes.io/job-name=" + job})
		if err != nil {
			return err
		}
		if len(pods.Items) == 0 || pods.Items[0].Spec.SchedulingGroup == nil {
			return fmt.Errorf("job %s has no pod that names a group", job)
		}
		name = *pods.Items[0].Spec.SchedulingGroup.PodGroupName
		return nil
	})
	return name
}

func prioritized(class string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.PriorityClassName = class }
}

// indexedJob is a Job whose pods run together and until they are deleted.
func indexedJob(name string, count int32, request string, edits ...func(*corev1.Pod)) row {
	return func(h *harness) {
		t := template(name, request, append(edits, annotated("localcluster.batch-scheduler.dev/run-for", "1h"))...)
		t.Spec.RestartPolicy = corev1.RestartPolicyNever
		_, err := h.client.BatchV1().Jobs(namespace).Create(h.ctx, &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: batchv1.JobSpec{
				CompletionMode: new(batchv1.IndexedCompletion), Completions: &count, Parallelism: &count,
				Template: t,
			},
		}, metav1.CreateOptions{})
		h.must(err)
	}
}

// TestUseByOtherGroups: with the admission policies, who names a queue on a group of another API must be allowed to use
// the queue.
func TestUseByOtherGroups(t *testing.T) {
	h := newHarness(t, noControllers)
	h.applyFiles("scheduler-plugins.crd.yaml", "volcano.crd.yaml", "kai.crd.yaml")
	h.do(queue("team", 1))
	h.must(h.cluster.Apply(h.ctx, "../../config/admission"))
	h.grant("groups", []rbacv1.PolicyRule{{APIGroups: []string{"scheduling.x-k8s.io", "scheduling.volcano.sh", "scheduling.run.ai"}, Resources: []string{"podgroups"}, Verbs: []string{"create"}}},
		rbacv1.Subject{Kind: rbacv1.UserKind, Name: "john"})
	config := rest.CopyConfig(h.cluster.RESTConfig())
	config.Impersonate = rest.ImpersonationConfig{UserName: "john"}
	client, err := dynamic.NewForConfig(config)
	h.must(err)
	create := func(group, version, object string) error {
		u := &unstructured.Unstructured{}
		h.must(u.UnmarshalJSON(fmt.Appendf(nil, `{"apiVersion":"%s/%s","kind":"PodGroup",%s}`, group, version, object)))
		_, createErr := client.Resource(schema.GroupVersionResource{Group: group, Version: version, Resource: "podgroups"}).
			Namespace(namespace).Create(h.ctx, u, metav1.CreateOptions{})
		return createErr
	}
	plugins := func(object string) error { return create("scheduling.x-k8s.io", "v1alpha1", object) }
	volcano := func(object string) error { return create("scheduling.volcano.sh", "v1beta1", object) }
	kai := func(object string) error { return create("scheduling.run.ai", "v2alpha2", object) }
	label := `"metadata":{"generateName":"a-","labels":{"scheduling.batch-scheduler.dev/queue":"team"}}`
	for name, try := range map[string]func() error{
		"label of scheduler-plugins":  func() error { return plugins(label) },
		"label of Volcano":            func() error { return volcano(label) },
		"spec.queue of Volcano":       func() error { return volcano(`"metadata":{"generateName":"a-"},"spec":{"queue":"team"}`) },
		"spec.queue of KAI Scheduler": func() error { return kai(`"metadata":{"generateName":"a-"},"spec":{"queue":"team"}`) },
		"class of Volcano":            func() error { return volcano(`"metadata":{"generateName":"a-"},"spec":{"priorityClassName":"urgent"}`) },
	} {
		h.eventually(func() error { // a policy is in force a moment after it is created
			if refusal := try(); !apierrors.IsForbidden(refusal) || !strings.Contains(refusal.Error(), "may not use") {
				return fmt.Errorf("%s: not refused: %w", name, refusal)
			}
			return nil
		})
	}
	h.must(plugins(`"metadata":{"name":"free"}`))
	h.must(volcano(`"metadata":{"name":"free"},"spec":{"minMember":1}`))
	h.must(kai(`"metadata":{"name":"free"},"spec":{"minMember":1}`))
}

// TestGroupSourcesWithoutRestart: a source is enabled by a reload of the policy before its API is served, and read soon
// after it is (IN2). Switching it off again changes no bound pod.
func TestGroupSourcesWithoutRestart(t *testing.T) {
	h := newHarness(t, noControllers)
	h.grantSource("scheduler-plugins")
	h.do(nodes("n", 1, "4cpu"))
	metrics, args := h.newScraper()
	h.start(append(args, h.sourcePolicy("own"))...)
	plugins := h.schedulerPlugins()
	plugins.members(namespace, "train", 2, "1cpu")
	h.eventually(func() error { return h.waits(namespace, "train-0", "UnsupportedPodGroupAPI", "scheduling.x-k8s.io") })

	h.replace("policy.yaml", policyOf("own", "scheduler-plugins"))
	h.eventually(func() error { return h.reloads(metrics, "success", 1) })
	h.eventually(func() error {
		return h.waits(namespace, "train-0", "GroupNotFound", `PodGroup "train" of scheduler-plugins (scheduling.x-k8s.io) does not exist`)
	})
	h.applyFiles("scheduler-plugins.crd.yaml")
	plugins.group(namespace, "train", `{"minMember":2}`)
	h.eventually(func() error {
		return plugins.status(namespace, "train", map[string]string{"phase": "Running", "running": "2"})
	})

	h.replace("policy.yaml", policyOf("own"))
	h.eventually(func() error { return h.reloads(metrics, "success", 2) })
	plugins.members(namespace, "more", 1, "1cpu")
	h.eventually(func() error { return h.waits(namespace, "more-0", "UnsupportedPodGroupAPI", "scheduling.x-k8s.io") })
	h.must(h.bound(namespace, "train-0", "train-1"))

	h.must(h.client.CoreV1().Pods(namespace).Delete(h.ctx, "more-0", metav1.DeleteOptions{}))
	h.replace("policy.yaml", policyOf("scheduler-plugins"))
	h.eventually(func() error { return h.reloads(metrics, "success", 3) })
	plugins.members(namespace, "train", 3, "1cpu", func(p *corev1.Pod) { p.Name += "-more" })
	h.eventually(func() error {
		return plugins.status(namespace, "train", map[string]string{"phase": "Running", "running": "4"})
	})
}
