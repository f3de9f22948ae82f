// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package workloads reads the files of config/samples/workloads like the controllers of their kinds, as far as it
// matters for scheduling: which pods they create, how many, and in which PodGroup. The definitions of most of these
// kinds are not in this repository, so this package defines for all tests where their pod templates are.
package workloads

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// Sample is one file: a group and the workload that creates its pods.
type Sample struct {
	// Name is the name of the file without ".yaml".
	Name string

	// Group is the PodGroup of the file.
	Group *v1alpha1.PodGroup

	// Pods are those that controllers create from the file.
	Pods []Pods

	// Job and Service are nil in files of custom kinds.
	Job     *batchv1.Job
	Service *corev1.Service

	runtime *trainingRuntime
}

// Pods are equal pods from one template.
type Pods struct {
	// Where is the location of the template: the kind and the path.
	Where string

	Count    int
	Template corev1.PodTemplateSpec
}

// ReadAll reads all files of a directory, in the order of their names.
func ReadAll(dir string) ([]*Sample, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	var samples []*Sample
	for _, path := range paths {
		s, err := read(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		samples = append(samples, s)
	}
	return samples, nil
}

func read(path string) (*Sample, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s := &Sample{Name: strings.TrimSuffix(filepath.Base(path), ".yaml")}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		if err = s.add([]byte(document)); err != nil {
			return nil, err
		}
	}
	if s.Group == nil || len(s.Pods) == 0 {
		return nil, fmt.Errorf("it has no PodGroup, or no workload")
	}
	return s, nil
}

// add adds one document. Kinds of this repository and of Kubernetes are decoded strictly; of other kinds only the
// fields that create pods are decoded.
func (s *Sample) add(document []byte) error {
	var head metav1.TypeMeta
	if err := yaml.Unmarshal(document, &head); err != nil {
		return err
	}
	switch head.APIVersion + " " + head.Kind {
	case "scheduling.batch-scheduler.dev/v1alpha1 PodGroup":
		s.Group = &v1alpha1.PodGroup{}
		return yaml.UnmarshalStrict(document, s.Group)
	case "v1 Service":
		s.Service = &corev1.Service{}
		return yaml.UnmarshalStrict(document, s.Service)
	case "batch/v1 Job":
		s.Job = &batchv1.Job{}
		if err := yaml.UnmarshalStrict(document, s.Job); err != nil {
			return err
		}
		s.Pods = append(s.Pods, Pods{"Job spec.template", int(*s.Job.Spec.Parallelism), s.Job.Spec.Template})
		return nil
	case "trainer.kubeflow.org/v1alpha1 TrainingRuntime":
		s.runtime = &trainingRuntime{}
		return yaml.Unmarshal(document, s.runtime)
	case "trainer.kubeflow.org/v1alpha1 TrainJob":
		return makePods(s, document, &trainJob{runtime: s.runtime})
	case "jobset.x-k8s.io/v1alpha2 JobSet":
		return makePods(s, document, &jobSet{})
	case "kubeflow.org/v2beta1 MPIJob":
		return makePods(s, document, &mpiJob{})
	case "ray.io/v1 RayCluster":
		return makePods(s, document, &rayCluster{})
	case "sparkoperator.k8s.io/v1beta2 SparkApplication":
		return makePods(s, document, &sparkApplication{})
	}
	return fmt.Errorf("%s %s is an unknown kind; add it to this package", head.APIVersion, head.Kind)
}

// maker is a kind whose controller creates pods.
type maker interface {
	pods() ([]Pods, error)
}

func makePods(s *Sample, document []byte, m maker) error {
	if err := yaml.Unmarshal(document, m); err != nil {
		return err
	}
	pods, err := m.pods()
	s.Pods = append(s.Pods, pods...)
	return err
}
