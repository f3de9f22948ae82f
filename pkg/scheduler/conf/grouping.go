// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/config/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// The values of grouping.job.
const (
	basicJobs   = v1alpha1.GroupingBasicJobs
	indexedJobs = "indexed"
)

func validateGrouping(g *v1alpha1.Grouping) field.ErrorList {
	var errs field.ErrorList
	path, known := field.NewPath("grouping"), api.OwnerKindNames()
	for i, name := range g.Kinds {
		switch {
		case slices.Contains(g.Kinds[:i], name):
			errs = append(errs, field.Duplicate(path.Child("kinds").Index(i), name))
		case !slices.Contains(known, name):
			errs = append(errs, field.Invalid(path.Child("kinds").Index(i), name, "no such kind of objects; "+suggest(name, "kinds", known)))
		}
	}
	switch modes := []string{basicJobs, indexedJobs}; {
	case !slices.Contains(modes, g.Job):
		errs = append(errs, field.Invalid(path.Child("job"), g.Job, "no such value; "+suggest(g.Job, "values", modes)))
	case g.Job == indexedJobs && !slices.Contains(g.Kinds, "job"):
		errs = append(errs, field.Invalid(path.Child("job"), g.Job, `has no effect unless kinds contains "job"`))
	}
	return errs
}

func grouping(g *v1alpha1.Grouping) api.Grouping {
	result := api.Grouping{IndexedJobs: g.Job == indexedJobs}
	for _, name := range g.Kinds {
		result.Kinds |= api.OwnerKindNamed(name)
	}
	return result
}
