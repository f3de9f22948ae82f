// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package evict

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/batch-scheduler/batch-scheduler/internal/jobfailure"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/cache/internal/apicall"
)

// endedJob is a Job that fails because its pods are evicted.
type endedJob struct {
	job    v1.ObjectReference
	reason string
}

// endedJobs returns the Jobs that fail if the victims are evicted, in the order of the victims. It reads the Jobs before
// the evictions, because later their statuses may count the evicted pods already. A Job that cannot be read is none of
// them: the permission is optional.
func endedJobs(ctx context.Context, kube kubernetes.Interface, victims []*Victim) (ended []endedJob) {
	var names []string
	pods := map[string]int32{}
	for _, v := range victims {
		if v.BatchJob == "" {
			continue
		}
		if pods[v.BatchJob] == 0 {
			names = append(names, v.BatchJob)
		}
		pods[v.BatchJob]++
	}
	for _, name := range names {
		call, cancel := context.WithTimeout(ctx, apicall.Timeout)
		job, err := kube.BatchV1().Jobs(victims[0].Namespace).Get(call, name, metav1.GetOptions{})
		cancel()
		if err != nil {
			continue
		}
		if why := jobfailure.OfEviction(job, pods[name]); why != "" && jobfailure.End(job) == nil {
			ended = append(ended, endedJob{reason: why, job: v1.ObjectReference{
				APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job", Namespace: job.Namespace, Name: job.Name, UID: job.UID,
			}})
		}
	}
	return ended
}
