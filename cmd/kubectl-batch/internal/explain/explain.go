// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/batch-scheduler/batch-scheduler/cmd/kubectl-batch/internal/show"
	"github.com/batch-scheduler/batch-scheduler/internal/text"
	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// schedulingDelay is for how long a PodGroup may exist before the scheduler updates its status.
const schedulingDelay = 10 * time.Second

// Text is the answer, in lines of at most 80 characters as far as words allow it.
func (f *Facts) Text() string {
	var s textWriter
	if f.Group != nil {
		s.add("PodGroup", f.groupName()+", in "+f.queueText())
		s.add("Phase", f.phase())
		f.groupReason().write(&s)
		if f.Domain != nil {
			s.add("Domain", f.Domain.Text(f.Now))
		}
		s.add("Position", show.Position(f.Group, f.Queue))
		s.add("Evicted", evicted(f.Group))
		if f.Verbose {
			s.add("Plugins", strings.Join(f.Group.Status.UnschedulablePlugins, ", "))
		}
		s.add("Warning", warnings(f)...)
		s.add("Members", f.exceptionTexts()...)
	} else {
		s.add("Pod", f.Pods[0].Namespace+"/"+f.Pods[0].Name+", in "+f.queueText())
		s.add("Phase", podPhase(&f.Pods[0], f.Now))
		f.podReason(&f.Pods[0]).write(&s)
	}
	if limit := f.timeLimit(); limit > 0 {
		s.add("Time", "each pod may run for "+duration.HumanDuration(limit)+" (activeDeadlineSeconds of the pod)")
	}
	s.add("Run time", runTimeText(f))
	s.add("Start", startText(f))
	s.add("Queue", f.shares())
	s.add("History", historyOf(f).lines(f.age)...)
	s.add("Unread", f.Unread...)
	return s.String()
}

// verdict is why something waits, or that it does not.
type verdict struct{ reason, message, advice string }

// write tells the nearest miss apart from the message that it ends.
func (v verdict) write(s *textWriter) {
	message, miss := nearest(v.message)
	s.add("Reason", v.reason, message)
	s.add("Nearest", miss)
	s.add("Advice", v.advice)
}

// nearest cuts the last "nearest:" clause out of a message.
func nearest(message string) (rest, miss string) {
	const mark = "nearest:"
	at := strings.LastIndex(message, mark)
	if at < 0 {
		return message, ""
	}
	before := strings.TrimRight(message[:at], "; ,")
	miss, after, more := strings.Cut(message[at+len(mark):], ";")
	if more {
		before += ";" + after
	}
	return before, strings.TrimSpace(miss)
}

func (f *Facts) groupReason() verdict {
	g := f.Group
	condition := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionPodGroupScheduled)
	if v, ended := jobEnd(f); ended {
		return v
	}
	switch {
	case f.Other != nil && f.Other.Basic:
		return verdict{reason: "none", message: "the group has the policy basic, so its pods are no gang and count as if they named no group", advice: adviceBasic}
	case g.Status.Phase == "" && condition == nil:
		return f.notLookedAt(g.CreationTimestamp, "PodGroup")
	case g.Status.Phase == v1alpha1.PodGroupFinished:
		return verdict{reason: "none", message: "the PodGroup has ended"}
	case condition == nil:
		return verdict{reason: "none yet", message: "the scheduler has not set a condition yet"}
	}
	v := verdict{condition.Reason, condition.Message, messageAdvice(condition.Reason, condition.Message)}
	if f.Other != nil && condition.Status == metav1.ConditionFalse { // the reason is that of a pod
		v.advice = podAdvice(condition.Reason, condition.Message)
	}
	if pending := count(f.Pods).waiting; condition.Status == metav1.ConditionTrue && pending > 0 {
		v.advice = text.Count(pending, "pod above minMember is", "pods above minMember are") + " pending; Members shows why. The gang itself has its nodes."
	}
	if condition.Reason == v1alpha1.ReasonNotEnoughPods && isEvicted(g) {
		v.advice = returns(f)
	}
	if condition.ObservedGeneration < g.Generation {
		v.message += " (not updated since the last change of the PodGroup)"
	}
	return v
}

