// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
	"github.com/batch-scheduler/batch-scheduler/test/perf/figures"
)

// neighbours are gangs whose pods restrict the nodes of each other.
func neighbours(nodes int) []benchmark {
	const zones = 10
	app := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "main"}}
	apart := &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{
		{TopologyKey: v1.LabelHostname, LabelSelector: app},
	}}}
	spread := []v1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: v1.LabelTopologyZone, WhenUnsatisfiable: v1.DoNotSchedule, LabelSelector: app,
	}}
	of := func(name, about string, alter func(*v1.Pod), check check) benchmark {
		const size = 10
		return benchmark{
			name: name, about: about,
			build: func() *fixture {
				w := newFixture(nodes)
				for i, n := range w.nodes {
					n.Labels[v1.LabelTopologyZone] = strconv.Itoa(i % zones)
				}
				w.addQueue("a", 1)
				for g := range nodes / size {
					w.add(job{name: fmt.Sprintf("gang-%05d", g), queue: "a", class: low, min: size, size: size, gpus: 1, alter: func(pod *v1.Pod) {
						pod.Labels["app"] = "main"
						alter(pod)
					}})
				}
				return w
			},
			cycles: []cycle{{want: outcome{"a low": {bound: nodes}}, check: check, limits: []limit{{name: "cycle", most: 500}}}},
		}
	}
	return []benchmark{
		of("D5/anti-affinity", "D5: as many pods as nodes, no two of which may share one", func(pod *v1.Pod) { pod.Spec.Affinity = apart },
			func(c *model.Cluster) ([]figures.Figure, []string) { return nil, uneven(c, v1.LabelHostname) }),
		of("D5/spread", "D5: as many pods as nodes, spread over ten zones", func(pod *v1.Pod) { pod.Spec.TopologySpreadConstraints = spread },
			func(c *model.Cluster) ([]figures.Figure, []string) { return nil, uneven(c, v1.LabelTopologyZone) }),
	}
}

// uneven returns a problem if the tasks on nodes are not evenly distributed over the values of a node label.
func uneven(c *model.Cluster, label string) []string {
	tasks := map[string]int{}
	for _, n := range c.Nodes() {
		tasks[n.Node.Labels[label]] += len(n.Tasks)
	}
	counts := slices.Sorted(maps.Values(tasks))
	if least, most := counts[0], counts[len(counts)-1]; most > least+1 {
		return []string{fmt.Sprintf("between %d and %d pods for the values of %s", least, most, label)}
	}
	return nil
}
