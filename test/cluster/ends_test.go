// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/batch-scheduler/batch-scheduler/test/cluster"
)

// testEndsOnce deletes pods at different moments after they got a node, so that kubelets stop some of them while they
// start them. Each pod takes a whole node: the kubelet reads the pods of the node before it admits one.
func testEndsOnce(t *testing.T, _ *cluster.Cluster, client kubernetes.Interface) {
	const pods = 40 // per node
	namespace := newNamespace(t, client, "ends-once")
	for n := range 8 {
		node := fmt.Sprintf("whole-%d", n)
		t.Run(node, func(t *testing.T) {
			t.Parallel()
			makeNode(t, client, node, "4", "10")
			watched, err := client.CoreV1().Pods(namespace).Watch(t.Context(), metav1.ListOptions{LabelSelector: "node=" + node})
			if err != nil {
				t.Fatal(err)
			}
			defer watched.Stop()
			over := make(chan struct{})
			go func() {
				defer close(over)
				checkPhases(t, watched, pods)
			}()
			for i := range pods {
				pod := newPod(fmt.Sprintf("%s-%d", node, i), node, corev1.ResourceList{"cpu": resource.MustParse("4")})
				pod.Labels = map[string]string{"node": node}
				create(t, client, namespace, pod)
				time.Sleep(time.Duration(i%20) * time.Millisecond)
				remove(t, client, namespace, pod.Name)
			}
			<-over
		})
	}
}

// checkPhases checks that no pod leaves its final phase, until so many pods are gone or the watch ends.
func checkPhases(t *testing.T, watched watch.Interface, pods int) {
	t.Helper()
	failed := map[string]bool{}
	for e := range watched.ResultChan() {
		pod, ok := e.Object.(*corev1.Pod)
		if !ok {
			t.Errorf("got %v", e.Object)
			return
		}
		now := pod.Status.Phase == corev1.PodFailed
		if failed[pod.Name] && !now {
			t.Errorf("%s has failed and is %s again", pod.Name, pod.Status.Phase)
		}
		failed[pod.Name] = now
		if e.Type == watch.Deleted {
			if pods--; pods == 0 {
				return
			}
		}
	}
}
