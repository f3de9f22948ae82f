// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/test/scheduler"
)

// TestBasicJobsAskForNothing: with "job: basic" the scheduler asks for no Jobs and needs no role for them (IG8).
func TestBasicJobsAskForNothing(t *testing.T) {
	h := newHarness(t, controllers)
	proxy, args := h.newProxy()
	sent := &sentRequests{}
	proxy.OnRequest(sent.record)
	h.do(node("n", "3cpu"))
	h.start(append(args, h.groupingPolicy("{kinds: [job], job: basic}"))...)
	h.do(batchJob("plain", 5, "1cpu"))
	h.eventually(func() error { return h.boundOf("plain-", 3) })
	if asked := sent.with("/apis/batch"); len(asked) > 0 {
		t.Errorf("the scheduler has asked for %s", strings.Join(asked, "\n"))
	}
	if len(sent.with("/api/v1/pods")) == 0 {
		t.Error("no requests are recorded")
	}
}

// TestRoleOfOwnersRemoved: the role for JobSets is removed while pods of one wait. The JobSet that was read keeps its gang,
// also with pods that come later, and the pods of a new one wait, until the role is granted again (IG6).
func TestRoleOfOwnersRemoved(t *testing.T) {
	h := newHarness(t, noControllers)
	h.restarted = true // the log has the refusals
	h.serveOwners("JobSet")
	h.grantGrouping("jobset")
	h.do(node("n", "8cpu"))
	proxy, through := h.newProxy()
	metrics, args := h.newScraper()
	h.start(slices.Concat(through, args, []string{h.groupingPolicy("{kinds: [jobset]}")})...)
	const spec = `{replicatedJobs: [{name: workers, replicas: 1, template: {spec: {parallelism: 2}}}]}`
	before := h.owner("JobSet", "before", spec)
	h.members("before", 1, "n", before.ofJobSet("workers", "0"))
	h.eventually(func() error { return h.waits(namespace, "before-0", "NotEnoughPods", "1 of 2 pods") })

	h.must(h.client.RbacV1().ClusterRoleBindings().Delete(h.ctx, "batch-scheduler-grouping-jobset", metav1.DeleteOptions{}))
	h.eventually(h.mayNotListJobSets) // until then a new watch would be allowed
	if proxy.CutWatches() == 0 {
		t.Error("no watch goes through the proxy")
	}
	h.eventually(func() error { return h.watchFailed(metrics, "jobsets.jobset.x-k8s.io") })
	after := h.owner("JobSet", "after", spec)
	h.members("after", 2, "n", after.ofJobSet("workers", "0"))
	h.eventually(func() error {
		return errors.Join(h.waits(namespace, "after-0", "OwnerUnknown", `JobSet "after"`), h.waits(namespace, "after-1", "OwnerUnknown", `JobSet "after"`))
	})
	h.must(h.waits(namespace, "before-0", "NotEnoughPods", "1 of 2 pods"))
	h.members("before-second", 1, "n", before.ofJobSet("workers", "0"))
	h.eventually(func() error { return h.bound(namespace, "before-0", "before-second-0") })
	h.must(h.waits(namespace, "after-0", "OwnerUnknown", `JobSet "after"`))
	missing := func() error { // the log names the role
		return difference("1", strconv.Itoa(strings.Count(h.read(h.scheduler.Log), "config/grouping")))
	}
	h.eventually(missing)

	h.grantGrouping("jobset")
	h.eventually(func() error { return h.bound(namespace, "after-0", "after-1", "before-0", "before-second-0") })
	h.members("later", 1, "n", h.owner("JobSet", "later", spec).ofJobSet("workers", "0"))
	h.eventually(func() error { return h.waits(namespace, "later-0", "NotEnoughPods", "1 of 2 pods") })
	h.must(missing()) // once
}

// mayNotListJobSets returns an error if the scheduler may list JobSets.
func (h *harness) mayNotListJobSets() error {
	review, err := h.client.AuthorizationV1().SubjectAccessReviews().Create(h.ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               "system:serviceaccount:" + scheduler.Namespace + ":" + scheduler.Account,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Group: "jobset.x-k8s.io", Resource: "jobsets", Verb: "list"},
	}}, metav1.CreateOptions{})
	if err == nil && review.Status.Allowed {
		err = errors.New("the scheduler may list JobSets")
	}
	return err
}

// watchFailed returns an error unless the scheduler has counted a failure of the watch of a resource.
func (h *harness) watchFailed(metrics scraper, resource string) error {
	all, err := metrics.read(h)
	if err != nil {
		return err
	}
	if all.count("batch_scheduler_watch_errors_total", func(l map[string]string) bool { return l["resource"] == resource }) == 0 {
		return fmt.Errorf("no failure of the watch of %s is counted", resource)
	}
	return nil
}
