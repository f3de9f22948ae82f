// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/cmd/localcluster/annotation"
	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// What pods can be besides their request.

func priority(class string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.PriorityClassName = class }
}

func hostPort(port int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: port, HostPort: port}}
	}
}

func label(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels[key] = value }
}

func gated(p *corev1.Pod) {
	p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "test/gate"}}
}

// lingering keeps a deleted pod running, with the resources that it uses, until release.
func lingering(p *corev1.Pod) { p.Annotations[annotation.TerminateAfter] = "1h" }

// onNode has a pod run on a node without any scheduler.
func onNode(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeName, p.Spec.SchedulerName = name, "other-scheduler" }
}

// requireOn is required node affinity by name.
func requireOn(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{nodeNamed(name)},
			},
		}}
	}
}

// preferOn is preferred node affinity by name.
func preferOn(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
				Weight: 100, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
					{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{name}},
				}},
			}},
		}}
	}
}

func nodeNamed(name string) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{
		{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{name}},
	}}
}

// requireWith is required pod affinity: to be on a node with a pod of the job.
func requireWith(job string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{sameNodeAs(job)},
		}}
	}
}

// preferWith is preferred pod affinity.
func preferWith(job string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
				{Weight: 100, PodAffinityTerm: sameNodeAs(job)},
			},
		}}
	}
}

// avoid is required pod anti-affinity.
func avoid(job string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{sameNodeAs(job)},
		}}
	}
}

func sameNodeAs(job string) corev1.PodAffinityTerm {
	return corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: selector(job)}
}

// evenly spreads the pods of the job over the domains of the key.
func evenly(key, job string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selector(job),
		}}
	}
}

func selector(job string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{jobLabel: job}}
}

// What makes pods.

// replicaSet is a ReplicaSet of count pods.
func replicaSet(name string, count int32, request string, edits ...func(*corev1.Pod)) row {
	return func(h *harness) {
		_, err := h.client.AppsV1().ReplicaSets(namespace).Create(h.ctx, &appsv1.ReplicaSet{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       appsv1.ReplicaSetSpec{Replicas: &count, Selector: selector(name), Template: template(name, request, edits...)},
		}, metav1.CreateOptions{})
		h.must(err)
	}
}

func deployment(name string, count int32, request string, edits ...func(*corev1.Pod)) row {
	return func(h *harness) {
		_, err := h.client.AppsV1().Deployments(namespace).Create(h.ctx, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       appsv1.DeploymentSpec{Replicas: &count, Selector: selector(name), Template: template(name, request, edits...)},
		}, metav1.CreateOptions{})
		h.must(err)
	}
}

func batchJob(name string, count int32, request string, edits ...func(*corev1.Pod)) row {
	return func(h *harness) {
		t := template(name, request, edits...)
		t.Spec.RestartPolicy = corev1.RestartPolicyNever
		_, err := h.client.BatchV1().Jobs(namespace).Create(h.ctx, &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       batchv1.JobSpec{Parallelism: &count, Completions: &count, Template: t},
		}, metav1.CreateOptions{})
		h.must(err)
	}
}

// byDefaultScheduler leaves a pod to the scheduler of Kubernetes.
func byDefaultScheduler(p *corev1.Pod) { p.Spec.SchedulerName = corev1.DefaultSchedulerName }

func template(job, request string, edits ...func(*corev1.Pod)) corev1.PodTemplateSpec {
	pod := newPod("", request, edits...)
	pod.Labels[jobLabel] = job
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels, Annotations: pod.Annotations},
		Spec:       pod.Spec,
	}
}

// What happens later.

// noReplicaSet deletes a ReplicaSet; its pods follow.
func noReplicaSet(name string) row {
	return func(h *harness) { h.must(h.client.AppsV1().ReplicaSets(namespace).Delete(h.ctx, name, background)) }
}

func noDeployment(name string) row {
	return func(h *harness) { h.must(h.client.AppsV1().Deployments(namespace).Delete(h.ctx, name, background)) }
}

func noBatchJob(name string) row {
	return func(h *harness) { h.must(h.client.BatchV1().Jobs(namespace).Delete(h.ctx, name, background)) }
}

var background = metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}

// noGroup deletes a PodGroup and leaves its pods.
func noGroup(name string) row {
	return func(h *harness) {
		h.must(h.batch.SchedulingV1alpha1().PodGroups(namespace).Delete(h.ctx, name, metav1.DeleteOptions{}))
	}
}

// noPods deletes the pods of a job.
func noPods(job string) row {
	return func(h *harness) {
		h.ofJob(job, func(name string) error {
			err := h.client.CoreV1().Pods(namespace).Delete(h.ctx, name, metav1.DeleteOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		})
	}
}

// ungate lifts all gates of the pods of a job.
func ungate(job string) row { return patchPods(job, `{"spec":{"schedulingGates":null}}`) }

// release ends the lingering pods of a job.
func release(job string) row {
	return func(h *harness) { h.ofJob(job, h.terminate) }
}

// terminate removes a pod at once, as a kubelet does when its containers have ended.
func (h *harness) terminate(pod string) error {
	return h.client.CoreV1().Pods(namespace).Delete(h.ctx, pod, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})
}

// regroup labels the pods of a job as members of another group.
func regroup(job, group string) row {
	return patchPods(job, fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, v1alpha1.LabelPodGroup, group))
}

func patchPods(job, patch string) row {
	return func(h *harness) {
		h.ofJob(job, func(name string) error {
			_, err := h.client.CoreV1().Pods(namespace).Patch(h.ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
			return err
		})
	}
}

// ofJob calls f for each pod of a job.
func (h *harness) ofJob(job string, f func(name string) error) {
	h.t.Helper()
	list, err := h.client.CoreV1().Pods(namespace).List(h.ctx, metav1.ListOptions{LabelSelector: jobLabel + "=" + job})
	h.must(err)
	h.each(len(list.Items), func(i int) error { return f(list.Items[i].Name) })
}
