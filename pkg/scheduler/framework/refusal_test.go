// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"reflect"
	"slices"
	"testing"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// TestEqualVerdicts sets each field of one of two verdicts. Fields that no verdict on a gang with a job class has are not
// compared.
func TestEqualVerdicts(t *testing.T) {
	never := []string{"Gated", "Devices", "Others", "Domain", "Group", "Victims", "Until", "Awaited", "Reservation", "SubGroup"}
	fields := reflect.TypeFor[api.Verdict]()
	for i := range fields.NumField() {
		name := fields.Field(i).Name
		t.Run(name, func(t *testing.T) {
			var a, b api.Verdict
			switch field := reflect.ValueOf(&b).Elem().Field(i); {
			case slices.Contains(never, name):
				return
			case name == "Request":
				b.Request = api.Resource{1}
			case name == "Start":
				b.Start.Estimated = 1
			case name == "Nodes":
				b.Nodes.Nearest = &api.NearestNode{}
			case field.Kind() == reflect.Bool:
				field.SetBool(true)
			case field.CanInt():
				field.SetInt(1)
			default:
				field.SetString("x")
			}
			if equalVerdicts(&a, &b) || !equalVerdicts(&b, &b) {
				t.Error("the field makes no difference")
			}
		})
	}
}
