// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/test/scheduler"
)

const (
	reads  = "get list watch"
	writes = "create delete deletecollection patch update"
)

// TestWhatTheSchedulerMayDo asks the API server about every verb on every resource that there is, and compares that
// with what a scheduler does that has everything to do.
func TestWhatTheSchedulerMayDo(t *testing.T) {
	h := newHarness(t, noControllers)
	may := h.allowed("", "system:serviceaccount:"+scheduler.Namespace+":"+scheduler.Account,
		"system:serviceaccounts", "system:serviceaccounts:"+scheduler.Namespace)
	used := h.doEverything()
	want := rights{
		"csidrivers.storage.k8s.io":           reads,
		"csinodes.storage.k8s.io":             reads,
		"csistoragecapacities.storage.k8s.io": reads,
		"deviceclasses.resource.k8s.io":       reads,
		"events.events.k8s.io":                "create patch",
		"jobs.batch":                          "get",
		"leases.coordination.k8s.io [batch-scheduler] in batch-scheduler-system": "get update",
		"leases.coordination.k8s.io in batch-scheduler-system":                   "create",
		"namespaces":                            reads,
		"nodes":                                 reads,
		"persistentvolumeclaims":                "get list update watch",
		"persistentvolumes":                     "get list update watch",
		"poddisruptionbudgets.policy":           reads,
		"podgroups":                             reads,
		"podgroups/status":                      "update",
		"pods":                                  reads,
		"pods/binding":                          "create",
		"pods/eviction":                         "create",
		"pods/status":                           "patch",
		"priorityclasses.scheduling.k8s.io":     reads,
		"queues":                                reads,
		"queues/status":                         "update",
		"resourceclaims.resource.k8s.io":        "create delete get list update watch",
		"resourceclaims.resource.k8s.io/status": "update",
		"resourceslices.resource.k8s.io":        reads,
		"selfsubjectaccessreviews.authorization.k8s.io": "create", // as everybody
		"selfsubjectreviews.authentication.k8s.io":      "create", // as everybody
		"selfsubjectrulesreviews.authorization.k8s.io":  "create", // as everybody
		"storageclasses.storage.k8s.io":                 reads,
		"subjectaccessreviews.authorization.k8s.io":     "create",
		"tokenreviews.authentication.k8s.io":            "create",
		"topologies":                                    reads,
		"topologies/status":                             "update",
		"volumeattachments.storage.k8s.io":              reads,
	}
	if diff := cmp.Diff(want, may); diff != "" {
		t.Errorf("what the scheduler may do (-want +got):\n%s", diff)
	}
	for _, resource := range []string{ // binding volumes is in TestVolumes, giving devices in TestClaims
		"persistentvolumeclaims", "persistentvolumes", "resourceclaims.resource.k8s.io", "resourceclaims.resource.k8s.io/status",
	} {
		may.remove(resource, "update")
	}
	may.remove("resourceclaims.resource.k8s.io", "create", "delete") // in TestExtendedResources and TestExtendedResourcesRefused
	unused := rights{}
	for what, verbs := range may {
		resource, _, _ := strings.Cut(what, " ")
		did := used[resource]
		if strings.Contains(did, "watch") {
			did += " " + reads // a watch begins with a list, on older API servers in a request of its own; who may list may get
		}
		if rest := missing(verbs, did); rest != "" && !strings.HasPrefix(what, "selfsubject") {
			unused[what] = rest
		}
	}
	if diff := cmp.Diff(rights{
		"events.events.k8s.io": "patch", // for events that come again
		"jobs.batch":           "get",   // before pods of Jobs are evicted: TestEvictedJobsComeBack
	}, unused); diff != "" {
		t.Errorf("what it may do and never does (-want +got):\n%s", diff)
	}
}

// doEverything has a scheduler do all that it ever does, and returns what that took.
func (h *harness) doEverything() rights {
	h.t.Helper()
	listener := h.listen()
	metrics, args := h.newScraper()
	h.do(threeNodes, priorityClass("low", 1), priorityClass("high", 100), gang("low", 1, pods(12, "1cpu", priority("low"))))
	h.start(append(args, "--kubeconfig="+listener.kubeconfig, "--leader-elect=true", "--scheduler-conf="+h.file("policy.yaml", evictingPolicy))...)
	h.awaitStable(`low: Running Scheduled; 12 running`, "")
	h.do(gang("high", 1, pods(1, "1cpu", priority("high"))))
	h.awaitStable(`
		high: Running Scheduled; 1 running
		low: Running Scheduled; 11 running`, "")
	h.do(gang("confined", 1, pods(1, "1cpu"), within("rack"))) // needs topologies to be read
	h.waitNow("TopologyNotFound", "no topology exists", "confined-0")
	_, err := h.batch.SchedulingV1alpha1().Topologies().Create(h.ctx, topology("default"), metav1.CreateOptions{})
	h.must(err)
	h.topologyShows("{[{block 0 0} {rack 0 0}] 3}")
	_, err = metrics.read(h)
	h.must(err)
	h.stop()
	return listener.received()
}

