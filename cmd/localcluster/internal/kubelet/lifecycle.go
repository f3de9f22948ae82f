// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/netip"
	"strconv"
	"text/template"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/batch-scheduler/batch-scheduler/cmd/localcluster/annotation"
)

// terminatedBySIGTERM is the exit code of a container that SIGTERM ends.
const terminatedBySIGTERM = 128 + 15

// podLifecycle computes the status of pods.
type podLifecycle struct {
	clock      clock.PassiveClock
	jobRunTime time.Duration
	admission  *admission
}

// patch is merged into a pod. With the UID the API server rejects it if another pod has the name meanwhile, with the
// resource version if the pod has changed; see guardedClient.
type patch struct {
	Metadata patchMeta        `json:"metadata"`
	Status   corev1.PodStatus `json:"status"`
}

type patchMeta struct {
	UID             types.UID `json:"uid"`
	ResourceVersion string    `json:"resourceVersion,omitempty"`
}

// behaviour is the content of a pod's annotations.
type behaviour struct {
	ends     bool // without deletion
	runFor   time.Duration
	exitCode int32
	exceeds  bool // the pod ends by its activeDeadlineSeconds
}

// functions returns the functions of the stage templates. Their argument is a pod as generic JSON, their result a
// patch as JSON. kwok does not retry a template that fails, so these functions fail only for objects that are not
// pods.
func (l *podLifecycle) functions() template.FuncMap {
	return template.FuncMap{
		startFunc:  l.change(l.start),
		finishFunc: l.change(l.finish),
		stopFunc:   l.change(l.stop),
	}
}

func (l *podLifecycle) change(status func(*corev1.Pod) corev1.PodStatus) func(any) (string, error) {
	return func(generic any) (string, error) {
		data, err := json.Marshal(generic)
		if err != nil {
			return "", fmt.Errorf("encoding a pod: %w", err)
		}
		var pod corev1.Pod
		if err = json.Unmarshal(data, &pod); err != nil {
			return "", fmt.Errorf("decoding a pod: %w", err)
		}
		data, err = json.Marshal(patch{Metadata: patchMeta{pod.UID, pod.ResourceVersion}, Status: status(&pod)})
		if err != nil {
			return "", fmt.Errorf("encoding the status of a pod: %w", err)
		}
		return string(data), nil
	}
}

// start admits a pod to its node and returns the status of a running or of a rejected pod.
func (l *podLifecycle) start(pod *corev1.Pod) corev1.PodStatus {
	now := metav1.NewTime(l.clock.Now())
	behaviour, err := l.behaviour(pod)
	if err != nil {
		return rejected(now, Verdict{Reason: "InvalidAnnotation", Message: err.Error()})
	}
	if verdict := l.admission.admit(pod); !verdict.Admitted {
		return rejected(now, verdict)
	}
	return running(pod, now, behaviour)
}

// finish returns the status of a pod whose containers have ended.
func (l *podLifecycle) finish(pod *corev1.Pod) corev1.PodStatus {
	behaviour, err := l.behaviour(pod)
	if err != nil {
		behaviour.exitCode = 0 // the annotations were valid when the pod started
	}
	if behaviour.exceeds {
		return exceeded(pod, metav1.NewTime(l.clock.Now()))
	}
	return finished(pod, metav1.NewTime(l.clock.Now()), behaviour.exitCode)
}

// stop returns the status of a pod whose containers have ended because the pod was deleted.
func (l *podLifecycle) stop(pod *corev1.Pod) corev1.PodStatus {
	return finished(pod, metav1.NewTime(l.clock.Now()), terminatedBySIGTERM)
}

func (l *podLifecycle) behaviour(pod *corev1.Pod) (behaviour, error) {
	var b behaviour
	if controller := metav1.GetControllerOf(pod); controller != nil && controller.Kind == "Job" {
		b.ends, b.runFor = true, l.jobRunTime
	}
	if value, ok := pod.Annotations[annotation.RunFor]; ok {
		runFor, err := duration(annotation.RunFor, value)
		if err != nil {
			return b, err
		}
		b.ends, b.runFor = true, runFor
	}
	if seconds := pod.Spec.ActiveDeadlineSeconds; seconds != nil {
		if deadline := time.Duration(*seconds) * time.Second; !b.ends || b.runFor > deadline {
			b.ends, b.runFor, b.exceeds = true, deadline, true
		}
	}
	if value, ok := pod.Annotations[annotation.TerminateAfter]; ok {
		if _, err := duration(annotation.TerminateAfter, value); err != nil {
			return b, err
		}
	}
	if value, ok := pod.Annotations[annotation.ExitCode]; ok {
		code, err := strconv.ParseUint(value, 10, 8)
		if err != nil {
			return b, fmt.Errorf("annotation %s: %q is not an exit code from 0 to 255", annotation.ExitCode, value)
		}
		b.exitCode = int32(code)
	}
	return b, nil
}

func duration(name, value string) (time.Duration, error) {
	d, err := time.ParseDuration(value)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("annotation %s: %q is not a duration such as 30s", name, value)
	}
	return d, nil
}

// address returns a pod's address, which depends only on its UID.
func address(uid types.UID) string {
	h := fnv.New32a()
	h.Write([]byte(uid)) // never fails
	sum := h.Sum32()
	return netip.AddrFrom4([4]byte{10, 128 | byte(sum>>16)&0x7f, byte(sum >> 8), byte(sum)}).String()
}
