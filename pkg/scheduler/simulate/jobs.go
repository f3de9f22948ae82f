// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"maps"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// expandJobs creates the pods of Jobs that have none, as the Job controller does initially.
func (s *Snapshot) expandJobs(o *Objects) error {
	started := map[string]bool{} // by namespace and name of the Job
	objects := o.sorted()
	for _, obj := range objects {
		if pod, isPod := obj.(*v1.Pod); isPod {
			started[jobOf(pod)] = true // no Job has the empty name
		}
	}
	for _, obj := range objects {
		job, ok := obj.(*batchv1.Job)
		if !ok || started[nameOf(job)] {
			continue
		}
		if job.Spec.Suspend != nil && *job.Spec.Suspend {
			s.warn("Job %s is suspended and has no pods", nameOf(job))
			continue
		}
		for i := range firstPods(job) {
			if err := o.add(podOf(job, i), "v1 Pod", "the pods of Job "+nameOf(job)); err != nil {
				return err
			}
		}
	}
	return nil
}

// firstPods returns the number of pods with which a Job starts.
func firstPods(job *batchv1.Job) int {
	for _, c := range job.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == v1.ConditionTrue {
			return 0
		}
	}
	n := int32(1)
	if job.Spec.Parallelism != nil {
		n = *job.Spec.Parallelism
	}
	if job.Spec.Completions != nil {
		n = min(n, *job.Spec.Completions-job.Status.Succeeded)
	}
	return max(int(n), 0)
}

func podOf(job *batchv1.Job, i int) *v1.Pod {
	template := job.Spec.Template.DeepCopy()
	pod := &v1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Name, pod.Namespace = fmt.Sprintf("%s-%d", job.Name, i), job.Namespace
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
	pod.Labels = with(pod.Labels, map[string]string{
		batchv1.JobNameLabel: job.Name, batchv1.ControllerUidLabel: string(job.UID), "job-name": job.Name, "controller-uid": string(job.UID),
	})
	if job.Spec.CompletionMode != nil && *job.Spec.CompletionMode == batchv1.IndexedCompletion {
		index := map[string]string{batchv1.JobCompletionIndexAnnotation: strconv.Itoa(i)}
		pod.Labels, pod.Annotations = with(pod.Labels, index), with(pod.Annotations, index)
	}
	return pod
}

// with returns a new map with the entries of both maps; more takes precedence.
func with(entries, more map[string]string) map[string]string {
	all := make(map[string]string, len(entries)+len(more))
	maps.Copy(all, entries)
	maps.Copy(all, more)
	return all
}
