// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"

	"github.com/batch-scheduler/batch-scheduler/cmd/localcluster/annotation"
)

// runsUntil is the pod condition with the end time of the pod's containers. It is written once, when they start, so
// that later changes of the pod do not restart the delay.
const runsUntil = "localcluster.batch-scheduler.dev/RunsUntil"

// The names of the functions of the stage templates.
const (
	startFunc  = "Start"
	finishFunc = "Finish"
	stopFunc   = "Stop"
)

func nodeRef() internalversion.StageResourceRef {
	return internalversion.StageResourceRef{APIGroup: "v1", Kind: "Node"}
}

func podRef() internalversion.StageResourceRef {
	return internalversion.StageResourceRef{APIGroup: "v1", Kind: "Pod"}
}

// stages returns the lifecycle of a pod. At most one stage selects a pod at any time; kwok would choose randomly
// between several.
//
// As real kubelets do, "stop" writes the final phase of a deleted pod before "delete" removes the pod. The Job
// controller waits for that phase if a Job has a podFailurePolicy.
func stages() []*internalversion.Stage {
	return []*internalversion.Stage{
		stage("start", internalversion.StageSpec{
			Selector: all(without(deletion), in(".status.phase", "Pending")),
			Steps:    patchStatus(startFunc),
		}),
		stage("finish", internalversion.StageSpec{
			Selector: all(without(deletion), in(".status.phase", "Running"), has(endMoment)),
			Delay:    from(endMoment),
			Steps:    patchStatus(finishFunc),
		}),
		stage("stop", internalversion.StageSpec{
			Selector: all(has(deletion), in(".status.phase", "Pending", "Running", "Unknown")),
			Delay:    from(`.metadata.annotations["` + annotation.TerminateAfter + `"]`),
			Steps:    patchStatus(stopFunc),
		}),
		stage("delete", internalversion.StageSpec{
			Selector: all(has(deletion), in(".status.phase", "Succeeded", "Failed")),
			Steps:    []internalversion.StageStep{{Delete: true}},
		}),
	}
}

// jq expressions for fields of a pod.
const (
	deletion  = ".metadata.deletionTimestamp"
	endMoment = `.status.conditions // [] | .[] | select(.type == "` + runsUntil + `") | .message`
)

func stage(name string, spec internalversion.StageSpec) *internalversion.Stage {
	spec.ResourceRef = podRef()
	return &internalversion.Stage{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
}

func all(expressions ...internalversion.MatchExpression) *internalversion.StageSelector {
	return &internalversion.StageSelector{MatchExpressions: expressions}
}

func has(key string) internalversion.MatchExpression {
	return match(key, internalversion.SelectorOpExists)
}

func without(key string) internalversion.MatchExpression {
	return match(key, internalversion.SelectorOpDoesNotExist)
}

func in(key string, values ...string) internalversion.MatchExpression {
	return match(key, internalversion.SelectorOpIn, values...)
}

func match(key string, operator internalversion.SelectorOperator, values ...string) internalversion.MatchExpression {
	return internalversion.MatchExpression{
		JQ: &internalversion.SelectorJQ{Key: key, Operator: operator, Values: values},
	}
}

// from delays a stage until the time, or by the duration, that the jq expression returns; no delay if it returns
// nothing.
func from(expression string) *internalversion.StageDelay {
	return &internalversion.StageDelay{DurationFrom: &internalversion.ExpressionFrom{
		JQ: &internalversion.ExpressionJQ{Expression: expression},
	}}
}

// patchStatus merges the result of the named function into the pod's status.
func patchStatus(function string) []internalversion.StageStep {
	return []internalversion.StageStep{{Patch: &internalversion.StagePatch{
		Subresource: "status",
		Template:    "{{ " + function + " . }}",
	}}}
}
