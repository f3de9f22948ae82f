// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"strconv"
	"strings"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// OccupiedDomains are the domains of topology levels where the pods of a PodGroup have nodes. They are text, so that reports
// can be compared: for each level a line with its name, the number of domains, and the first of their paths, sorted. Neither
// names nor paths contain spaces.
type OccupiedDomains string

// With returns o with one more level; the paths are sorted.
func (o OccupiedDomains) With(level *TopologyLevel, paths []string) OccupiedDomains {
	if len(paths) == 0 {
		return o
	}
	line := level.Name + " " + strconv.Itoa(len(paths))
	for _, path := range paths[:min(len(paths), v1alpha1.MaxOccupiedDomains)] {
		line += " " + path
	}
	if o != "" {
		line = "\n" + line
	}
	return o + OccupiedDomains(line)
}

// Status returns what the status of the PodGroup shows.
func (o OccupiedDomains) Status() []v1alpha1.OccupiedDomains {
	if o == "" {
		return nil
	}
	var list []v1alpha1.OccupiedDomains
	for line := range strings.SplitSeq(string(o), "\n") {
		fields := strings.Fields(line)
		count, err := strconv.Atoi(fields[1])
		if err != nil {
			continue // With wrote it
		}
		paths := fields[2:]
		list = append(list, v1alpha1.OccupiedDomains{Level: fields[0], Domains: paths, More: int32(count - len(paths))})
	}
	return list
}
