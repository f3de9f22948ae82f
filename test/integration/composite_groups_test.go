// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/batch-scheduler/batch-scheduler/cmd/localcluster/annotation"
	"github.com/batch-scheduler/batch-scheduler/test/cluster"
)

// laterNative starts a cluster whose pods can name native groups.
func laterNative(t *testing.T) *harness {
	t.Helper()
	h := newHarness(t, cluster.Options{WorkloadAPI: true})
	h.grantSource("native")
	return h
}

// native137 returns the PodGroups of a version of Kubernetes 1.37.
func (h *harness) native137(version string) otherAPI {
	return h.otherAPI("scheduling.k8s.io", version, "schedulingGroup")
}

// composites returns the CompositePodGroups of Kubernetes 1.37.
func (h *harness) composites() otherAPI {
	h.t.Helper()
	client, err := dynamic.NewForConfig(h.cluster.RESTConfig())
	h.must(err)
	return otherAPI{h, client.Resource(schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: "v1alpha3", Resource: "compositepodgroups"}), "schedulingGroup"}
}

// object creates a group of a tree. Parent and labels may be empty.
func (a otherAPI) object(kind, version, name, parent, policy string, labels map[string]string) {
	a.h.t.Helper()
	spec := map[string]any{"workloadRef": map[string]any{"workloadName": "w", "templateName": "t"}}
	if parent != "" {
		spec["parentCompositePodGroupName"] = parent
	}
	object := &unstructured.Unstructured{}
	a.h.must(object.UnmarshalJSON(fmt.Appendf(nil, `{"apiVersion":"scheduling.k8s.io/%s","kind":%q,"spec":{"schedulingPolicy":%s}}`, version, kind, policy)))
	for field, value := range spec {
		a.h.must(unstructured.SetNestedField(object.Object, value, "spec", field))
	}
	object.SetName(name)
	object.SetLabels(labels)
	a.h.eventually(func() error { // an API that has just been defined
		_, err := a.resource.Namespace(namespace).Create(a.h.ctx, object, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
}

func (a otherAPI) composite(name, parent, policy string) {
	a.h.t.Helper()
	a.object("CompositePodGroup", "v1alpha3", name, parent, policy, nil)
}

func (a otherAPI) podGroup(name, parent, policy string) {
	a.h.t.Helper()
	a.object("PodGroup", "v1beta1", name, parent, policy, nil)
}

func (a otherAPI) delete(name string) {
	a.h.t.Helper()
	a.h.must(a.resource.Namespace(namespace).Delete(a.h.ctx, name, metav1.DeleteOptions{}))
}

// TestNativeGroupsOf137: PodGroups of the versions that Kubernetes 1.37 serves are read as soon as they are served, without
// a restart, and have the condition of that version.
func TestNativeGroupsOf137(t *testing.T) {
	h := laterNative(t)
	h.do(nodes("n", 1, "4cpu"))
	metrics, args := h.newScraper()
	h.start(append(args, h.sourcePolicy("own", "native"))...)
	older, groups := h.native(), h.native137("v1beta1")
	older.group(namespace, "train", `{"schedulingPolicy":{"gang":{"minCount":2}}}`)
	older.members(namespace, "train", 2, "1cpu")
	h.eventually(func() error { return older.scheduledCondition("train", "True/Scheduled", "all 2 pods") })

	h.serve137()
	groups.podGroup("later", "", `{"gang":{"minCount":2}}`)
	groups.podGroup("one", "", `{"gang":{"minCount":2}}`)
	h.replace("policy.yaml", policyOf("own", "native", "volcano")) // asks at once which versions are served
	h.eventually(func() error { return h.reloads(metrics, "success", 1) })
	groups.members(namespace, "later", 2, "1cpu")
	groups.members(namespace, "one", 1, "1cpu")
	h.eventually(func() error {
		return errors.Join(
			groups.condition("later", "PodGroupInitiallyScheduled", "True/Scheduled", "all 2 pods"),
			groups.condition("one", "PodGroupInitiallyScheduled", "False/Unschedulable", "1 of 2 pods that must start together exist"),
		)
	})
	groups.onlyStatus(namespace, "later")
	h.must(h.bound(namespace, "later-0", "later-1", "train-0", "train-1"))
}

// TestCompositeGroups: a tree of groups is one gang. Its groups are created in any order, and changed while it waits; a tree
// without its root, or that contradicts itself, says so.
func TestCompositeGroups(t *testing.T) {
	h := laterNative(t)
	h.serve137()
	h.do(nodes("n", 1, "9cpu"), queue("q", 1), queue("r", 1))
	h.start(h.sourcePolicy("own", "native"))
	groups, composites := h.native137("v1beta1"), h.composites()
	runs := annotated(annotation.RunFor, "1h")

	groups.podGroup("cpu", "ray", `{"gang":{"minCount":4}}`)
	groups.members(namespace, "cpu", 10, "1cpu", runs)
	h.eventually(func() error {
		return h.waits(namespace, "cpu-0", "GroupNotFound", `CompositePodGroup "ray", the parent of PodGroup "cpu", does not exist`)
	})
	h.eventually(func() error {
		return groups.condition("cpu", "PodGroupInitiallyScheduled", "False/Unschedulable", "does not exist")
	})
	composites.composite("ray", "", `{"gang":{"minGroupCount":3}}`)
	groups.podGroup("head", "ray", `{"gang":{"minCount":1}}`)
	groups.members(namespace, "head", 1, "1cpu", runs)
	h.eventually(func() error {
		return composites.condition("ray", "CompositePodGroupInitiallyScheduled", "False/Unschedulable", "subgroup ray has 2 of 3 complete subgroups")
	})
	composites.composite("gpus", "ray", `{"gang":{"minGroupCount":2}}`)
	for _, replica := range []string{"gpu-a", "gpu-b", "gpu-c"} {
		groups.podGroup(replica, "gpus", `{"gang":{"minCount":2}}`)
		groups.members(namespace, replica, 2, "1cpu 1gpu", runs)
	}
	h.eventually(func() error {
		return h.waits(namespace, "gpu-a-0", "Unschedulable", "needs 4 more pods of 1 nvidia.com/gpu")
	})
	h.must(h.bound(namespace))
	h.do(nodes("g", 1, "4cpu 5gpu"))
	started := []string{
		"cpu-0", "cpu-1", "cpu-2", "cpu-3", "cpu-4", "cpu-5", "cpu-6", "cpu-7", "gpu-a-0", "gpu-a-1", "gpu-b-0", "gpu-b-1", "head-0",
	}
	h.eventually(func() error { return h.bound(namespace, started...) })
	h.eventually(func() error {
		return errors.Join(
			composites.condition("ray", "CompositePodGroupInitiallyScheduled", "True/Scheduled", "all 9 pods"),
			composites.condition("gpus", "CompositePodGroupInitiallyScheduled", "True/Scheduled", ""),
			groups.condition("gpu-a", "PodGroupInitiallyScheduled", "True/Scheduled", "all 2 pods"),
			groups.condition("gpu-c", "PodGroupInitiallyScheduled", "False/Unschedulable", "needs 4 more pods"), // of before the start
		)
	})
	composites.onlyStatus(namespace, "ray")
	groups.onlyStatus(namespace, "cpu")

	groups.delete("gpu-c") // its pods wait for a group, and the rest runs on
	h.eventually(func() error { return h.waits(namespace, "gpu-c-0", "GroupNotFound", `PodGroup "gpu-c" of Kubernetes`) })
	composites.delete("ray")
	h.eventually(func() error {
		return h.waits(namespace, "cpu-9", "GroupNotFound", `CompositePodGroup "ray", the parent of PodGroup "cpu", does not exist`)
	})
	h.must(h.bound(namespace, started...))
}

// TestContradictingCompositeGroups: what a tree of groups cannot mean is a reason of its pods and a condition of its groups.
func TestContradictingCompositeGroups(t *testing.T) {
	h := laterNative(t)
	h.serve137()
	h.do(nodes("n", 1, "20cpu"), queue("q", 1), queue("r", 1))
	h.start(h.sourcePolicy("own", "native"))
	groups, composites := h.native137("v1beta1"), h.composites()
	const gang, basic = `{"gang":{"minCount":1}}`, `{"basic":{}}`
	waits := func(group, reason, part string) {
		t.Helper()
		groups.members(namespace, group, 1, "1cpu")
		h.eventually(func() error {
			return errors.Join(h.waits(namespace, group+"-0", reason, part),
				groups.condition(group, "PodGroupInitiallyScheduled", "False/Unschedulable", part))
		})
	}
	composites.composite("a", "b", basic)
	composites.composite("b", "a", basic)
	groups.podGroup("round", "a", gang)
	waits("round", "InvalidSubGroups", `the parents of CompositePodGroup "a" form a cycle`)
	h.eventually(func() error {
		return composites.condition("b", "CompositePodGroupInitiallyScheduled", "False/Invalid", "form a cycle")
	})

	for _, level := range [][2]string{{"l1", ""}, {"l2", "l1"}, {"l3", "l2"}, {"l4", "l3"}} {
		composites.composite(level[0], level[1], basic)
	}
	groups.podGroup("deep", "l4", gang)
	waits("deep", "InvalidSubGroups", `PodGroup "deep" is below more than 3 levels of groups`)
	h.eventually(func() error {
		return composites.condition("l1", "CompositePodGroupInitiallyScheduled", "False/Invalid", "more than 3 levels")
	})

	composites.object("CompositePodGroup", "v1alpha3", "two", "", basic, map[string]string{"scheduling.batch-scheduler.dev/queue": "q"})
	groups.object("PodGroup", "v1beta1", "torn", "two", gang, map[string]string{"scheduling.batch-scheduler.dev/queue": "r"})
	waits("torn", "QueueConflict", `CompositePodGroup "two" names queue q, and PodGroup "torn" names queue r`)
	groups.delete("torn")
	groups.podGroup("agreed", "two", gang)
	groups.members(namespace, "agreed", 1, "1cpu", func(p *corev1.Pod) { p.Name += "-now" })
	h.eventually(func() error { return h.bound(namespace, "agreed-0-now") })
}

// TestCompositeGroupIsEvicted: a tree of groups is evicted as one gang, and its root shows for which job.
func TestCompositeGroupIsEvicted(t *testing.T) {
	h := laterNative(t)
	h.serve137()
	h.do(nodes("n", 1, "3cpu"), priorityClass("high", 5))
	h.start("--scheduler-conf=" + h.file("policy.yaml", "groupSources: [native]\n"+evictingPolicy))
	groups, composites := h.native137("v1beta1"), h.composites()
	composites.composite("low", "", `{"gang":{"minGroupCount":2}}`)
	for _, part := range []string{"a", "b"} {
		groups.podGroup(part, "low", `{"gang":{"minCount":1}}`)
		groups.members(namespace, part, 1, "1cpu", annotated(annotation.TerminateAfter, "1h"))
	}
	h.eventually(func() error {
		return errors.Join(h.bound(namespace, "a-0", "b-0"), composites.condition("low", "CompositePodGroupInitiallyScheduled", "True/Scheduled", "all 2 pods"))
	})
	h.do(gang("new", 2, pods(2, "1cpu", priority("high"))))
	h.eventually(func() error {
		return composites.condition("low", "DisruptionTarget", "True/PreemptionByScheduler", "the gang (2 pods) is being evicted by preempt for default/new")
	})
	h.must(composites.condition("low", "CompositePodGroupInitiallyScheduled", "True/Scheduled", ""))
	h.eventually(func() error { return h.ending("a-0", "b-0") })
}
