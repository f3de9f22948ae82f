// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package verify

// Expectations are the expected results of the samples. Names are those of objects in one namespace.
type Expectations struct {
	Namespace string

	// Gangs run to their end.
	Gangs []string

	// Infeasible gangs never start.
	Infeasible []Infeasible

	// Orders are gangs that start after others.
	Orders []Order

	// Jobs complete, Deployments become available, Pods run.
	Jobs, Deployments, Pods []string

	// Queues that the groups and the work count in.
	Queues []string
}

// Infeasible is a gang that can never start, because Resource is missing.
type Infeasible struct {
	Group, Resource string
}

// Order is a gang, Then, that fits only after another, First, has ended.
type Order struct {
	First, Then string
}

// Samples is the story of config/samples.
func Samples() Expectations {
	return Expectations{
		Namespace: "batch-samples",
		Gangs: []string{
			"homework-1", "homework-2", "homework-3", "ray", "render", "simulation", "sweep", "tests", "train-early", "train-late",
		},
		Infeasible:  []Infeasible{{Group: "too-big", Resource: "nvidia.com/gpu"}},
		Orders:      []Order{{First: "train-early", Then: "train-late"}},
		Jobs:        []string{"report"},
		Deployments: []string{"web"},
		Pods:        []string{"notes-1", "notes-2", "notes-3"},
		Queues:      []string{"default", "engineering", "research", "students"},
	}
}
