// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/cmd/kubectl-batch/internal/explain"
	"github.com/batch-scheduler/batch-scheduler/internal/jobfailure"
	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/test/golden"
)

const (
	exceeds    = "needs 5 more pods of 8 nvidia.com/gpu, 4 of them could start now; 4/6 nodes are available: 2 without nvidia.com/gpu; would not fit the empty nodes (at most 4 of 5 pods)"
	capability = "exceeds the queue's capability: needs 80 nvidia.com/gpu, and queue research has a capability of 64"
	tooLarge   = "needs 2 more pods of 16 nvidia.com/gpu; 0/6 nodes are available: 4 Insufficient nvidia.com/gpu, 2 without nvidia.com/gpu; would not fit the empty nodes (at most 0 of 2 pods): a pod requests 16 nvidia.com/gpu, the largest suitable node has 8"

	podCapability = "exceeds the queue's capability: a pod requests 80 nvidia.com/gpu, and queue research has a capability of 64"
	cannotBorrow  = "queue research cannot borrow (spec.reclaimable is false): deserved 64 nvidia.com/gpu, allocated 60, needs 8"
	hadBorrowed   = "evicted because queue research had borrowed resources that other queues deserve; starts again only within what the queue deserves: deserved 64 nvidia.com/gpu, allocated 60, needs 8"
	insufficient  = "needs 8 more pods of 4 cpu + 1 nvidia.com/gpu, 2 of them could start now; 3/120 nodes are available: 96 Insufficient nvidia.com/gpu, 17 node(s) had untolerated taint {dedicated=infra:NoSchedule}, 4 node(s) didn't match Pod's node affinity/selector"
	gangEvicted   = "the gang (4 pods) was evicted by reclaim at 2026-01-01T11:48:00Z for vision/train (queue vision, priority 0)"
	noLevel       = `no level "rak" in topology default: block, rack; did you mean "rack"?`
	tooLong       = "its run time is limited to 4h, and queue research admits at most 1h"
	queueFull     = "queue research is full: capability 64 nvidia.com/gpu, allocated 60, needs 8"
)

// research is a queue with something in it.
func research() *v1alpha1.Queue {
	return queue("research", amounts("cpu", "60", "nvidia.com/gpu", "60"), amounts("cpu", "67500m", "nvidia.com/gpu", "64"), amounts("nvidia.com/gpu", "64"))
}

