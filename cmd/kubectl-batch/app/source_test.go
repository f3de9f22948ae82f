// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/groupapi"
)

// otherGroups returns a group "train" of each other API, and a group "ray" of Volcano.
func otherGroups() *dynamicfake.FakeDynamicClient {
	specs := map[api.GroupSource]map[string]any{
		api.SourceNative:           {"schedulingPolicy": map[string]any{"gang": map[string]any{"minCount": int64(2)}}},
		api.SourceSchedulerPlugins: {"minMember": int64(2)},
		api.SourceVolcano:          {"minMember": int64(2), "queue": "research"},
		api.SourceKAI:              {"minMember": int64(2), "queue": "research"},
	}
	kinds := map[schema.GroupVersionResource]string{}
	var objects []runtime.Object
	add := func(a *groupapi.API, name string) *unstructured.Unstructured {
		object := &unstructured.Unstructured{Object: map[string]any{"spec": specs[a.Source]}}
		object.SetGroupVersionKind(a.Resource.GroupVersion().WithKind(a.Kind))
		object.SetNamespace("team")
		object.SetName(name)
		object.SetUID("uid-other")
		object.SetCreationTimestamp(anHourAgo())
		objects = append(objects, object)
		return object
	}
	for _, a := range groupapi.All() {
		kinds[a.Resource] = a.Kind + "List"
		train := add(a, "train")
		if a.Source == api.SourceKAI {
			train.Object["status"] = map[string]any{"schedulingConditions": []any{map[string]any{
				"type": "UnschedulableOnNodePool", "nodePool": "default", "status": "True", "reason": "Unschedulable", "message": "2 cpu above its capability",
				"reasons":            []any{map[string]any{"reason": "QueueFull", "message": "2 cpu above its capability"}},
				"lastTransitionTime": "2026-01-01T11:30:00Z", "transitionID": "1",
			}}}
		}
		if a.Source == api.SourceVolcano {
			ray := add(a, "ray")
			ray.Object["status"] = map[string]any{"phase": "Inqueue", "conditions": []any{map[string]any{
				"type": "Unschedulable", "status": "True", "reason": "NotEnoughPods", "message": "1 of 2 pods that must start together exist",
				"lastTransitionTime": "2026-01-01T11:30:00Z",
			}}}
		}
	}
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, objects...)
	client.PrependReactor("list", "*", func(action k8stesting.Action) (bool, runtime.Object, error) { // as selectByName
		name, one := action.(k8stesting.ListAction).GetListRestrictions().Fields.RequiresExactMatch("metadata.name")
		if !one {
			return false, nil, nil
		}
		list := &unstructured.UnstructuredList{}
		object, err := client.Tracker().Get(action.GetResource(), action.GetNamespace(), name)
		if err == nil {
			list.Items = append(list.Items, *object.(*unstructured.Unstructured))
		}
		list.SetGroupVersionKind(action.GetResource().GroupVersion().WithKind("PodGroupList"))
		return true, list, nil
	})
	return client
}

// serve has the API server serve the APIs of sources.
func (p *pretended) serve(sources ...api.GroupSource) *pretended {
	for _, source := range sources {
		p.core.Resources = append(p.core.Resources, &metav1.APIResourceList{
			GroupVersion: source.APIVersion(), APIResources: []metav1.APIResource{{Name: "podgroups"}},
		})
	}
	return p
}

// inRay adds pods that name the group "ray" of Volcano: one that waits, and one that another client has bound.
func (p *pretended) inRay(t *testing.T) *pretended {
	t.Helper()
	for _, pod := range []*corev1.Pod{
		{ObjectMeta: metav1.ObjectMeta{Name: "ray-head"}, Spec: corev1.PodSpec{NodeName: "n"}},
		{ObjectMeta: metav1.ObjectMeta{Name: "ray-worker"}, Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "NotEnoughPods", Message: "1 of 2 pods that must start together exist",
			LastTransitionTime: anHourAgo(),
		}}}},
	} {
		pod.Namespace, pod.UID, pod.CreationTimestamp = "team", "uid-pod", anHourAgo()
		pod.Annotations = map[string]string{"scheduling.k8s.io/group-name": "ray"}
		if err := p.core.Tracker().Add(pod); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// TestOtherSources: commands about PodGroups of other APIs that the API server serves.
func TestOtherSources(t *testing.T) {
	t.Parallel()
	all := []api.GroupSource{api.SourceNative, api.SourceSchedulerPlugins, api.SourceVolcano, api.SourceKAI}
	for name, test := range map[string]struct {
		serve []api.GroupSource
		line  string
	}{
		"sources-get":            {all, "get podgroups"},
		"sources-get-wide":       {nil, "get podgroups -o wide"},
		"sources-get-one":        {all, "get podgroups --source volcano"},
		"sources-get-named":      {all, "get podgroups train"},
		"sources-get-names":      {all, "get podgroups -o name"},
		"sources-get-yaml":       {all, "get podgroups ray -o yaml"},
		"sources-get-sorted":     {all, "get podgroups --sort-by .metadata.creationTimestamp --source volcano"},
		"sources-get-not-served": {nil, "get podgroups --source volcano"},
		"sources-why":            {all, "why ray --events"},
		"sources-why-json":       {all, "why ray --events -o jsonpath={.source}:{.podGroup}:{.reason}:{.pods}"},
		"sources-why-pod":        {all, "why pod/ray-worker --events"},
		"sources-why-ambiguous":  {all, "why train"},
		"sources-why-source":     {all, "why train --source scheduler-plugins --events"},
		"sources-why-kind":       {all, "why podgroups.scheduling.k8s.io/train --events"},
		"sources-why-kai":        {all, "why train --source kai --events"},
		"sources-why-own":        {all, "why train --source own -o jsonpath={.source}:{.queue}"},
		"sources-why-absent":     {all, "why absent --source native"},
		"sources-why-not-served": {nil, "why ray"},
		"sources-cancel":         {all, "cancel ray"},
		"sources-complete":       {all, "__complete why r"},
		"sources-complete-flag":  {all, "__complete get podgroups --source v"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			printed(t, name, run(t, newPretended().inRay(t).serve(test.serve...), "", strings.Split(test.line, " ")...))
		})
	}
}

// TestForbiddenSource: a user who may not read the groups of an API gets the others and a warning, and an error if these
// groups are asked for.
func TestForbiddenSource(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"get podgroups":                  "Warning: the PodGroups of scheduling.volcano.sh are not listed",
		"get podgroups --source volcano": "error: podgroups.scheduling.volcano.sh is forbidden: no; reading requires the role view",
		"why ray":                        `error: PodGroup "ray" is not one of scheduling.batch-scheduler.dev, and other APIs could not be read: podgroups.scheduling.volcano.sh is forbidden: no`,
		"why bare":                       "PodGroup: team/bare, in queue research",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			c := newPretended().serve(api.SourceVolcano)
			c.other.PrependReactor("*", "*", func(action k8stesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewForbidden(action.GetResource().GroupResource(), "", errors.New("no"))
			})
			if got := run(t, c, "", strings.Split(line, " ")...); !strings.Contains(got, want) {
				t.Errorf("want %q in\n%s", want, got)
			}
		})
	}
}

// TestUnservedSourcesAreNotRead: without these APIs, commands only ask which are served.
func TestUnservedSourcesAreNotRead(t *testing.T) {
	t.Parallel()
	c := newPretended()
	run(t, c, "", "get", "podgroups")
	run(t, c, "", "why", "train")
	if actions := c.other.Actions(); len(actions) > 0 {
		t.Errorf("requests: %v", actions)
	}
}