func (f *Facts) podReason(p *corev1.Pod) verdict {
	condition := podScheduled(p)
	switch {
	case f.MissingGroup != "" && holds(p):
		return verdict{
			reason:  "none",
			message: fmt.Sprintf("the pod has a node; PodGroup %q, for which it was bound, does not exist any more", f.MissingGroup),
			advice:  adviceOrphaned,
		}
	case !waits(p):
		return verdict{reason: "none", message: "the pod has a node"}
	case foreign(p):
		return verdict{reason: "none", message: "another scheduler is responsible for the pod: its spec.schedulerName is " + p.Spec.SchedulerName, advice: adviceForeignScheduler}
	case condition == nil:
		return f.notLookedAt(p.CreationTimestamp, "pod")
	}
	return verdict{condition.Reason, condition.Message, podAdvice(condition.Reason, condition.Message)}
}

// notLookedAt is the verdict on what no scheduler has written to.
func (f *Facts) notLookedAt(created metav1.Time, what string) verdict {
	if f.Now.Sub(created.Time) <= schedulingDelay {
		return verdict{reason: "none yet", message: "the scheduler has not processed the " + what + " yet"}
	}
	return verdict{reason: "none", message: "no scheduler seems to run: the " + what + " was created " + f.age(created) + " ago and has not been processed", advice: f.adviceNotProcessed()}
}

func (f *Facts) adviceNotProcessed() string {
	if f.Other != nil {
		return adviceNoneReadsIt
	}
	return adviceWithoutScheduler
}

func (f *Facts) queueText() string {
	name := "queue " + f.queueName()
	if f.Group != nil && f.Group.Spec.Queue == "" {
		name += " (by default)"
	}
	return name
}

func (f *Facts) phase() string {
	g, c := f.Group, count(f.Pods)
	phase := string(g.Status.Phase)
	switch g.Status.Phase {
	case "":
		phase = "none yet"
	case v1alpha1.PodGroupUnknown:
		phase += " (only a part of the gang runs)"
	}
	since := ""
	if f.isPending() {
		since = " for " + f.age(f.waitingSince())
	}
	line := fmt.Sprintf("%s%s: %d running, %d pending; %d must start together", phase, since, c.running, c.waiting, max(g.Spec.MinMember, 1))
	if c.succeeded+c.failed > 0 {
		line += fmt.Sprintf("; %d succeeded, %d failed", c.succeeded, c.failed)
	}
	return line
}

// isPending reports whether something of the PodGroup is still to start.
func (f *Facts) isPending() bool {
	switch f.Group.Status.Phase {
	case v1alpha1.PodGroupRunning, v1alpha1.PodGroupFinished, v1alpha1.PodGroupFailed:
		return false
	}
	_, ended := jobEnd(f)
	return !ended
}

// waitingSince is when the condition turned to false, or the group was made.
func (f *Facts) waitingSince() metav1.Time {
	condition := meta.FindStatusCondition(f.Group.Status.Conditions, v1alpha1.ConditionPodGroupScheduled)
	if condition != nil && condition.Status == metav1.ConditionFalse {
		return condition.LastTransitionTime
	}
	return f.Group.CreationTimestamp
}

func podPhase(p *corev1.Pod, now time.Time) string {
	if waits(p) {
		return "pending for " + duration.HumanDuration(now.Sub(p.CreationTimestamp.Time))
	}
	if p.Spec.NodeName == "" {
		return string(p.Status.Phase)
	}
	return string(p.Status.Phase) + " on node " + p.Spec.NodeName
}

// shares says what the queue holds of what it deserves.
func (f *Facts) shares() string {
	if f.Queue == nil {
		return ""
	}
	if shares := show.Shares(f.Queue); shares != "" {
		return f.Queue.Name + " holds " + shares
	}
	return ""
}

func (f *Facts) age(t metav1.Time) string { return duration.HumanDuration(f.Now.Sub(t.Time)) }
