// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package gang makes the two objects that a gang is submitted as, a Job and its PodGroup: from a few words, or from
// a file in which something may be missing. It also says what makes up a gang that is to be deleted.
package gang

import (
	"errors"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

const (
	// schedulerName is what pods ask for that name no scheduler.
	schedulerName = "batch-scheduler"
	// GPU is the resource that --gpu asks for.
	GPU = "nvidia.com/gpu"
)

// Gang is a Job with the PodGroup of its pods.
type Gang struct {
	Job   *batchv1.Job
	Group *v1alpha1.PodGroup
}

// Lifetime is how long the pods may run, and zero for no limit.
type Lifetime struct {
	Time     time.Duration // of each pod, from its start; also the limit of the PodGroup
	Expected time.Duration // estimate of the PodGroup
}

// Grouping is what only the PodGroup says.
type Grouping struct {
	Queue         string
	PriorityClass string
	Min           int32 // 0 for all pods
}

// Spec describes a gang by the flags of submit. Empty fields are not set.
type Spec struct {
	Name             string
	Replicas         int32
	CPU, Memory, GPU string // of each pod
	Image            string
	Command          []string
	Grouping
	Lifetime
}

// New makes a gang. An error names the flag that is wrong.
func New(s Spec) (Gang, error) {
	if err := s.check(); err != nil {
		return Gang{}, err
	}
	requests, limits := corev1.ResourceList{}, corev1.ResourceList{}
	for _, asked := range []struct {
		flag, amount string
		name         corev1.ResourceName
	}{{"--cpu", s.CPU, corev1.ResourceCPU}, {"--memory", s.Memory, corev1.ResourceMemory}, {"--gpu", s.GPU, GPU}} {
		if asked.amount == "" {
			continue
		}
		amount, err := parse(asked.name, asked.amount)
		if err != nil {
			return Gang{}, fmt.Errorf("%s: %w", asked.flag, err)
		}
		requests[asked.name] = amount
		if asked.name == GPU {
			limits[asked.name] = amount // the API server requires both for what cannot be overcommitted
		}
	}
	g := Gang{Job: &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: s.Name},
		Spec: batchv1.JobSpec{
			Parallelism: ptr.To(s.Replicas), Completions: ptr.To(s.Replicas), CompletionMode: ptr.To(batchv1.IndexedCompletion),
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				Containers: []corev1.Container{{
					Name: "main", Image: s.Image, Command: s.Command,
					Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits},
				}},
			}},
		},
	}}
	return g, g.complete(s.Grouping, s.Lifetime)
}

func (s Spec) check() error {
	switch {
	case s.Name == "":
		return errors.New("--name is required: the name of the Job and its PodGroup")
	case len(validation.IsDNS1123Label(s.Name)) > 0:
		return fmt.Errorf("--name: %q is invalid: it must consist of at most 63 lower case letters, digits and '-', and begin and end with a letter or digit", s.Name)
	case s.Image == "":
		return errors.New("--image is required: the container image of the pods")
	case s.Replicas < 1:
		return fmt.Errorf("--replicas: %d is invalid; it must be at least 1", s.Replicas)
	}
	return nil
}

func parse(name corev1.ResourceName, text string) (resource.Quantity, error) {
	amount, err := resource.ParseQuantity(text)
	switch {
	case err != nil:
		return amount, fmt.Errorf("%q is not a quantity, such as 4, 500m or 64Gi", text)
	case amount.Sign() < 0:
		return amount, fmt.Errorf("%s is negative", text)
	case name == GPU && amount.MilliValue()%1000 != 0:
		return amount, fmt.Errorf("%s is not a whole number", text)
	}
	return amount, nil
}

// complete adds what makes the Job a gang: a PodGroup, its label on the pods, and the name of the scheduler.
func (g *Gang) complete(o Grouping, l Lifetime) error {
	pods := &g.Job.Spec.Template
	if g.Group == nil {
		name := named(pods)
		if name == "" {
			name = g.Job.Name
		}
		g.Group = &v1alpha1.PodGroup{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       v1alpha1.PodGroupSpec{MinMember: size(g.Job), Queue: o.Queue, PriorityClassName: o.PriorityClass},
		}
		if o.Min != 0 {
			g.Group.Spec.MinMember = o.Min
		}
	}
	switch name := named(pods); {
	case name == "":
		if pods.Labels == nil {
			pods.Labels = map[string]string{}
		}
		pods.Labels[v1alpha1.LabelPodGroup] = g.Group.Name
	case name != g.Group.Name:
		return fmt.Errorf("the pods of Job %s belong to PodGroup %s, not to %s; correct the label %s", g.Job.Name, name, g.Group.Name, v1alpha1.LabelPodGroup)
	}
	switch pods.Spec.SchedulerName {
	case "":
		pods.Spec.SchedulerName = schedulerName
	case corev1.DefaultSchedulerName:
		return fmt.Errorf("the pods of Job %s use %s, which does not support PodGroups; remove schedulerName, or set it to %s", g.Job.Name, corev1.DefaultSchedulerName, schedulerName)
	}
	if err := g.limit(l); err != nil {
		return err
	}
	g.ignoreEvictions()
	return g.checkMin()
}

// named is the group that the pods name themselves.
func named(pods *corev1.PodTemplateSpec) string {
	if name := pods.Labels[v1alpha1.LabelPodGroup]; name != "" {
		return name
	}
	return pods.Annotations[v1alpha1.AnnotationGroupName]
}

// size is how many pods a Job has at the same time.
func size(job *batchv1.Job) int32 {
	pods := ptr.Deref(job.Spec.Parallelism, 1)
	if completions := job.Spec.Completions; completions != nil {
		pods = min(pods, *completions)
	}
	return max(pods, 1)
}

// checkMin refuses a gang that could never start.
func (g *Gang) checkMin() error {
	least, pods := g.Group.Spec.MinMember, size(g.Job)
	switch {
	case least < 0:
		return fmt.Errorf("--min: %d is invalid; it must be at least 1", least)
	case least > pods:
		return fmt.Errorf("%d pods must start together, but the Job runs at most %d at a time; decrease --min (minMember), or increase --replicas (parallelism)", least, pods)
	}
	return nil
}

// Kinds names what a gang is made of, as kubectl does.
func (g Gang) Kinds() (job, group string) {
	return "job.batch/" + g.Job.Name, strings.Join([]string{"podgroup", v1alpha1.GroupName}, ".") + "/" + g.Group.Name
}
