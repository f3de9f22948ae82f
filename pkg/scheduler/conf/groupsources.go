// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// knownGroupSources returns the names of the sources of PodGroups.
func knownGroupSources() []string {
	var names []string
	for _, source := range api.AllSources() {
		names = append(names, source.String())
	}
	return names
}

func validateGroupSources(names []string) field.ErrorList {
	var errs field.ErrorList
	path, known := field.NewPath("groupSources"), knownGroupSources()
	for i, name := range names {
		switch {
		case slices.Contains(names[:i], name):
			errs = append(errs, field.Duplicate(path.Index(i), name))
		case !slices.Contains(known, name):
			errs = append(errs, field.Invalid(path.Index(i), name, "no such source of PodGroups; "+suggest(name, "sources", known)))
		}
	}
	return errs
}

func groupSources(names []string) api.GroupSources {
	has := func(source api.GroupSource) bool { return slices.Contains(names, source.String()) }
	return api.GroupSources{
		Native: has(api.SourceNative), SchedulerPlugins: has(api.SourceSchedulerPlugins), Volcano: has(api.SourceVolcano), KAI: has(api.SourceKAI),
	}
}
