// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/test/cluster"
	"github.com/batch-scheduler/batch-scheduler/test/scheduler"
)

// TestInstalled goes through the life of an installation, from the first object that is applied to what is left when
// it is deleted.
func TestInstalled(t *testing.T) {
	needRoot(t)
	for name, tc := range map[string]struct {
		namespace string
		install   func(*site) (uninstall func())
		first     byte // of the addresses of its pods
	}{
		"by kustomize": {scheduler.Namespace, (*site).kustomize, 10},
		"by Helm":      {"elsewhere", (*site).helm, 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, tc.namespace)
			before := s.everything()
			uninstall := tc.install(s)

			pods := s.admitted(2)
			replicas := []*container{s.run(&pods[0], address(tc.first)), s.run(&pods[1], address(tc.first+1))}
			s.answering(replicas)
			leader, standby := s.oneLeads(replicas)
			s.gangRuns("first")
			if strings.Contains(standby.log(), "Bound") {
				t.Error("the replica that does not lead has bound pods")
			}

			s.configure("actions: allocate\ntiers: [{plugins: [{name: gang}, {name: predicates}]}]\n")
			for _, replica := range replicas {
				replica.mount()
				s.awaitEvent(replica.pod, "ConfigurationReloaded")
			}

			leader.Kill()
			s.leads(standby)
			s.gangRuns("second")
			s.must(standby.Stop(waitTimeout))

			uninstall()
			s.left(before,
				"APIService v1alpha1.scheduling.batch-scheduler.dev",
				"CustomResourceDefinition podgroups.scheduling.batch-scheduler.dev",
				"CustomResourceDefinition queues.scheduling.batch-scheduler.dev",
				"CustomResourceDefinition topologies.scheduling.batch-scheduler.dev",
				"PodGroup team/first",
				"PodGroup team/second",
			)
		})
	}
}

// kustomize is "kubectl apply -k", and "kubectl delete -k".
func (s *site) kustomize() (uninstall func()) {
	s.t.Helper()
	definitions, err := cluster.Render("../../config/crd")
	s.must(err)
	objects, err := cluster.Render("../../config/default")
	s.must(err)
	s.apply(definitions)
	s.apply(objects)
	return func() { s.must(cluster.DeleteObjects(s.ctx, s.config, objects)) }
}

// helm is "helm install", an upgrade that changes nothing, and "helm uninstall", in a namespace that demands as much of pods
// as the one of config/default.
func (s *site) helm() (uninstall func()) {
	s.t.Helper()
	namespace := []*unstructured.Unstructured{{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{
		"name": s.namespace, "labels": map[string]any{"pod-security.kubernetes.io/enforce": "restricted"},
	}}}}
	s.apply(namespace)
	run := func(args ...string) {
		s.t.Helper()
		command := exec.CommandContext(s.ctx, helm, append(args, "--namespace", s.namespace)...)
		command.Env = append(os.Environ(), "KUBECONFIG="+s.kubeconfig, "HOME="+s.t.TempDir())
		if output, err := command.CombinedOutput(); err != nil {
			s.t.Fatalf("helm %q: %v\n%s", args, err, output)
		}
	}
	run("install", "batch-scheduler", "../../charts/batch-scheduler", "--create-namespace")
	run("upgrade", "batch-scheduler", "../../charts/batch-scheduler")
	return func() {
		run("uninstall", "batch-scheduler")
		s.must(cluster.DeleteObjects(s.ctx, s.config, namespace))
	}
}

// admitted returns the pods that the Deployment has, once they run. Their namespace refuses those that are not restricted.
func (s *site) admitted(n int) []corev1.Pod {
	s.t.Helper()
	var pods []corev1.Pod
	s.eventually(func() error {
		deployment, err := s.client.AppsV1().Deployments(s.namespace).Get(s.ctx, "batch-scheduler", get)
		if err != nil {
			return err
		}
		if got := deployment.Status.AvailableReplicas; got != int32(n) {
			return fmt.Errorf("%d pods are available, not %d: %s", got, n, messages(deployment))
		}
		list, err := s.client.CoreV1().Pods(s.namespace).List(s.ctx, all)
		if err == nil && len(list.Items) != n {
			err = fmt.Errorf("there are %d pods, not %d", len(list.Items), n)
		}
		pods = list.Items
		return err
	})
	s.eventually(func() error { // the budget counts them
		budget, err := s.client.PolicyV1().PodDisruptionBudgets(s.namespace).Get(s.ctx, "batch-scheduler", get)
		if err == nil && budget.Status.DisruptionsAllowed != 1 {
			err = fmt.Errorf("%d pods may be evicted at once, not 1", budget.Status.DisruptionsAllowed)
		}
		return err
	})
	return pods
}

func messages(deployment *appsv1.Deployment) string {
	var all []string
	for _, condition := range deployment.Status.Conditions {
		all = append(all, condition.Message)
	}
	return strings.Join(all, "; ")
}

// answering waits until all probes succeed.
func (s *site) answering(replicas []*container) {
	s.t.Helper()
	for _, replica := range replicas {
		spec := replica.pod.Spec.Containers[0]
		for _, probe := range []*corev1.Probe{spec.LivenessProbe, spec.ReadinessProbe} {
			s.eventually(func() error { return replica.probe(probe) })
		}
	}
}

// oneLeads waits until the replicas agree on which of them leads.
func (s *site) oneLeads(replicas []*container) (leader, standby *container) {
	s.t.Helper()
	s.eventually(func() error {
		leader, standby = nil, nil
		for _, replica := range replicas {
			switch elected, self := replica.election(); elected {
			case "":
				return fmt.Errorf("%s knows of no leader", replica.pod.Name)
			case self:
				leader = replica
			default:
				standby = replica
			}
		}
		if leader == nil || standby == nil {
			return fmt.Errorf("not exactly one of two replicas thinks that it leads")
		}
		return s.holds(leader)
	})
	return leader, standby
}

// leads waits until a replica leads.
func (s *site) leads(replica *container) {
	s.t.Helper()
	s.eventually(func() error { return s.holds(replica) })
}

// holds returns an error unless the lease is in the hands of a replica.
func (s *site) holds(replica *container) error {
	lease, err := s.client.CoordinationV1().Leases(s.namespace).Get(s.ctx, "batch-scheduler", get)
	if err != nil {
		return err
	}
	_, self := replica.election()
	if holder := ptr.Deref(lease.Spec.HolderIdentity, ""); holder != self {
		return fmt.Errorf("the lease is held by %q, not by %s", holder, self)
	}
	return nil
}

var election = regexp.MustCompile(`"Leader elected" leader="(.*)" self="(.*)"`)

// election returns who leads and who the replica itself is, by what it has logged last; nothing if it knows of no leader.
func (c *container) election() (leader, self string) {
	found := election.FindAllStringSubmatch(c.log(), -1)
	if len(found) == 0 {
		return "", ""
	}
	last := found[len(found)-1]
	return last[1], last[2]
}

// awaitEvent waits for an event about a pod.
func (s *site) awaitEvent(pod *corev1.Pod, reason string) {
	s.t.Helper()
	s.eventually(func() error {
		events, err := s.client.EventsV1().Events("").List(s.ctx, all)
		if err != nil {
			return err
		}
		for _, event := range events.Items {
			if event.Reason == reason && event.Regarding.UID == pod.UID {
				return nil
			}
		}
		return fmt.Errorf("no event %s is about pod %s", reason, pod.Name)
	})
}

// address is one of this machine that no other test uses, also of another process.
func address(n byte) string {
	id := os.Getpid()
	return net.IPv4(127, n, byte(id>>8), byte(id)).String()
}
