// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/client/clientset/versioned"
	"github.com/batch-scheduler/batch-scheduler/test/cluster"
	"github.com/batch-scheduler/batch-scheduler/test/scheduler"
)

// waitTimeout bounds every wait. A lease runs out after 15 seconds.
const waitTimeout = 90 * time.Second

// team is the namespace of users.
const team = "team"

var (
	get = metav1.GetOptions{}
	all = metav1.ListOptions{}
)

// site is a cluster of its own for one test, with two nodes.
type site struct {
	t      *testing.T
	ctx    context.Context
	config *rest.Config // an administrator's
	client kubernetes.Interface
	batch  versioned.Interface

	kubeconfig string // the administrator's
	namespace  string // of the scheduler
}

func newSite(t *testing.T, namespace string) *site {
	t.Helper()
	s := &site{t: t, ctx: t.Context(), namespace: namespace}
	c, err := cluster.Start(s.ctx, cluster.Options{Nodes: 2, ControllerManager: true, KubeScheduler: true})
	s.must(err)
	t.Cleanup(func() {
		if err = c.Stop(); err != nil {
			t.Errorf("stopping the cluster: %v", err)
		}
	})
	s.config, s.kubeconfig = c.RESTConfig(), c.Kubeconfig
	s.client, err = kubernetes.NewForConfig(s.config)
	s.must(err)
	s.batch, err = versioned.NewForConfig(s.config)
	s.must(err)
	_, err = s.client.CoreV1().Namespaces().Create(s.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: team}}, metav1.CreateOptions{})
	s.must(err)
	s.eventually(func() error { // pods need it
		_, err := s.client.CoreV1().ServiceAccounts(team).Get(s.ctx, "default", get)
		return err
	})
	return s
}

func (s *site) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// eventually waits until there is no objection.
func (s *site) eventually(what func() error) {
	s.t.Helper()
	var objection error
	err := wait.PollUntilContextTimeout(s.ctx, 50*time.Millisecond, waitTimeout, true, func(context.Context) (bool, error) {
		objection = what()
		return objection == nil, nil
	})
	if err != nil {
		s.t.Fatalf("%v: %v", err, objection)
	}
}

func (s *site) apply(objects []*unstructured.Unstructured) {
	s.t.Helper()
	s.must(cluster.ApplyObjects(s.ctx, s.config, objects))
}

// gangRuns submits a gang of two pods and waits until it runs.
func (s *site) gangRuns(name string) {
	s.t.Helper()
	_, err := s.batch.SchedulingV1alpha1().PodGroups(team).Create(s.ctx, &v1alpha1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.PodGroupSpec{MinMember: 2},
	}, metav1.CreateOptions{})
	s.must(err)
	for i := range 2 {
		_, err := s.client.CoreV1().Pods(team).Create(s.ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", name, i), Labels: map[string]string{v1alpha1.LabelPodGroup: name}},
			Spec: corev1.PodSpec{
				SchedulerName: scheduler.Name,
				Containers: []corev1.Container{{Name: "main", Image: "busybox", Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
				}}},
			},
		}, metav1.CreateOptions{})
		s.must(err)
	}
	s.eventually(func() error {
		group, err := s.batch.SchedulingV1alpha1().PodGroups(team).Get(s.ctx, name, get)
		if err == nil && group.Status.Running != 2 {
			err = fmt.Errorf("group %s does not run: %+v", name, group.Status)
		}
		return err
	})
}

// configure changes the policy in the ConfigMap.
func (s *site) configure(policy string) {
	s.t.Helper()
	configMaps := s.client.CoreV1().ConfigMaps(s.namespace)
	configMap, err := configMaps.Get(s.ctx, "batch-scheduler", get)
	s.must(err)
	configMap.Data["scheduler.yaml"] = policy
	_, err = configMaps.Update(s.ctx, configMap, metav1.UpdateOptions{})
	s.must(err)
}

// left waits until there is nothing that was not there before, but for the wanted.
func (s *site) left(before []string, want ...string) {
	s.t.Helper()
	s.eventually(func() error {
		got := slices.DeleteFunc(s.everything(), func(name string) bool { return slices.Contains(before, name) })
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("what is left (-want +got):\n%s", diff)
		}
		return nil
	})
}

// everything lists the objects of all kinds, but for what comes and goes by itself: events, pods of users, and what
// Kubernetes has for itself.
func (s *site) everything() []string {
	s.t.Helper()
	client, err := metadata.NewForConfig(s.config)
	s.must(err)
	lists, err := s.client.Discovery().ServerPreferredResources()
	s.must(err)
	var found []string
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists) {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		s.must(err)
		for _, kind := range list.APIResources {
			objects, err := client.Resource(gv.WithResource(kind.Name)).List(s.ctx, all)
			s.must(err)
			for _, object := range objects.Items {
				if kind.Name == "events" || kind.Name == "pods" && object.Namespace == team || strings.HasPrefix(object.Namespace, "kube-") || strings.HasPrefix(object.Name, "system:") {
					continue
				}
				name := object.Name
				if object.Namespace != "" {
					name = object.Namespace + "/" + name
				}
				found = append(found, kind.Kind+" "+name)
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}
