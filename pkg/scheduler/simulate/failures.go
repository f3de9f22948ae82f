// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"context"
	"fmt"
	"maps"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/pager"

	"github.com/batch-scheduler/batch-scheduler/internal/jobfailure"
)

// readFailureRules lists the Jobs of a cluster, and keeps what determines whether evictions make them fail. No pods are
// created from these Jobs. A user who may not list Jobs gets a result without that information.
func (o *Objects) readFailureRules(ctx context.Context, kube kubernetes.Interface) error {
	err := pager.New(paged(kube.BatchV1().Jobs("").List)).EachListItem(ctx, metav1.ListOptions{}, func(obj runtime.Object) error {
		if job, ok := obj.(*batchv1.Job); ok {
			o.rules[nameOf(job)] = rulesOf(job)
		}
		return nil
	})
	if err != nil && !apierrors.IsForbidden(err) {
		return fmt.Errorf("listing jobs: %w", err)
	}
	return nil
}

// rulesOf returns a copy of a Job with what jobfailure needs.
func rulesOf(job *batchv1.Job) *batchv1.Job {
	return &batchv1.Job{
		Spec: batchv1.JobSpec{
			BackoffLimit: job.Spec.BackoffLimit, BackoffLimitPerIndex: job.Spec.BackoffLimitPerIndex, PodFailurePolicy: job.Spec.PodFailurePolicy,
		},
		Status: batchv1.JobStatus{Failed: job.Status.Failed},
	}
}

// failureRules returns the Jobs of a cluster and those among the objects, by namespace and name.
func (o *Objects) failureRules() map[string]*batchv1.Job {
	rules := maps.Clone(o.rules)
	for _, e := range o.entries {
		if job, ok := e.Object.(*batchv1.Job); ok {
			rules[nameOf(job)] = rulesOf(job)
		}
	}
	return rules
}

// jobFailures records which Jobs fail because of evictions.
type jobFailures struct {
	rules   map[string]*batchv1.Job // by namespace and name; shared by simulations
	evicted map[string]int32        // pods of earlier cycles, by Job
	failed  map[string]string       // why, by Job
	unknown int                     // evicted pods whose Job is not known
}

func newJobFailures(rules map[string]*batchv1.Job) jobFailures {
	return jobFailures{rules: rules, evicted: map[string]int32{}, failed: map[string]string{}}
}

// jobOf returns namespace and name of the Job that controls a pod; empty if none does.
func jobOf(pod *v1.Pod) string {
	if job := jobfailure.ControllerOf(pod); job != "" {
		return pod.Namespace + "/" + job
	}
	return ""
}

// evict counts the evictions of a cycle, and returns the Jobs that fail because of them, sorted.
func (f *jobFailures) evict(victims []*v1.Pod) (failed []string) {
	pods := map[string]int32{}
	for _, pod := range victims {
		if job := jobOf(pod); job == "" {
			continue
		} else if f.rules[job] == nil {
			f.unknown++
		} else {
			pods[job]++
		}
	}
	for job, n := range pods {
		rules := *f.rules[job]
		rules.Status.Failed += f.evicted[job]
		if why := jobfailure.OfEviction(&rules, n); why != "" {
			f.failed[job] = why
			failed = append(failed, job)
		}
		f.evicted[job] += n
	}
	slices.Sort(failed)
	return failed
}
