// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/internal/jobfailure"
	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// readJob reads the Job that creates the pods of a PodGroup, if there is one: the owner of the PodGroup or of its pods,
// else the Job of the same name if its pods are members.
func (r Reader) readJob(ctx context.Context, f *Facts) error {
	name, uid := f.Group.Name, types.UID("")
	if owner := jobOwner(f.Group, f.Pods); owner != nil {
		name, uid = owner.Name, owner.UID
	}
	job, err := r.Core.BatchV1().Jobs(r.Namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	case uid == job.UID, uid == "" && creates(job, f.Group):
		f.Job = job
	}
	return nil
}

// jobOwner returns the Job that owns the PodGroup, or the first of the pods that a Job controls; nil if there is none.
func jobOwner(group *v1alpha1.PodGroup, pods []corev1.Pod) *metav1.OwnerReference {
	for i := range group.OwnerReferences {
		if jobfailure.Owns(&group.OwnerReferences[i]) {
			return &group.OwnerReferences[i]
		}
	}
	for i := range pods {
		if owner := metav1.GetControllerOf(&pods[i]); owner != nil && jobfailure.Owns(owner) {
			return owner
		}
	}
	return nil
}

// creates reports whether the pods of a Job are members of the PodGroup.
func creates(job *batchv1.Job, group *v1alpha1.PodGroup) bool {
	pods := &job.Spec.Template
	name := pods.Labels[v1alpha1.LabelPodGroup]
	if name == "" {
		name = pods.Annotations[v1alpha1.AnnotationGroupName]
	}
	return name == group.Name
}

// jobEnd returns the verdict on a PodGroup whose Job has failed or completed, and whether that is so.
func jobEnd(f *Facts) (verdict, bool) {
	if f.Job == nil {
		return verdict{}, false
	}
	end := jobfailure.End(f.Job)
	switch {
	case end == nil:
		return verdict{}, false
	case end.Type == batchv1.JobComplete:
		return verdict{reason: "none", message: "Job " + f.Job.Name + " is complete"}, true
	}
	v := verdict{
		reason:  end.Reason,
		message: fmt.Sprintf("Job %s failed %s ago, and creates no more pods: %s", f.Job.Name, f.age(end.LastTransitionTime), end.Message),
		advice:  "Correct the cause, delete the Job, and submit it again.",
	}
	switch {
	case end.Reason == batchv1.JobReasonDeadlineExceeded:
		v.advice = "The activeDeadlineSeconds of a Job includes the time for which its pods wait. Delete the Job, and submit it again with activeDeadlineSeconds in the pod template instead (submit --time)."
	case isEvicted(f.Group) && jobfailure.OfEviction(f.Job, 1) != "":
		v.advice = "The eviction ended the Job, because it counts evicted pods as failures. Delete the Job, and submit it again with a podFailurePolicy that ignores DisruptionTarget, as kubectl batch submit does."
	case end.Reason == batchv1.JobReasonBackoffLimitExceeded && jobfailure.OfEviction(f.Job, 1) != "":
		v.advice = "Check the logs of its pods. If they were evicted: evictions count as failures of this Job. Delete the Job, and submit it again with a podFailurePolicy that ignores DisruptionTarget, as submit does."
	}
	return v, true
}
