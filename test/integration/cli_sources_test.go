// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"regexp"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/test/cluster"
)

// TestThePluginShowsOtherGroups lists and explains PodGroups of all APIs, as a user with the role view in one namespace.
func TestThePluginShowsOtherGroups(t *testing.T) {
	h := newHarness(t, cluster.Options{ControllerManager: true, WorkloadAPI: true, FeatureGates: []string{"GangScheduling=true"}})
	ben := h.newPlugin("--as", "ben", "--as-group", "system:authenticated")
	h.grantTo("view", namespace, rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "ben"})
	h.do(nodes("n", 1, "4cpu"))
	h.do(group("own", 2))
	ben.eventuallyPrints("get podgroups", "NAME  QUEUE  PHASE  RUN  PEND  MIN  REASON  AGE\nown   -      -        0     0    2  -")
	ben.fails("get podgroups --source volcano", "the API server does not serve scheduling.volcano.sh/v1beta1")
	ben.fails("why torch", `PodGroup "torch" not found in namespace default`)

	h.applyFiles("scheduler-plugins.crd.yaml", "volcano.crd.yaml")
	plugins, volcano, native := h.schedulerPlugins(), h.otherAPI("scheduling.volcano.sh", "v1beta1", ""), h.native()
	plugins.group(namespace, "torch", `{"minMember":3}`)
	ben.eventuallyPrints("get podgroups", "Warning: the PodGroups of scheduling.x-k8s.io are not listed", "own")
	ben.fails("why torch", "other APIs could not be read")
	for _, source := range []string{"scheduler-plugins", "volcano", "native"} {
		h.grantSource(source)
	}
	h.start(h.sourcePolicy("own", "native", "scheduler-plugins", "volcano"))
	volcano.group(namespace, "ray", `{"minMember":2,"minResources":{"cpu":"9"}}`)
	volcano.group(namespace, "torch", `{"minMember":1}`)
	native.group(namespace, "train", `{"schedulingPolicy":{"gang":{"minCount":2}}}`)
	plugins.members(namespace, "torch", 2, "1cpu")
	native.members(namespace, "train", 2, "3cpu")

	ben.eventuallyPrints("get podgroups", "SOURCE", "volcano", "scheduler-plugins", "native", "own", "ExceedsClusterCapacity")
	ben.prints("get podgroups --source volcano -o name", "podgroup.scheduling.volcano.sh/ray\npodgroup.scheduling.volcano.sh/torch\n")
	ben.prints("get podgroups ray -o yaml", "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\n")
	ben.eventuallyPrints("why ray", "default/ray of Volcano (scheduling.volcano.sh)", "Reason:   ExceedsClusterCapacity", "9 cpu")
	ben.fails("why torch", "exists in more than one API: scheduler-plugins, volcano; name one of them, such as --source volcano")
	ben.eventuallyPrints("why torch --source scheduler-plugins --events", "0 running, 2 pending; 3 must start together", "Reason:   NotEnoughPods", "2 of 3 pods",
		"NotEnoughPods: 2 of 3 pods")
	ben.prints("why podgroup.scheduling.x-k8s.io/torch -o jsonpath={.source}:{.reason}", "scheduler-plugins:NotEnoughPods")
	ben.eventuallyPrints("why train", "default/train of Kubernetes (scheduling.k8s.io), in queue default", "Pending for", "2 pending", "Reason:   Unschedulable", "could start now", "at most 1 of 2 pods")
	ben.prints("why pod/train-0", "PodGroup: default/train of Kubernetes")

	changes := ben.follow("get", "podgroups", "--watch")
	changes.await(regexp.MustCompile(`torch +scheduler-plugins +- +Pending`))
	_, err := plugins.h.client.CoreV1().Pods(namespace).Create(h.ctx, plugins.member(namespace, "torch-2", "torch", "1cpu"), metav1.CreateOptions{})
	h.must(err)
	changes.await(regexp.MustCompile(`torch +scheduler-plugins +- +Running +3 `))
	changes.end()
	ben.eventuallyPrints("why torch --source scheduler-plugins", "Running: 3 running, 0 pending", "Reason:   Scheduled")
	h.eventually(func() error {
		if out, _ := h.newPlugin().run("__complete", "why", "r"); out[:min(len(out), 4)] != "ray\n" {
			return fmt.Errorf("groups are completed to:\n%s", out)
		}
		return nil
	})
}