func cases() map[string]*explain.Facts {
	return map[string]*explain.Facts{
		"insufficient": facts(
			group("train", 8, "research", pending("NotEnoughResources", insufficient)),
			pods("train", 8, waiting("Unschedulable", insufficient)), research(),
			event("PodGroup", "train", 12, "NotEnoughResources", insufficient),
		),
		"nearest-node": facts(
			group("train", 8, "research", pending("NotEnoughResources", insufficient+"; nearest: node n-17 lacks 2 nvidia.com/gpu; reserved: 3 nodes, because it has been pending for more than 5m0s")),
			pods("train", 8, waiting("Unschedulable", insufficient)), research(),
		),
		"plugins": verbose(facts(
			group("train", 8, "research", pending("NotEnoughResources", insufficient), refusedBy("predicates", "resources")),
			pods("train", 8, waiting("Unschedulable", insufficient)), research(),
		)),
		"plugins-not-asked-for": facts(
			group("train", 8, "research", pending("NotEnoughResources", insufficient), refusedBy("predicates", "resources")),
			pods("train", 8, waiting("Unschedulable", insufficient)), research(),
		),
		"no-node-suits": facts(
			group("train", 1, "", pending("Unschedulable", "needs 1 more pod of 1 cpu; 0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector; nearest: node n1 has another architecture")),
			pods("train", 1, waiting("Unschedulable", "needs 1 more pod of 1 cpu; 0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector")), nil,
		),
		"exceeds-nodes": facts(
			group("train", 5, "research", pending("ExceedsClusterCapacity", exceeds)),
			pods("train", 5, waiting("Unschedulable", exceeds)), research(),
		),
		"exceeds-capability": facts(
			group("train", 8, "research", pending("ExceedsQueueCapability", capability)),
			pods("train", 8, waiting("ExceedsQueueCapability", capability)), research(),
		),
		"exceeds-each-node": facts(
			group("train", 2, "research", pending("ExceedsClusterCapacity", tooLarge)), pods("train", 2, waiting("Unschedulable", tooLarge)), research(),
		),
		"pod-exceeds-capability": facts(
			group("train", 2, "research", pending("ExceedsQueueCapability", podCapability)), pods("train", 2, waiting("ExceedsQueueCapability", podCapability)), research(),
		),
		"over-share": facts(
			group("train", 2, "research", pending("OverShare", cannotBorrow)), pods("train", 2, waiting("OverShare", cannotBorrow)), research(),
		),
		"over-share-returned": facts(
			group("train", 2, "research", pending("OverShare", hadBorrowed), evicted("True", gangEvicted)), pods("train", 2, waiting("OverShare", hadBorrowed)), research(),
		),
		"queue-full": facts(
			group("train", 8, "research", pending("QueueFull", queueFull)),
			pods("train", 8, waiting("QueueFull", queueFull)), research(),
		),
		"queue-not-found": facts(
			group("train", 2, "reserch", pending("QueueNotFound", `queue "reserch" does not exist; create it or name another queue`)),
			pods("train", 2, waiting("QueueNotFound", `queue "reserch" does not exist; create it or name another queue`)), nil,
		),
		"not-enough-pods": facts(
			group("train", 64, "research", pending("NotEnoughPods", "62 of 64 pods that must start together exist; 2 gated")),
			append(pods("train", 62, waiting("NotEnoughPods", "62 of 64 pods that must start together exist; 2 gated")),
				gated("train-62"), gated("train-63")), research(),
		),
		"no-pods": facts(
			group("train", 4, "research", pending("NotEnoughPods", "0 of 4 pods that must start together exist")), nil, research(),
		),
		"evicted": facts(
			group("train", 4, "research", pending("NotEnoughPods", "0 of 4 pods that must start together exist"), evicted("True", gangEvicted)), nil, research(),
			event("PodGroup", "train", 12, "Reclaimed", gangEvicted),
		),
		"evicted-without-controller": facts(
			group("train", 4, "research", pending("NotEnoughPods", "0 of 4 pods that must start together exist"), evicted("True", gangEvicted)), []corev1.Pod{deleted("train-0", bare)}, research(),
		),
		"evicted-job-waits": ofJob(facts(
			group("train", 8, "research", pending("NotEnoughPods", "0 of 8 pods that must start together exist"), evicted("True", gangEvicted), evictedAgo(4)), nil, research(),
		), ignoresEvictions, func(j *batchv1.Job) { j.Spec.Parallelism = ptr.To[int32](8) }),
		"evicted-indexed-job-waits": ofJob(facts(
			group("train", 8, "research", pending("NotEnoughPods", "0 of 8 pods that must start together exist"), evicted("True", gangEvicted), evictedAgo(0)), nil, research(),
		), ignoresEvictions, perIndex, func(j *batchv1.Job) { j.Spec.Parallelism = ptr.To[int32](8) }),
		"evicted-job-waits-longer": ofJob(facts(
			group("train", 4, "research", pending("NotEnoughPods", "0 of 4 pods that must start together exist"), evicted("True", gangEvicted), evictedAgo(4)), nil, research(),
		), ignoresEvictions, func(j *batchv1.Job) { j.Spec.Parallelism = ptr.To[int32](4) }),
		"evicted-job-is-late": ofJob(facts(
			group("train", 4, "research", pending("NotEnoughPods", "0 of 4 pods that must start together exist"), evicted("True", gangEvicted)), nil, research(),
		), ignoresEvictions, perIndex),
		"job-ended-by-eviction": ofJob(facts(
			group("train", 8, "research", pending("NotEnoughPods", "0 of 8 pods that must start together exist"), evicted("True", gangEvicted)), nil, research(),
		), func(j *batchv1.Job) {
			jobEnded(batchv1.JobFailed, "BackoffLimitExceeded", "Job has reached the specified backoff limit")(j)
			j.Status.Failed = 8
		}),
		"job-at-risk-for-good": ofJob(facts(
			group("train", 8, "research", scheduled, phase(v1alpha1.PodGroupRunning)), pods("train", 8, running, controlledBy("train")), research(),
		), perIndex, func(j *batchv1.Job) { j.Spec.BackoffLimitPerIndex = ptr.To[int32](0) }),
		"job-returns-late": ofJob(facts(
			group("train", 8, "research", scheduled, phase(v1alpha1.PodGroupRunning)), pods("train", 8, running, controlledBy("train")), research(),
		), ignoresEvictions),
		"without-controller": facts(
			group("train", 2, "research", scheduled, phase(v1alpha1.PodGroupRunning)), append(pods("train", 1, running), pod("train-1", running, bare)), research(),
		),
		"evicted-and-runs-again": facts(
			group("train", 2, "research", scheduled, phase(v1alpha1.PodGroupRunning), evicted("False", gangEvicted)), pods("train", 2, running), research(),
		),
		"position": facts(
			group("train", 8, "research", pending("QueueFull", queueFull)), pods("train", 8, waiting("QueueFull", queueFull)),
			ordered(research(), 12, "other/first", "team/train", "team/later"),
		),
		"starts-later": facts(
			group("train", 8, "research", pending("NotEnoughResources", insufficient), limited(14400, 7200), startsIn(70*time.Minute, 4*time.Hour)),
			pods("train", 8, waiting("Unschedulable", insufficient)), research(),
		),
		"started": facts(
			group("train", 2, "research", scheduled, phase(v1alpha1.PodGroupRunning), limited(14400, 0), startsIn(-10*time.Minute, 0)), pods("train", 2, running), research(),
		),
		"run-time-too-long": facts(
			group("train", 2, "research", pending("ExecutionTimeTooLong", tooLong), limited(14400, 0)),
			pods("train", 2, waiting("ExecutionTimeTooLong", tooLong)), research(),
		),
		"topology-not-found": facts(
			group("train", 2, "research", pending("TopologyNotFound", noLevel)), pods("train", 2, waiting("TopologyNotFound", noLevel)), research(),
		),
		"run-time-of-the-queue": facts(
			group("train", 2, "research", pending("NotEnoughResources", insufficient)), pods("train", 2, waiting("Unschedulable", insufficient)),
			admitting(research(), 3600),
		),
		"preempting": facts(
			group("train", 2, "research", pending("Preempting", "waiting for 3 evicted pods to terminate, expected by 2026-01-01T00:00:30Z")),
			pods("train", 2, waiting("Preempting", "waiting for 3 evicted pods to terminate, expected by 2026-01-01T00:00:30Z")), research(),
			event("PodGroup", "train", 12, "NotEnoughResources", "needs 2 more pods of 1 cpu; 0/3 nodes are available: 3 Insufficient cpu"),
			event("PodGroup", "train", 1, "Preempting", "3 pods evicted by preempt to free resources for this PodGroup: 2 of team/low and 1 more"),
		),
		"claims": facts(
			group("train", 2, "research", pending("ClaimsNotReady", "claim data-0 of pod train-0 is not bound to node n1")),
			pods("train", 2, waiting("ClaimsNotReady", "claim data-0 of pod train-0 is not bound to node n1")), research(),
		),
		"stale": facts(
			group("train", 8, "research", pending("GangDegraded", "only 5 of the 8 pods that must run together have been running for more than 1m0s; needs 3 more pods of 1 cpu; 0/9 nodes are available: 9 Insufficient cpu"), phase(v1alpha1.PodGroupUnknown)),
			append(pods("train", 5, running), named("train-", 5, 3, waiting("Unschedulable", "needs 3 more pods of 1 cpu; 0/9 nodes are available: 9 Insufficient cpu"))...), research(),
		),
		"members-differ": facts(
			group("train", 8, "research", pending("NotEnoughResources", insufficient)),
			append(append(pods("train", 8, waiting("Unschedulable", insufficient)),
				named("train-", 8, 56, waiting("GangPending", "not one of the 8 pods that must start together, and waiting for them: "+insufficient))...),
				foreign("train-64"), deleted("train-65"), silent("train-66")), research(),
		),
		"running": facts(
			group("train", 8, "research", scheduled, phase(v1alpha1.PodGroupRunning)),
			append(pods("train", 8, running), named("train-", 8, 2, waiting("OverShare", "queue research holds what it deserves"))...), research(),
			event("PodGroup", "train", 11, "Scheduled", "8 pods bound"),
			event("Pod", "train-0", 11, "Scheduled", "Successfully assigned team/train-0 to n-17"),
		),
		"in-one-second": facts(
			group("train", 1, "research", scheduled, phase(v1alpha1.PodGroupRunning), at(10)),
			pods("train", 1, running, createdAt(10), boundAt(10)), research(),
			eventAt("Pod", "train-0", 10, 900, "Scheduled", "Successfully assigned team/train-0 to n-17"),
			eventAt("PodGroup", "train", 10, 100, "NotEnoughResources", "needs 1 more pod of 1 cpu"),
		),
		"holds-nothing": facts(
			group("train", 1, "gpus", pending("QueueFull", queueFull)), pods("train", 1, waiting("QueueFull", queueFull)),
			holdsNothing(),
		),
		"one-surplus-pod-waits": facts(
			group("train", 1, "research", scheduled, phase(v1alpha1.PodGroupRunning)),
			append(pods("train", 1, running), named("train-", 1, 1, waiting("Unschedulable", "0/1 nodes are available: 1 Insufficient cpu"))...), research(),
		),
		"finished": facts(
			group("train", 2, "research", scheduled, phase(v1alpha1.PodGroupFinished)),
			append(pods("train", 2, succeeded), pod("train-2", failed)), research(),
		),
		"failed": facts(
			group("train", 2, "research", pending("Failed", "no pod is pending or running: 0 succeeded, 2 failed; pod train-0: DeadlineExceeded: Pod was active on the node longer than the specified deadline"), phase(v1alpha1.PodGroupFailed)),
			pods("train", 2, failed), research(),
		),
		"job-evicted": ofJob(facts(
			group("train", 8, "research", pending("NotEnoughPods", "0 of 8 pods that must start together exist")), nil, research(),
		), func(j *batchv1.Job) {
			jobEnded(batchv1.JobFailed, "BackoffLimitExceeded", "Job has reached the specified backoff limit")(j)
			j.Status.Failed = 8
		}),
		"job-failed": ofJob(facts(
			group("train", 2, "research", pending("NotEnoughPods", "0 of 2 pods that must start together exist")), nil, research(),
		), func(j *batchv1.Job) {
			jobEnded(batchv1.JobFailed, "BackoffLimitExceeded", "Job has reached the specified backoff limit")(j)
			j.Spec.PodFailurePolicy = jobfailure.IgnoreEvictions()
		}),
		"job-deadline": ofJob(facts(
			group("train", 2, "research", pending("NotEnoughPods", "0 of 2 pods that must start together exist")), nil, research(),
		), jobEnded(batchv1.JobFailed, "DeadlineExceeded", "Job was active longer than specified deadline")),
		"job-complete": ofJob(facts(
			group("train", 2, "research", pending("NotEnoughPods", "0 of 2 pods that must start together exist")), nil, research(),
		), jobEnded(batchv1.JobComplete, "CompletionsReached", "Reached expected number of succeeded pods")),
		"job-at-risk": ofJob(facts(
			group("train", 8, "research", scheduled, phase(v1alpha1.PodGroupRunning)), pods("train", 8, running, controlledBy("train")), research(),
		)),
		"job-safe": ofJob(facts(
			group("train", 8, "research", scheduled, phase(v1alpha1.PodGroupRunning)), pods("train", 8, running, controlledBy("train")), research(),
		), ignoresEvictions, perIndex),
		"time-limit": facts(
			group("train", 2, "research", scheduled, phase(v1alpha1.PodGroupRunning)), pods("train", 2, running, activeFor(36*3600)), research(),
		),
		"time-limit-of-job": ofJob(facts(
			group("train", 1, "research", pending("NotEnoughPods", "0 of 1 pods that must start together exist")), nil, research(),
		), func(j *batchv1.Job) { j.Spec.Template.Spec.ActiveDeadlineSeconds = ptr.To[int64](5400) }),
		"no-scheduler": facts(group("train", 2, "research"), pods("train", 2), research()),
		"just-made":    facts(group("train", 2, "research", aged(4)), pods("train", 2), research()),
		"at-work":      facts(group("train", 2, "research", phase(v1alpha1.PodGroupPending), aged(4)), pods("train", 2), research()),
		"changed":      facts(group("train", 2, "research", pending("QueueFull", queueFull), generation(2)), pods("train", 2, waiting("QueueFull", queueFull)), research()),
		"unread": unread(facts(group("train", 2, "research", pending("QueueFull", queueFull)), pods("train", 2, waiting("QueueFull", queueFull)), nil),
			`queue research: queues.scheduling.batch-scheduler.dev "research" is forbidden: User "ada" cannot get resource "queues" in API group "scheduling.batch-scheduler.dev" at the cluster scope`),
		"long-history":   facts(group("train", 2, "research", pending("QueueFull", queueFull)), pods("train", 2, waiting("QueueFull", queueFull)), nil, many("train", 13)...),
		"pod":            facts(nil, []corev1.Pod{pod("notebook", waiting("Unschedulable", insufficient+"; nearest: node n-17 lacks 2 nvidia.com/gpu"))}, nil),
		"pod-too-large":  facts(nil, []corev1.Pod{pod("notebook", waiting("Unschedulable", "needs 1 more pod of 64 cpu; 0/3 nodes are available: 3 Insufficient cpu; would not fit the empty nodes"))}, nil),
		"pod-no-group":   facts(nil, []corev1.Pod{pod("notebook", waiting("GroupNotFound", `PodGroup "trane" does not exist in the namespace of the pod; create it or correct the label scheduling.batch-scheduler.dev/pod-group`))}, nil),
		"pod-other-api":  facts(nil, []corev1.Pod{pod("notebook", waiting("UnsupportedPodGroupAPI", `the label scheduling.x-k8s.io/pod-group names group "train" of scheduler-plugins (scheduling.x-k8s.io), which this scheduler does not support; create a PodGroup of scheduling.batch-scheduler.dev and name it with the label scheduling.batch-scheduler.dev/pod-group`))}, nil),
		"pod-owner":      facts(nil, []corev1.Pod{pod("train-0", waiting("OwnerUnknown", `it is not known how many pods JobSet "train" starts together: it was not read yet, or the scheduler lacks the permission`))}, nil),
		"pod-running":    facts(nil, []corev1.Pod{pod("notebook", running)}, research()),
		"pod-orphaned":   orphaned(facts(nil, []corev1.Pod{pod("train-0", running, boundFor("research"))}, research()), "train"),
		"pod-foreign":    facts(nil, []corev1.Pod{foreign("notebook")}, nil),
		"pod-unlookedat": facts(nil, []corev1.Pod{pod("notebook")}, nil),
		"pod-gated":      facts(nil, []corev1.Pod{gated("notebook")}, nil),
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	for name, given := range cases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			printed(t, name, given.Text())
		})
	}
}

