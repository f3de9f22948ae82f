// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/kwok/pkg/utils/lifecycle"

	"github.com/batch-scheduler/batch-scheduler/cmd/localcluster/annotation"
)

func moment() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC) }

func TestOneStageAtATime(t *testing.T) {
	until := corev1.PodCondition{Type: runsUntil, Status: corev1.ConditionTrue, Message: moment().Add(time.Minute).Format(time.RFC3339Nano)}
	for name, test := range map[string]struct {
		given podOption
		want  string // the stage and its delay
	}{
		"bound":                       {phase(corev1.PodPending), "start 0s"},
		"bound and deleted":           {having(phase(corev1.PodPending), deleted), "stop 0s"},
		"running without end":         {phase(corev1.PodRunning), ""},
		"running for a minute":        {having(phase(corev1.PodRunning), conditions(until)), "finish 1m0s"},
		"running and deleted":         {having(phase(corev1.PodRunning), conditions(until), deleted), "stop 0s"},
		"deleted with TerminateAfter": {having(phase(corev1.PodRunning), deleted, annotated(annotation.TerminateAfter, "3s")), "stop 3s"},
		"deleted and stopped":         {having(phase(corev1.PodFailed), deleted, annotated(annotation.TerminateAfter, "3s")), "delete 0s"},
		"deleted and lost":            {having(phase(corev1.PodUnknown), deleted), "stop 0s"},
		"succeeded":                   {having(phase(corev1.PodSucceeded), conditions(until)), ""},
		"failed":                      {having(phase(corev1.PodFailed), conditions(until)), ""},
		"failed and deleted":          {having(phase(corev1.PodFailed), deleted), "delete 0s"},
		"succeeded and deleted":       {having(phase(corev1.PodSucceeded), deleted), "delete 0s"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := newPod("a", test.given)
			all, err := lifecycle.NewLifecycle(stages())
			if err != nil {
				t.Fatal(err)
			}
			event := &lifecycle.Event{Labels: pod.Labels, Annotations: pod.Annotations, Data: pod}
			matched, err := all.ListAllPossible(t.Context(), event)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, stage := range matched {
				delay, _, err := stage.Delay(t.Context(), event, moment())
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, stage.Name()+" "+delay.String())
			}
			diff(t, "stages and delays", test.want, strings.Join(got, ", "))
		})
	}
}

func TestStart(t *testing.T) {
	type outcome struct {
		Phase  corev1.PodPhase
		Reason string
		Until  string // end of the containers, after the start
	}
	for name, test := range map[string]struct {
		given podOption
		want  outcome
	}{
		"runs without end":                 {having(), outcome{Phase: corev1.PodRunning}},
		"runs for a duration":              {annotated(annotation.RunFor, "90s"), outcome{Phase: corev1.PodRunning, Until: "1m30s"}},
		"ends at once":                     {annotated(annotation.RunFor, "0s"), outcome{Phase: corev1.PodRunning, Until: "0s"}},
		"a pod of a Job":                   {ownedBy("Job"), outcome{Phase: corev1.PodRunning, Until: "5s"}},
		"a pod of a Job with annotation":   {having(ownedBy("Job"), annotated(annotation.RunFor, "1h")), outcome{Phase: corev1.PodRunning, Until: "1h0m0s"}},
		"a deadline":                       {activeFor(60), outcome{Phase: corev1.PodRunning, Until: "1m0s"}},
		"a deadline before the end":        {having(annotated(annotation.RunFor, "90s"), activeFor(60)), outcome{Phase: corev1.PodRunning, Until: "1m0s"}},
		"a deadline after the end":         {having(ownedBy("Job"), activeFor(60)), outcome{Phase: corev1.PodRunning, Until: "5s"}},
		"a pod of another owner":           {ownedBy("ReplicaSet"), outcome{Phase: corev1.PodRunning}},
		"does not fit":                     {cpu("5"), outcome{Phase: corev1.PodFailed, Reason: "OutOfcpu"}},
		"a duration without unit":          {annotated(annotation.RunFor, "30"), outcome{Phase: corev1.PodFailed, Reason: "InvalidAnnotation"}},
		"a negative duration":              {annotated(annotation.TerminateAfter, "-1s"), outcome{Phase: corev1.PodFailed, Reason: "InvalidAnnotation"}},
		"an exit code of more than 8 bits": {annotated(annotation.ExitCode, "256"), outcome{Phase: corev1.PodFailed, Reason: "InvalidAnnotation"}},
	} {
		t.Run(name, func(t *testing.T) {
			pod := newPod("a", test.given)
			status := newTestLives(t).start(pod)
			got := outcome{Phase: status.Phase, Reason: status.Reason}
			for _, condition := range status.Conditions {
				if condition.Type == runsUntil {
					end, err := time.Parse(time.RFC3339Nano, condition.Message)
					if err != nil {
						t.Fatal(err)
					}
					got.Until = end.Sub(moment()).String()
				}
			}
			diff(t, "outcome", test.want, got)
		})
	}
}

func TestRunningStatus(t *testing.T) {
	pod := newPod("a", func(pod *corev1.Pod) {
		pod.Spec.InitContainers = []corev1.Container{
			{Name: "init"},
			{Name: "sidecar", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)},
		}
		pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/gate"}}
	})
	status := newTestLives(t).start(pod)

	want := []string{"PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready", "example.com/gate"}
	var got []string
	for _, condition := range status.Conditions {
		if condition.Status == corev1.ConditionTrue {
			got = append(got, string(condition.Type))
		}
	}
	diff(t, "true conditions", want, got)
	diff(t, "init containers", []string{"init ended", "sidecar runs"}, states(status.InitContainerStatuses))
	diff(t, "containers", []string{"main runs"}, states(status.ContainerStatuses))
	if status.PodIP == "" || len(status.PodIPs) != 1 || status.PodIPs[0].IP != status.PodIP {
		t.Errorf("addresses %q and %v, want the same", status.PodIP, status.PodIPs)
	}
}

