// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/yaml"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/config/v1alpha1"
)

func TestUnmarshal(t *testing.T) {
	for name, tc := range map[string]struct {
		given string
		want  v1alpha1.SchedulerConfiguration
	}{
		"the file of kube-batch": {
			given: `
actions: "allocate, backfill"
tiers:
- plugins:
  - name: priority
    enableJobOrder: false
  - name: nodeorder
    arguments: {leastrequested.weight: "2"}
`,
			want: v1alpha1.SchedulerConfiguration{
				Actions: v1alpha1.ActionList{"allocate", "backfill"},
				Tiers: []v1alpha1.Tier{{Plugins: []v1alpha1.Plugin{
					{Name: "priority", EnableJobOrder: new(false)},
					{Name: "nodeorder", Arguments: v1alpha1.Arguments{"leastrequested.weight": "2"}},
				}}},
			},
		},
		"actions as a list, arguments of every type, a duration": {
			given: "actions: [a, b]\nstarvationAfter: 90s\ntiers: [{plugins: [{name: p, arguments: {i: 2, f: 0.5, b: true, s: x}}]}]",
			want: v1alpha1.SchedulerConfiguration{
				Actions:         v1alpha1.ActionList{"a", "b"},
				StarvationAfter: &metav1.Duration{Duration: 90 * time.Second},
				Tiers: []v1alpha1.Tier{{Plugins: []v1alpha1.Plugin{
					{Name: "p", Arguments: v1alpha1.Arguments{"i": "2", "f": "0.5", "b": "true", "s": "x"}},
				}}},
			},
		},
		"a comma too many is left to validation": {
			given: `actions: "a,"`,
			want:  v1alpha1.SchedulerConfiguration{Actions: v1alpha1.ActionList{"a", ""}},
		},
		"blank actions": {given: `actions: " "`, want: v1alpha1.SchedulerConfiguration{}},
	} {
		t.Run(name, func(t *testing.T) {
			var got v1alpha1.SchedulerConfiguration
			if err := yaml.UnmarshalStrict([]byte(tc.given), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("object (-want +got):\n%s", diff)
			}
			data, err := yaml.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			var again v1alpha1.SchedulerConfiguration
			if err := yaml.UnmarshalStrict(data, &again); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(got, again); diff != "" {
				t.Errorf("object after writing and reading (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnmarshalRejectsArgumentsThatAreNotScalars(t *testing.T) {
	for name, value := range map[string]string{"a list": "[1]", "a mapping": "{a: b}", "null": "null"} {
		t.Run(name, func(t *testing.T) {
			var got v1alpha1.Plugin
			err := yaml.Unmarshal([]byte("name: p\narguments: {weight: "+value+"}"), &got)
			if want := "argument weight: must be a string, a number or a boolean"; err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got error %v, want %s", err, want)
			}
		})
	}
}

func TestDefaults(t *testing.T) {
	got := &v1alpha1.SchedulerConfiguration{
		Actions: v1alpha1.ActionList{" allocate "},
		Tiers:   []v1alpha1.Tier{{Plugins: []v1alpha1.Plugin{{Name: "gang", EnablePredicate: new(false)}}}},
	}
	v1alpha1.SetDefaults_SchedulerConfiguration(got)
	want := &v1alpha1.SchedulerConfiguration{
		TypeMeta:        metav1.TypeMeta{APIVersion: "config.batch-scheduler.dev/v1alpha1", Kind: "SchedulerConfiguration"},
		Actions:         v1alpha1.ActionList{"allocate"},
		StarvationAfter: &metav1.Duration{Duration: 5 * time.Minute},
		Expect:          &metav1.Duration{},
		Grouping:        v1alpha1.Grouping{Job: "basic"},
		Tiers: []v1alpha1.Tier{{Plugins: []v1alpha1.Plugin{{
			Name:           "gang",
			EnableJobOrder: new(true), EnableJobReady: new(true), EnableJobPipelined: new(true), EnableTaskOrder: new(true),
			EnablePreemptable: new(true), EnableReclaimable: new(true), EnableQueueOrder: new(true),
			EnablePredicate: new(false), EnableNodeOrder: new(true),
		}}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("object (-want +got):\n%s", diff)
	}
	again := got.DeepCopy()
	v1alpha1.SetDefaults_SchedulerConfiguration(again)
	if diff := cmp.Diff(got, again); diff != "" {
		t.Errorf("defaults changed an object that has them (-want +got):\n%s", diff)
	}
}

func TestASchemeDecodesAndDefaults(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	codecs := serializer.NewCodecFactory(scheme, serializer.EnableStrict)
	given := "apiVersion: config.batch-scheduler.dev/v1alpha1\nkind: SchedulerConfiguration\nactions: allocate\n"
	object, _, err := codecs.UniversalDeserializer().Decode([]byte(given), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	scheme.Default(object)
	got, ok := object.(*v1alpha1.SchedulerConfiguration)
	if !ok {
		t.Fatalf("got a %T", object)
	}
	if got.StarvationAfter == nil || got.StarvationAfter.Duration != v1alpha1.DefaultStarvationAfter {
		t.Errorf("starvationAfter: got %v, want %v", got.StarvationAfter, v1alpha1.DefaultStarvationAfter)
	}
}
