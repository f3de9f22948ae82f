// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"

// volcano is what to do about the actions and plugins of Volcano that this scheduler does not have. docs/migration.md has
// the same lists.
func volcano() conf.Advice {
	const (
		noAdmission = "delete it, because there is no admission before placement"
		starvation  = "set starvationAfter instead"
		descheduler = "delete it; descheduler moves pods"
		topology    = "delete it; the topology manager of the kubelet decides on its node"
	)
	return conf.Advice{
		Actions: ofVolcano(map[string]string{
			"elect":   starvation,
			"enqueue": noAdmission,
			"reserve": starvation,
			"shuffle": descheduler,
		}),
		Plugins: ofVolcano(map[string]string{
			"binpack":                "use nodeorder, which packs extended resources by default, and cpu and memory with mostrequested.weight: 5 and leastrequested.weight: 0",
			"capacity":               "use proportion, with weight, capability and guarantee of the queues",
			"cdp":                    "use PodDisruptionBudgets, which are never violated",
			"deviceshare":            "use device plugins or resource claims",
			"extender":               "compile plugins in with app.WithPlugin",
			"network-topology-aware": "use required pod affinity by zone or rack",
			"nodegroup":              "use node affinity in the pods",
			"numa-aware":             topology,
			"numaaware":              topology,
			"overcommit":             noAdmission,
			"pdb":                    "delete it; PodDisruptionBudgets are never violated",
			"rescheduling":           descheduler,
			"resourcequota":          "use ResourceQuota objects, which the API server enforces",
			"sla":                    starvation,
			"task-topology":          "use preferred pod affinity and anti-affinity in the pods",
			"tdm":                    "taint the nodes, and tolerate the taint in the jobs that can run there",
			"usage":                  "delete it; the requests of pods count, not their usage",
		}),
	}
}

func ofVolcano(advice map[string]string) map[string]string {
	for name, text := range advice {
		advice[name] = "it is one of Volcano: " + text
	}
	return advice
}
