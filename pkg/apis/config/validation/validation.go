// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package validation checks objects of the group config.batch-scheduler.dev. It checks what the object itself shows;
// whether the named actions, plugins and arguments exist is known to the scheduler that loads it.
package validation

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/config/v1alpha1"
)

// ValidateSchedulerConfiguration reports everything that is wrong with a configuration whose defaults are set.
func ValidateSchedulerConfiguration(c *v1alpha1.SchedulerConfiguration) field.ErrorList {
	errs := validateConstant(c.APIVersion, v1alpha1.APIVersion, field.NewPath("apiVersion"))
	errs = append(errs, validateConstant(c.Kind, v1alpha1.SchedulerConfigurationKind, field.NewPath("kind"))...)
	errs = append(errs, validateActions(c.Actions, field.NewPath("actions"))...)
	errs = append(errs, validateTiers(c.Tiers, field.NewPath("tiers"))...)
	if after := c.StarvationAfter; after != nil && after.Duration < 0 {
		errs = append(errs, field.Invalid(field.NewPath("starvationAfter"), after.Duration.String(), "must not be negative; 0 stands for never"))
	}
	if expect := c.Expect; expect != nil && expect.Duration < 0 {
		errs = append(errs, field.Invalid(field.NewPath("expect"), expect.Duration.String(), "must not be negative; 0 reserves nothing"))
	}
	return append(errs, validateReservations(c.Reservations, field.NewPath("reservations"))...)
}

func validateReservations(r *v1alpha1.Reservations, path *field.Path) (errs field.ErrorList) {
	if r == nil {
		return nil
	}
	if *r.Depth < -1 {
		errs = append(errs, field.Invalid(path.Child("depth"), *r.Depth, "must be a number of gangs per queue, 0 for none, or -1 for all"))
	}
	if *r.Total < 0 {
		errs = append(errs, field.Invalid(path.Child("total"), *r.Total, "must not be negative"))
	}
	for name, d := range map[string]*metav1.Duration{
		"window": r.Window, "after": r.After, "margin": r.Margin, "preemptionDelay": r.PreemptionDelay,
	} {
		if d.Duration < 0 {
			errs = append(errs, field.Invalid(path.Child(name), d.Duration.String(), "must not be negative"))
		}
	}
	slices.SortFunc(errs, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	return errs
}

func validateConstant(got, want string, path *field.Path) field.ErrorList {
	if got == want {
		return nil
	}
	return field.ErrorList{field.Invalid(path, got, fmt.Sprintf("must be %q or absent", want))}
}

func validateActions(actions []string, path *field.Path) field.ErrorList {
	if len(actions) == 0 {
		return field.ErrorList{field.Required(path, `name at least one action, such as "allocate, backfill"`)}
	}
	var errs field.ErrorList
	for i, name := range actions {
		switch {
		case name == "":
			errs = append(errs, field.Required(path.Index(i), "an action without a name; is there a comma too many?"))
		case slices.Contains(actions[:i], name):
			errs = append(errs, field.Duplicate(path.Index(i), name))
		}
	}
	return errs
}

func validateTiers(tiers []v1alpha1.Tier, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	first := map[string]*field.Path{} // where each plugin is configured first
	for i, tier := range tiers {
		for j, plugin := range tier.Plugins {
			name := path.Index(i).Child("plugins").Index(j).Child("name")
			before, again := first[plugin.Name]
			switch {
			case plugin.Name == "":
				errs = append(errs, field.Required(name, "every plugin needs its name"))
			case again:
				err := field.Duplicate(name, plugin.Name)
				err.Detail = "named before at " + before.String()
				errs = append(errs, err)
			default:
				first[plugin.Name] = name
			}
		}
	}
	return errs
}