// TestAnswersSayWhatTextsSay compares the lines that only some answers have.
func TestAnswersSayWhatTextsSay(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for name, given := range cases() {
		answer, text := explain.NewAnswer(given), strings.Join(strings.Fields(given.Text()), " ")
		for label, value := range map[string]string{"Position": answer.Position, "Evicted": answer.Evicted, "Warning": answer.Warning} {
			seen[label] = seen[label] || value != ""
			if has := strings.Contains(text, " "+label+": "); has != (value != "") || !strings.Contains(text, value) {
				t.Errorf("%s: the answer has %s %q, the text is\n%s", name, label, value, given.Text())
			}
		}
	}
	if len(seen) != 3 || !seen["Position"] || !seen["Evicted"] || !seen["Warning"] {
		t.Errorf("some lines are in no case: %v", seen)
	}
}

// printed compares with a file of testdata, and looks for lines that are too long.
func printed(t *testing.T, name, got string) {
	t.Helper()
	for line := range strings.Lines(got) {
		command := strings.HasPrefix(strings.TrimSpace(line), "kubectl ")
		if !command && utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > 80 {
			t.Errorf("over 80 columns: %s", line)
		}
	}
	golden.Check(t, filepath.Join("testdata", name+".txt"), got)
}

// TestEveryReasonHasAdvice reads the reasons from the API's source, so that a new one cannot be forgotten.
func TestEveryReasonHasAdvice(t *testing.T) {
	t.Parallel()
	const source = "../../../../pkg/apis/scheduling/v1alpha1/wellknown.go"
	file, err := parser.ParseFile(token.NewFileSet(), source, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	reasons := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Reason") {
			return true
		}
		reason, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		reasons++
		for what, f := range map[string]*explain.Facts{
			"group": facts(group("g", 1, "", pending(reason, "m")), nil, nil),
			"pod":   facts(nil, []corev1.Pod{pod("p", waiting(reason, "m"))}, nil),
		} {
			if !strings.Contains(f.Text(), "Advice:") {
				t.Errorf("a %s that waits for %s gets no advice", what, reason)
			}
		}
		return true
	})
	if reasons < 10 {
		t.Errorf("%s has only %d reasons: are they called otherwise now?", source, reasons)
	}
}
