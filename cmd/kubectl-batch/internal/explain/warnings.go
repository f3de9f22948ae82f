// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/internal/jobfailure"
	"github.com/batch-scheduler/batch-scheduler/internal/text"
)

// warnings returns, in paragraphs, what an eviction of the gang would mean: that its Job ends, that it creates other pods
// only after minutes, or that pods do not come back. It is empty if the pods come back soon, or the Job has ended.
func warnings(f *Facts) []string {
	if f.Job == nil {
		return withoutController(f)
	}
	if jobfailure.End(f.Job) != nil {
		return nil
	}
	pods := jobPods(f)
	if why := jobfailure.OfEviction(f.Job, pods); why != "" {
		return endsJob(f, pods, why)
	}
	if slow := jobfailure.SlowReturn(f.Job, pods); slow != "" {
		return []string{slow}
	}
	return nil
}

// endsJob warns that an eviction of so many pods would end the Job. A backoffLimit can be changed while the Job runs, a
// podFailurePolicy and a backoffLimitPerIndex cannot.
func endsJob(f *Facts, pods int32, why string) []string {
	const policy = "a podFailurePolicy that ignores DisruptionTarget, as kubectl batch submit sets it"
	warning := fmt.Sprintf("an eviction would end Job %s: %s. ", f.Job.Name, why)
	raised := f.Job.DeepCopy()
	limit := max(100, f.Job.Status.Failed+10*pods)
	raised.Spec.BackoffLimit = ptr.To(limit)
	if jobfailure.OfEviction(raised, pods) != "" {
		return []string{warning + "The Job needs " + policy + ", from its creation."}
	}
	return []string{
		warning + "This command prevents it; a new Job needs " + policy + ":",
		fmt.Sprintf(`kubectl patch job %s -n %s --type=merge -p '{"spec":{"backoffLimit":%d}}'`, f.Job.Name, f.Job.Namespace, limit),
	}
}

// withoutController warns of pods that nothing creates again.
func withoutController(f *Facts) []string {
	bare, all := countBare(f.Pods)
	switch {
	case bare == 0 || isEvicted(f.Group):
		return nil
	case bare == all:
		return []string{"its pods have no controller: after an eviction they do not come back"}
	}
	which := fmt.Sprintf("of its %d pods ", all)
	return []string{text.Count(bare, which+"has", which+"have") + " no controller: after an eviction such pods do not come back"}
}

// countBare returns how many pods have no controller, and how many there are.
func countBare(pods []corev1.Pod) (bare, all int) {
	for i := range pods {
		if hasEnded(&pods[i]) {
			continue
		}
		all++
		if metav1.GetControllerOf(&pods[i]) == nil {
			bare++
		}
	}
	return bare, all
}

// returns says when the pods of an evicted gang come back, while none of them exists.
func returns(f *Facts) string {
	if f.Job == nil {
		if bare, _ := countBare(f.Pods); bare > 0 {
			return adviceEvictedBare
		}
		return adviceEvicted
	}
	since, pods := f.Now.Sub(evictedAt(f.Group)), jobPods(f)
	pause, longest := jobfailure.Pause(f.Job, pods), duration.HumanDuration(jobfailure.LongestPause)
	grace := time.Duration(ptr.Deref(f.Job.Spec.Template.Spec.TerminationGracePeriodSeconds, 30)) * time.Second // in which the pods end
	switch {
	case since < pause:
		longer := ""
		if pause < jobfailure.LongestPause {
			longer = fmt.Sprintf(", and for up to %s if other pods have failed before", longest)
		}
		return fmt.Sprintf("No action is required: Job %s creates its pods again in about %s. The Job controller waits for %s after an eviction of %s%s.",
			f.Job.Name, duration.HumanDuration(pause-since), duration.HumanDuration(pause), text.Count(int(pods), "pod", "pods"), longer)
	case since < jobfailure.LongestPause+grace:
		return fmt.Sprintf("No action is required: the Job controller waits for up to %s after failed and evicted pods before it creates the pods of Job %s again, that is at most %s more.",
			longest, f.Job.Name, duration.HumanDuration(jobfailure.LongestPause+grace-since))
	}
	return fmt.Sprintf("Job %s has not created its pods again, although the Job controller waits for at most %s: check the events of the Job (kubectl describe job %s).", f.Job.Name, longest, f.Job.Name)
}

// jobPods returns how many pods of the Job an eviction of the gang would affect: those that exist, else as many as the Job
// creates at a time.
func jobPods(f *Facts) int32 {
	pods := int32(0)
	for i := range f.Pods {
		owner := metav1.GetControllerOf(&f.Pods[i])
		if owner != nil && owner.UID == f.Job.UID && !hasEnded(&f.Pods[i]) {
			pods++
		}
	}
	if pods == 0 {
		pods = ptr.Deref(f.Job.Spec.Parallelism, 1)
	}
	return pods
}

func hasEnded(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}
