// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
)

// TestReferences asserts what expressions read, and which are evaluated for each device.
func TestReferences(t *testing.T) {
	t.Parallel()
	type read struct {
		Attributes, Capacities []string
		Understood             bool
	}
	for expression, want := range map[string]read{
		`device.driver == "d"`:                                                     {Understood: true},
		`device.allowMultipleAllocations`:                                          {Understood: true},
		`device.attributes["d"].model == "A"`:                                      {Attributes: []string{"d/model"}, Understood: true},
		`device.attributes['d'].model.matches("^A") || device.driver == "e"`:       {Attributes: []string{"d/model"}, Understood: true},
		`device.attributes["d"].a == device.attributes["e"].a`:                     {Attributes: []string{"d/a", "e/a"}, Understood: true},
		`"model" in device.attributes["d"]`:                                        {Attributes: []string{"d/model"}, Understood: true},
		`has(device.attributes["d"].model)`:                                        {Attributes: []string{"d/model"}, Understood: true},
		`device.capacity["d"].memory.compareTo(quantity("8Gi")) >= 0`:              {Capacities: []string{"d/memory"}, Understood: true},
		`device.attributes["d"].exists(k, k == "model")`:                           {Attributes: []string{"d/exists"}},
		`size(device.attributes["d"]) > 1`:                                         {},
		`device.attributes["d"]["mo" + "del"] == "A"`:                              {},
		`device.attributes["d" + "e"].model == "A"`:                                {},
		`device.attributes["d"].?model.orValue("A") == "A"`:                        {},
		`cel.bind(x, device.attributes["d"], x.model == "A")`:                      {},
		`cel.bind(x, device, x.driver == "d")`:                                     {},
		`[device].all(x, x.driver == "d")`:                                         {},
		`device.attributes["d"].model == "A" && size(device.attributes["e"]) == 0`: {Attributes: []string{"d/model"}},
		`device.attributes.all(domain, device.attributes[domain].model == "A")`:    {},
		`device.attributes["d"].model in device.attributes["d"]`:                   {Attributes: []string{"d/model"}},
		`"a" in device.attributes["d"] && "b" in device.attributes["d"].list`:      {Attributes: []string{"d/list", "d/a"}, Understood: true},
		`device . attributes["d"].model == "A"`:                                    {},
		`device.attributes[r"d"].model == "A"`:                                     {},
		`device.attributes["d"].model == "device"`:                                 {Attributes: []string{"d/model"}},
	} {
		t.Run(expression, func(t *testing.T) {
			t.Parallel()
			names := func(list []reference) (names []string) {
				for _, r := range list {
					names = append(names, r.domain+"/"+r.name)
				}
				return names
			}
			r, understood := referencesOf(expression)
			if diff := cmp.Diff(want, read{names(r.attributes), names(r.capacities), understood}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestSelectorEqualsEvaluation compares the results that a Selector remembers with those of each evaluation.
func TestSelectorEqualsEvaluation(t *testing.T) {
	t.Parallel()
	s := NewSelector()
	rapid.Check(t, func(t *rapid.T) {
		for range rapid.IntRange(1, 8).Draw(t, "devices") {
			device := drawDevice(t)
			driver := rapid.SampledFrom([]string{"d", "f"}).Draw(t, "driver")
			expression := rapid.SampledFrom([]string{
				`device.driver == "d"`,
				`device.attributes["d"].model == "A"`,
				`"model" in device.attributes["d"] && device.attributes["d"].model == "A"`,
				`device.attributes["d"].count >= 2`,
				`device.attributes["e"].model == "A" || device.capacity["d"].memory.compareTo(quantity("8Gi")) >= 0`,
				`device.attributes["d"].version.isGreaterThan(semver("1.0.0"))`,
				`device.attributes["d"].exists(k, k == "model")`,
				`device.attributes["d"].model ==`,
			}).Draw(t, "expression")
			got, err := s.Evaluate([]resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}}, driver, device)
			want, wantErr := s.evaluate(expression, driver, device)
			if got != want && wantErr == nil || (err == nil) != (wantErr == nil) {
				t.Fatalf("%s for %+v of %s: got %v %v, want %v %v", expression, device, driver, got, err, want, wantErr)
			}
		}
	})
}

func drawDevice(t *rapid.T) *resourcev1.Device {
	device := &resourcev1.Device{Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{}, Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{}}
	own := rapid.SampledFrom([]resourcev1.QualifiedName{"", "d/"}).Draw(t, "domain") // both forms of one name are ambiguous
	for _, name := range []resourcev1.QualifiedName{own + "model", "e/model", own + "count", "d/version"} {
		var a resourcev1.DeviceAttribute
		switch rapid.IntRange(0, 5).Draw(t, string(name)) {
		case 0:
			a.StringValue = ptr.To(rapid.SampledFrom([]string{"A", "B", "1"}).Draw(t, "text"))
		case 1:
			a.IntValue = ptr.To(rapid.Int64Range(1, 3).Draw(t, "number"))
		case 2:
			a.VersionValue = ptr.To(rapid.SampledFrom([]string{"1.0.0", "2.0.0"}).Draw(t, "version"))
		case 3:
			a.BoolValue = ptr.To(rapid.Bool().Draw(t, "truth"))
		case 4:
			if rapid.IntRange(0, 9).Draw(t, "unknown") > 0 {
				continue
			}
		default:
			continue
		}
		device.Attributes[name] = a
	}
	for _, name := range []resourcev1.QualifiedName{own + "memory", "e/memory"} {
		if rapid.Bool().Draw(t, string(name)) {
			device.Capacity[name] = resourcev1.DeviceCapacity{Value: resource.MustParse(rapid.SampledFrom([]string{"4Gi", "8Gi"}).Draw(t, "amount"))}
		}
	}
	return device
}