// TestWhatUsersMayDo is about the roles of Kubernetes, which those of config/rbac/users.yaml are added to.
func TestWhatUsersMayDo(t *testing.T) {
	h := newHarness(t, controllers)
	for name, test := range map[string]struct {
		role  string
		where string // a namespace; empty everywhere
		want  rights
	}{
		"a viewer of a namespace": {"view", namespace, rights{"podgroups in default": reads, "podgroups/status in default": reads}},
		"an editor of a namespace": {"edit", namespace, rights{
			"podgroups in default": all(), "podgroups/status in default": reads}},
		"an administrator of a namespace": {"admin", namespace, rights{
			"podgroups in default": all(), "podgroups/status in default": reads}},
		"an editor of the cluster": {"edit", "", rights{
			"podgroups": all(), "podgroups/status": reads, "queues": reads, "queues/status": reads, "topologies": reads,
			"topologies/status": reads}},
		"an administrator of the cluster": {"admin", "", rights{
			"podgroups": all(), "podgroups/status": reads, "queues": all(), "queues/status": reads,
			"topologies": all(), "topologies/status": reads}},
	} {
		t.Run(name, func(t *testing.T) {
			user := strings.ReplaceAll(name, " ", "-")
			h.grantTo(test.role, test.where, rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user})
			var got rights
			_ = wait.PollUntilContextTimeout(h.ctx, idleCycles/10, waitTimeout/6, true, func(context.Context) (bool, error) {
				got = h.allowed(v1alpha1.GroupName, user)
				return cmp.Equal(test.want, got), nil
			})
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func all() string { return join(sets.New(strings.Fields(reads + " " + writes)...)) }

// grantTo binds a ClusterRole, in a namespace or everywhere.
func (h *harness) grantTo(role, where string, to rbacv1.Subject) {
	h.t.Helper()
	meta, ref := metav1.ObjectMeta{GenerateName: "test-"}, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	var err error
	if where == "" {
		_, err = h.client.RbacV1().ClusterRoleBindings().Create(h.ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: []rbacv1.Subject{to}}, metav1.CreateOptions{})
	} else {
		_, err = h.client.RbacV1().RoleBindings(where).Create(h.ctx, &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: []rbacv1.Subject{to}}, metav1.CreateOptions{})
	}
	h.must(err)
}

// rights are verbs by resource, and by name and namespace where they are only for those.
type rights map[string]string

func (r rights) remove(what string, verbs ...string) {
	r[what] = join(sets.New(strings.Fields(r[what])...).Delete(verbs...))
}

func join(verbs sets.Set[string]) string { return strings.Join(sets.List(verbs), " ") }

// missing returns the verbs of one list that are not in another.
func missing(from, in string) string {
	return join(sets.New(strings.Fields(from)...).Difference(sets.New(strings.Fields(in)...)))
}

// resourceName names a resource as kubectl does; those of the scheduler without their group.
func resourceName(group, resource, subresource string) string {
	if group == v1alpha1.GroupName {
		group = ""
	}
	name := schema.GroupResource{Group: group, Resource: resource}.String()
	if subresource != "" {
		name += "/" + subresource
	}
	return name
}

// places are namespaces in which a subject may have more permissions than elsewhere, and names are of what objects. Some
// resources have verbs of their own.
var (
	places     = []string{namespace, "kube-system", scheduler.Namespace}
	particular = map[string]string{
		"queues": "use", "priorityclasses": "use", "roles": "bind escalate", "clusterroles": "bind escalate",
		"serviceaccounts": "impersonate", "certificatesigningrequests": "approve sign",
	}
	names = map[string]string{"leases": "batch-scheduler", "configmaps": "extension-apiserver-authentication"}
)

// allowed asks what a user may do with the resources of a group, or of all groups if it is empty.
func (h *harness) allowed(group, user string, groups ...string) rights {
	h.t.Helper()
	_, lists, err := h.client.Discovery().ServerGroupsAndResources()
	h.must(err)
	var questions []question
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		h.must(err)
		for _, r := range list.APIResources {
			resource, subresource, _ := strings.Cut(r.Name, "/")
			for _, verb := range strings.Fields(reads + " " + writes + " " + particular[r.Name]) {
				if group == "" || group == gv.Group {
					questions = append(questions, question{authorizationv1.ResourceAttributes{Group: gv.Group, Resource: resource, Subresource: subresource, Verb: verb}, r.Namespaced})
				}
			}
		}
	}
	var mu sync.Mutex
	found := map[string]sets.Set[string]{}
	workqueue.ParallelizeUntil(h.ctx, creators, len(questions), func(i int) {
		for _, what := range h.answers(questions[i], user, append(groups, "system:authenticated")) {
			mu.Lock()
			if found[what] == nil {
				found[what] = sets.New[string]()
			}
			found[what].Insert(questions[i].Verb)
			mu.Unlock()
		}
	})
	may := rights{}
	for what, verbs := range found {
		may[what] = join(verbs)
	}
	return may
}

type question struct {
	authorizationv1.ResourceAttributes
	namespaced bool
}

// answers names the resource if the verb is allowed for all of its objects, else those for which it is.
func (h *harness) answers(q question, user string, groups []string) []string {
	what := resourceName(q.Group, q.Resource, q.Subresource)
	if h.may(q.ResourceAttributes, user, groups) {
		return []string{what}
	}
	where := []string{""}
	if q.namespaced {
		where = places
	}
	var found []string
	for _, place := range where {
		q.Namespace, q.Name = place, ""
		in := what
		switch {
		case h.may(q.ResourceAttributes, user, groups):
		case names[q.Resource] != "":
			q.Name, in = names[q.Resource], what+" ["+names[q.Resource]+"]"
			if !h.may(q.ResourceAttributes, user, groups) {
				continue
			}
		default:
			continue
		}
		if place != "" {
			in += " in " + place
		}
		found = append(found, in)
	}
	return found
}

func (h *harness) may(what authorizationv1.ResourceAttributes, user string, groups []string) bool {
	review, err := h.client.AuthorizationV1().SubjectAccessReviews().Create(h.ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{User: user, Groups: groups, ResourceAttributes: &what},
	}, metav1.CreateOptions{})
	if err != nil {
		h.t.Error(err)
		return false
	}
	return review.Status.Allowed
}