func TestFinish(t *testing.T) {
	for name, test := range map[string]struct {
		given podOption
		phase corev1.PodPhase
		code  int32
	}{
		"well":             {having(), corev1.PodSucceeded, 0},
		"with exit code 0": {annotated(annotation.ExitCode, "0"), corev1.PodSucceeded, 0},
		"badly":            {annotated(annotation.ExitCode, "137"), corev1.PodFailed, 137},
		"with annotations that became invalid after the start": {annotated(annotation.ExitCode, "x"), corev1.PodSucceeded, 0},
	} {
		t.Run(name, func(t *testing.T) {
			status := newTestLives(t).finish(newPod("a", test.given))
			terminated := status.ContainerStatuses[0].State.Terminated
			if status.Phase != test.phase || terminated == nil || terminated.ExitCode != test.code {
				t.Errorf("got phase %s and %+v, want %s and code %d", status.Phase, terminated, test.phase, test.code)
			}
		})
	}
}

// TestDeadline asserts that a pod that runs for longer than its activeDeadlineSeconds fails with the reason that real
// kubelets write.
func TestDeadline(t *testing.T) {
	for name, test := range map[string]struct {
		given podOption
		want  string
	}{
		"without another end":         {activeFor(60), "Failed DeadlineExceeded 143"},
		"before another end":          {having(annotated(annotation.RunFor, "90s"), activeFor(60)), "Failed DeadlineExceeded 143"},
		"after another end":           {having(annotated(annotation.RunFor, "30s"), activeFor(60)), "Succeeded  0"},
		"with an exit code":           {having(annotated(annotation.RunFor, "90s"), annotated(annotation.ExitCode, "0"), activeFor(60)), "Failed DeadlineExceeded 143"},
		"at the same time as the end": {having(annotated(annotation.RunFor, "60s"), activeFor(60)), "Succeeded  0"},
	} {
		t.Run(name, func(t *testing.T) {
			status := newTestLives(t).finish(newPod("a", test.given))
			got := fmt.Sprint(status.Phase, " ", status.Reason, " ", status.ContainerStatuses[0].State.Terminated.ExitCode)
			diff(t, "status", test.want, got)
		})
	}
}

func TestStop(t *testing.T) {
	status := newTestLives(t).stop(newPod("a", deleted, annotated(annotation.ExitCode, "0")))
	terminated := status.ContainerStatuses[0].State.Terminated
	if status.Phase != corev1.PodFailed || terminated == nil || terminated.ExitCode != 143 {
		t.Errorf("got phase %s and %+v, want Failed and code 143", status.Phase, terminated)
	}
}

func TestPatchHasPreconditions(t *testing.T) {
	pod := newPod("a")
	pod.ResourceVersion = "7"
	generic := map[string]any{}
	data, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	if err = json.Unmarshal(data, &generic); err != nil {
		t.Fatal(err)
	}
	start, ok := newTestLives(t).functions()[startFunc].(func(any) (string, error))
	if !ok {
		t.Fatal("the function has another type")
	}
	text, err := start(generic)
	if err != nil {
		t.Fatal(err)
	}
	var got patch
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	if got.Metadata.UID != pod.UID || got.Metadata.ResourceVersion != "7" || got.Status.Phase != corev1.PodRunning {
		t.Errorf("got %s", text)
	}
}

func TestAddresses(t *testing.T) {
	seen := map[string]types.UID{}
	for i := range 1000 {
		uid := types.UID(strings.Repeat("x", i))
		got := address(uid)
		if got != address(uid) {
			t.Fatalf("pod %q has two addresses", uid)
		}
		if !strings.HasPrefix(got, "10.1") && !strings.HasPrefix(got, "10.2") {
			t.Fatalf("%s is not in 10.128.0.0/9", got)
		}
		if other, ok := seen[got]; ok {
			t.Fatalf("pods %q and %q share %s", uid, other, got)
		}
		seen[got] = uid
	}
}

func newTestLives(t *testing.T) *podLifecycle {
	t.Helper()
	return &podLifecycle{
		clock:      clocktesting.NewFakePassiveClock(moment()),
		jobRunTime: 5 * time.Second,
		admission:  newTestAdmission(t, newNode()),
	}
}

func states(statuses []corev1.ContainerStatus) []string {
	var got []string
	for _, status := range statuses {
		switch {
		case status.State.Running != nil && status.Ready:
			got = append(got, status.Name+" runs")
		case status.State.Terminated != nil:
			got = append(got, status.Name+" ended")
		}
	}
	return got
}

func having(options ...podOption) podOption {
	return func(pod *corev1.Pod) {
		for _, option := range options {
			option(pod)
		}
	}
}

func phase(phase corev1.PodPhase) podOption {
	return func(pod *corev1.Pod) { pod.Status.Phase = phase }
}

func conditions(conditions ...corev1.PodCondition) podOption {
	return func(pod *corev1.Pod) { pod.Status.Conditions = conditions }
}

func deleted(pod *corev1.Pod) {
	pod.DeletionTimestamp = ptr.To(metav1.NewTime(moment()))
}

func activeFor(seconds int64) podOption {
	return func(pod *corev1.Pod) { pod.Spec.ActiveDeadlineSeconds = ptr.To(seconds) }
}

func annotated(key, value string) podOption {
	return func(pod *corev1.Pod) { metav1.SetMetaDataAnnotation(&pod.ObjectMeta, key, value) }
}

func ownedBy(kind string) podOption {
	return func(pod *corev1.Pod) {
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: "owner", Controller: ptr.To(true)}}
	}
}
