// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	podsecurityapi "k8s.io/pod-security-admission/api"
	podsecurity "k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/batch-scheduler/batch-scheduler/internal/image"
	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

func TestEveryObjectIsKnownToItsLastField(t *testing.T) {
	t.Parallel()
	var got []string
	for _, obj := range build(t) {
		got = append(got, obj.GetObjectKind().GroupVersionKind().Kind)
	}
	slices.Sort(got)
	want := []string{
		"ClusterRole", "ClusterRole", "ClusterRole", "ClusterRole", "ClusterRole", "ClusterRole", "ClusterRole",
		"ClusterRoleBinding", "ClusterRoleBinding", "ConfigMap",
		"Deployment", "Namespace", "PodDisruptionBudget", "PriorityClass",
		"Queue", "Role", "RoleBinding", "ServiceAccount",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
}

// TestTheSchedulerWritesNothingElse lists all that the scheduler's service account may do besides reading. Who
// adds a line here widens what a stolen token can do.
func TestTheSchedulerWritesNothingElse(t *testing.T) {
	t.Parallel()
	want := []string{
		"create events",
		"create leases", // in its own namespace
		"create pods/binding",
		"create pods/eviction",
		"create resourceclaims", // of pods that request devices as extended resources
		"create subjectaccessreviews",
		"create tokenreviews",
		"delete resourceclaims",
		"patch events",
		"patch pods/status",
		"update leases [batch-scheduler]",
		"update persistentvolumeclaims", // which wait for their first consumer
		"update persistentvolumes",
		"update podgroups/status",
		"update queues/status",
		"update resourceclaims",
		"update resourceclaims/binding",
		"update resourceclaims/status", "update topologies/status",
	}
	var got []string
	for _, rule := range schedulerRules(t) {
		for _, verb := range rule.Verbs {
			for _, resource := range rule.Resources {
				if verb == "get" || verb == "list" || verb == "watch" {
					continue
				}
				line := verb + " " + resource
				if len(rule.ResourceNames) > 0 {
					line += " [" + strings.Join(rule.ResourceNames, " ") + "]"
				}
				got = append(got, line)
			}
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, slices.Compact(got)); diff != "" {
		t.Errorf("what the scheduler may do (-want +got):\n%s", diff)
	}
}

func TestTheSchedulerReadsNoSecrets(t *testing.T) {
	t.Parallel()
	for _, rule := range schedulerRules(t) {
		for _, resource := range rule.Resources {
			if resource == "secrets" || resource == "configmaps" || strings.HasPrefix(resource, "serviceaccounts") {
				t.Errorf("the scheduler may %v %s, which it does not need", rule.Verbs, resource)
			}
		}
	}
}

func TestNoRoleHasAWildcard(t *testing.T) {
	t.Parallel()
	for _, obj := range build(t) {
		var name string
		var rules []rbacv1.PolicyRule
		switch role := obj.(type) {
		case *rbacv1.ClusterRole:
			name, rules = role.Name, role.Rules
		case *rbacv1.Role:
			name, rules = role.Name, role.Rules
		}
		for _, rule := range rules {
			for _, word := range slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs, rule.NonResourceURLs) {
				if strings.Contains(word, "*") {
					t.Errorf("role %s has the wildcard %q; name what is needed", name, word)
				}
			}
		}
	}
}

func TestTheDeploymentIsRestricted(t *testing.T) {
	t.Parallel()
	evaluator, err := podsecurity.NewEvaluator(podsecurity.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	deployment := find[*appsv1.Deployment](t)
	restricted := podsecurityapi.LevelVersion{Level: podsecurityapi.LevelRestricted, Version: podsecurityapi.LatestVersion()}
	template := deployment.Spec.Template
	for _, result := range evaluator.EvaluatePod(restricted, &template.ObjectMeta, &template.Spec) {
		if !result.Allowed {
			t.Errorf("the namespace would refuse the pods: %s: %s", result.ForbiddenReason, result.ForbiddenDetail)
		}
	}
	for _, container := range template.Spec.Containers {
		if readOnly := container.SecurityContext.ReadOnlyRootFilesystem; readOnly == nil || !*readOnly {
			t.Errorf("container %s can write to its root file system", container.Name)
		}
	}
}

// TestTheImageIsTheOneThatIsBuilt lets who loads the image that "make image" has built apply config/default as it is.
func TestTheImageIsTheOneThatIsBuilt(t *testing.T) {
	t.Parallel()
	got := find[*appsv1.Deployment](t).Spec.Template.Spec.Containers[0].Image
	if diff := cmp.Diff(image.Name, got); diff != "" {
		t.Errorf("the image of the Deployment (-built +named):\n%s", diff)
	}
}

// TestTheShippedPolicyIsTheBuiltInOne holds because a user who deletes the flag must not get another policy.
func TestTheShippedPolicyIsTheBuiltInOne(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../pkg/scheduler/conf/default.yaml")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("there is no built-in policy")
	}
	if err != nil {
		t.Fatal(err)
	}
	var want, got map[string]any
	if err := yaml.UnmarshalStrict(text, &want); err != nil {
		t.Fatal(err)
	}
	shipped := find[*corev1.ConfigMap](t).Data["scheduler.yaml"]
	if err := yaml.UnmarshalStrict([]byte(shipped), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("config/default/scheduler.yaml (-built in +shipped):\n%s", diff)
	}
}

// schedulerRules returns the rules of all roles that are bound to the scheduler's service account. Roles that
// Kubernetes brings along have none here.
func schedulerRules(t *testing.T) []rbacv1.PolicyRule {
	t.Helper()
	roles := map[rbacv1.RoleRef][]rbacv1.PolicyRule{}
	var bound []rbacv1.RoleRef
	for _, obj := range build(t) {
		switch obj := obj.(type) {
		case *rbacv1.ClusterRole:
			roles[rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: obj.Name}] = obj.Rules
		case *rbacv1.Role:
			roles[rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: obj.Name}] = obj.Rules
		case *rbacv1.ClusterRoleBinding:
			bound = append(bound, obj.RoleRef)
		case *rbacv1.RoleBinding:
			bound = append(bound, obj.RoleRef)
		}
	}
	var rules []rbacv1.PolicyRule
	for _, ref := range bound {
		rules = append(rules, roles[ref]...)
	}
	if len(rules) == 0 {
		t.Fatal("nothing is bound to the scheduler")
	}
	return rules
}

// find returns the one object of its type.
func find[T runtime.Object](t *testing.T) T {
	t.Helper()
	var found []T
	for _, obj := range build(t) {
		if obj, ok := obj.(T); ok {
			found = append(found, obj)
		}
	}
	if len(found) != 1 {
		t.Fatalf("config/default has %d objects of type %T, not one", len(found), found)
	}
	return found[0]
}

// build returns what "kubectl apply -k config/default" sends. A field that its type does not know is an error.
func build(t *testing.T) []runtime.Object {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), "default")
	if err != nil {
		t.Fatal(err)
	}
	var objects []runtime.Object
	for _, resource := range resources.Resources() {
		text, err := resource.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		obj, _, err := decoder.Decode(text, nil, nil)
		if err != nil {
			t.Fatalf("%s: %v", resource.CurId(), err)
		}
		objects = append(objects, obj)
	}
	return objects
}
