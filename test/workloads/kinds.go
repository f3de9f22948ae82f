// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// replicas are a template and the number of its pods.
type replicas struct {
	Replicas   int                    `json:"replicas"`
	NumOfHosts int                    `json:"numOfHosts"` // Ray: pods of one replica
	Template   corev1.PodTemplateSpec `json:"template"`
}

// mpiJob: the operator creates a Job for the launcher, and the pods of the workers.
type mpiJob struct {
	Spec struct {
		LauncherCreationPolicy string              `json:"launcherCreationPolicy"`
		MPIReplicaSpecs        map[string]replicas `json:"mpiReplicaSpecs"`
	} `json:"spec"`
}

func (m *mpiJob) pods() ([]Pods, error) {
	if m.Spec.LauncherCreationPolicy != "AtStartup" {
		return nil, fmt.Errorf("launcherCreationPolicy %q creates the launcher when the workers run", m.Spec.LauncherCreationPolicy)
	}
	var all []Pods
	for _, kind := range slices.Sorted(maps.Keys(m.Spec.MPIReplicaSpecs)) {
		r := m.Spec.MPIReplicaSpecs[kind]
		all = append(all, Pods{"MPIJob spec.mpiReplicaSpecs." + kind + ".template", r.Replicas, r.Template})
	}
	return all, nil
}

// rayCluster: the operator creates a head, and the pods of each worker group.
type rayCluster struct {
	Spec struct {
		HeadGroupSpec    replicas   `json:"headGroupSpec"`
		WorkerGroupSpecs []replicas `json:"workerGroupSpecs"`
	} `json:"spec"`
}

func (c *rayCluster) pods() ([]Pods, error) {
	all := []Pods{{"RayCluster spec.headGroupSpec.template", 1, c.Spec.HeadGroupSpec.Template}}
	for i, r := range c.Spec.WorkerGroupSpecs {
		all = append(all, Pods{fmt.Sprintf("RayCluster spec.workerGroupSpecs[%d].template", i), r.Replicas * max(1, r.NumOfHosts), r.Template})
	}
	return all, nil
}

// sparkApplication: the operator creates the driver, which creates the executors. Resource requests are in separate
// fields.
type sparkApplication struct {
	Spec struct {
		Image    string `json:"image"`
		Driver   spark  `json:"driver"`
		Executor spark  `json:"executor"`
	} `json:"spec"`
}

type spark struct {
	Instances int                    `json:"instances"`
	Cores     int                    `json:"cores"`
	Memory    string                 `json:"memory"` // in Java's format
	Template  corev1.PodTemplateSpec `json:"template"`
}

func (a *sparkApplication) pods() ([]Pods, error) {
	all := []Pods{
		{"SparkApplication spec.driver.template", 1, a.Spec.Driver.Template},
		{"SparkApplication spec.executor.template", a.Spec.Executor.Instances, a.Spec.Executor.Template},
	}
	for i, from := range []spark{a.Spec.Driver, a.Spec.Executor} {
		memory, err := resource.ParseQuantity(strings.ToUpper(from.Memory) + "i")
		if err != nil {
			return nil, fmt.Errorf("memory %q: %w", from.Memory, err)
		}
		cpu := resource.MustParse(strconv.Itoa(from.Cores))
		for j := range all[i].Template.Spec.Containers {
			c := &all[i].Template.Spec.Containers[j]
			c.Image = a.Spec.Image
			c.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory}
		}
	}
	return all, nil
}

// jobSet: the controller creates the given number of each Job.
type jobSet struct {
	Spec struct {
		ReplicatedJobs []replicatedJob `json:"replicatedJobs"`
	} `json:"spec"`
}

func (j *jobSet) pods() ([]Pods, error) {
	var all []Pods
	for i, r := range j.Spec.ReplicatedJobs {
		where := fmt.Sprintf("JobSet spec.replicatedJobs[%d].template.spec.template", i)
		all = append(all, Pods{where, r.Replicas * r.Template.Spec.Parallelism, r.Template.Spec.Template})
	}
	return all, nil
}

// trainingRuntime has the templates of TrainJobs, those of a JobSet.
type trainingRuntime struct {
	Spec jobSetTemplate `json:"spec"`
}

type jobSetTemplate struct {
	Template struct {
		Spec struct {
			ReplicatedJobs []replicatedJob `json:"replicatedJobs"`
		} `json:"spec"`
	} `json:"template"`
}

type replicatedJob struct {
	Name     string `json:"name"`
	Replicas int    `json:"replicas"`
	Template struct {
		Spec struct {
			Parallelism int                    `json:"parallelism"`
			Template    corev1.PodTemplateSpec `json:"template"`
		} `json:"spec"`
	} `json:"template"`
}

// trainJob: the operator creates a JobSet from the runtime with the patches of the job, and with its number of
// training nodes.
type trainJob struct {
	runtime *trainingRuntime

	Spec struct {
		Trainer struct {
			NumNodes         int                         `json:"numNodes"`
			ResourcesPerNode corev1.ResourceRequirements `json:"resourcesPerNode"`
		} `json:"trainer"`
		RuntimePatches []struct {
			TrainingRuntimeSpec jobSetTemplate `json:"trainingRuntimeSpec"`
		} `json:"runtimePatches"`
	} `json:"spec"`
}

// trainer is the training job of a runtime.
const trainer = "node"

func (j *trainJob) pods() ([]Pods, error) {
	if j.runtime == nil {
		return nil, fmt.Errorf("the runtime must precede it in the file")
	}
	template := j.runtime.Spec.trainer()
	if template == nil {
		return nil, fmt.Errorf("the runtime has no job %q", trainer)
	}
	for _, patch := range j.Spec.RuntimePatches {
		if patched := patch.TrainingRuntimeSpec.trainer(); patched != nil {
			template.Labels = patched.Labels
		}
	}
	for i := range template.Spec.Containers {
		template.Spec.Containers[i].Resources = j.Spec.Trainer.ResourcesPerNode
	}
	where := "TrainJob and TrainingRuntime spec.template.spec.replicatedJobs[].template.spec.template"
	return []Pods{{where, j.Spec.Trainer.NumNodes, *template}}, nil
}

func (s *jobSetTemplate) trainer() *corev1.PodTemplateSpec {
	for i := range s.Template.Spec.ReplicatedJobs {
		if job := &s.Template.Spec.ReplicatedJobs[i]; job.Name == trainer {
			return &job.Template.Spec.Template
		}
	}
	return nil
}
