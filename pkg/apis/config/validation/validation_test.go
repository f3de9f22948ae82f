// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/config/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/apis/config/validation"
)

func TestValidateSchedulerConfiguration(t *testing.T) {
	plugins := func(names ...string) v1alpha1.Tier {
		var tier v1alpha1.Tier
		for _, name := range names {
			tier.Plugins = append(tier.Plugins, v1alpha1.Plugin{Name: name})
		}
		return tier
	}
	for name, tc := range map[string]struct {
		given v1alpha1.SchedulerConfiguration
		want  []string
	}{
		"a valid configuration": {
			given: v1alpha1.SchedulerConfiguration{Actions: []string{"allocate"}, Tiers: []v1alpha1.Tier{plugins("gang", "drf"), {}}},
		},
		"another version and kind": {
			given: v1alpha1.SchedulerConfiguration{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Policy"}, Actions: []string{"allocate"},
			},
			want: []string{
				`apiVersion: Invalid value: "v1": must be "config.batch-scheduler.dev/v1alpha1" or absent`,
				`kind: Invalid value: "Policy": must be "SchedulerConfiguration" or absent`,
			},
		},
		"no actions": {
			want: []string{`actions: Required value: name at least one action, such as "allocate, backfill"`},
		},
		"an action twice and one without a name": {
			given: v1alpha1.SchedulerConfiguration{Actions: []string{"allocate", "", "allocate"}},
			want: []string{
				`actions[1]: Required value: an action without a name; is there a comma too many?`,
				`actions[2]: Duplicate value: "allocate"`,
			},
		},
		"a plugin without a name and a plugin in two tiers": {
			given: v1alpha1.SchedulerConfiguration{Actions: []string{"allocate"}, Tiers: []v1alpha1.Tier{plugins("gang", ""), plugins("", "gang")}},
			want: []string{
				`tiers[0].plugins[1].name: Required value: every plugin needs its name`,
				`tiers[1].plugins[0].name: Required value: every plugin needs its name`,
				`tiers[1].plugins[1].name: Duplicate value: "gang": named before at tiers[0].plugins[0].name`,
			},
		},
		"a negative duration": {
			given: v1alpha1.SchedulerConfiguration{Actions: []string{"allocate"}, StarvationAfter: &metav1.Duration{Duration: -time.Second}},
			want:  []string{`starvationAfter: Invalid value: "-1s": must not be negative; 0 stands for never`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			v1alpha1.SetDefaults_SchedulerConfiguration(&tc.given)
			var got []string
			for _, err := range validation.ValidateSchedulerConfiguration(&tc.given) {
				got = append(got, err.Error())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}
