// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// volcanoRoot is the queue above all queues of Volcano. Volcano creates it.
const volcanoRoot = "root"

func (q *queue) isVolcanoRoot() bool { return q.api == volcanoGroup && q.name == volcanoRoot }

// volcano translates a Queue of Volcano. The types are those of volcano.sh/apis, scheduling/v1beta1.
//
// weight and capability have the same meaning, except that Volcano takes 0 cpu and 0 memory in capability for no limit.
// deserved is what a queue can reclaim, and other queues can borrow: that is the guarantee of a Queue. Volcano keeps
// guarantee.resource free for the queue, while a Queue reclaims its guarantee. It is at most deserved in Volcano, so the
// guarantee of the Queue is the larger of both.
func volcano(q *queue, r *reader, _ Options) {
	spec := r.in("spec")
	q.parent = spec.text("parent")
	if q.isVolcanoRoot() {
		q.isParent = true
		for _, field := range []string{"capability", "deserved", "guarantee"} {
			if spec.has(field) {
				q.lose(spec.at(field), "there is no queue above all Queues")
			}
		}
		return // the other settings of the root have no effect in Volcano either
	}
	q.spec.Weight = max(1, spec.whole("weight", 1, 0, math.MaxUint16)) // 0 is the default in Volcano
	if capability := spec.resources("capability", q); len(capability) > 0 {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			if amount, ok := capability[name]; ok && amount.IsZero() {
				delete(capability, name)
			}
		}
		q.spec.Capability = capability
	}
	if !spec.boolean("reclaimable", true) {
		q.spec.Reclaimable = ptr.To(false)
		q.lose(spec.at("reclaimable"), "a Queue that is not reclaimable does not borrow either, and returns what the guarantee of another Queue needs")
	}
	guaranteed := spec.in("guarantee")
	guarantee := guaranteed.resources("resource", q)
	if len(guarantee) > 0 {
		q.lose(guaranteed.at("resource"), "Volcano keeps these resources free for the queue; a Queue reclaims them when it needs them")
	}
	for name, amount := range spec.resources("deserved", q) {
		if present, ok := guarantee[name]; !ok || amount.Cmp(present) > 0 {
			guarantee[name] = amount
		}
	}
	q.setGuarantee("spec.guarantee", guarantee)
	q.volcanoLosses(spec)
	q.volcanoState(r)
}

// volcanoLosses reports the settings of the spec that a Queue does not have.
func (q *queue) volcanoLosses(spec *fields) {
	if q.parent != "" && q.parent != volcanoRoot {
		q.loseParent(spec.at("parent"))
	}
	if priority := spec.whole("priority", 0, math.MinInt32, math.MaxInt32); priority != 0 {
		q.lose(spec.at("priority"), "%d has no counterpart: the Queue with the smallest part of what it deserves is first", priority)
	}
	switch strategy := spec.text("dequeueStrategy"); strategy {
	case "", "traverse": // what the scheduler does
	case "fifo":
		q.lose(spec.at("dequeueStrategy"), "fifo has no counterpart: a job that does not fit does not block the jobs behind it before starvationAfter")
	default:
		spec.fail("dequeueStrategy", "%q is not fifo or traverse", strategy)
	}
	if !spec.boolean("preemptable", true) {
		q.lose(spec.at("preemptable"), "false has no counterpart: jobs of higher priority in the same Queue can preempt")
	}
	for _, other := range []struct{ field, remedy string }{
		{"affinity", "; use node affinity in the pods"},
		{"dra", "; a Queue limits devices only as extended resources"},
		{"extendClusters", "; one scheduler serves one cluster"},
		{"type", ""},
	} {
		if spec.has(other.field) {
			q.lose(spec.at(other.field), "no counterpart%s", other.remedy)
		}
	}
}

// volcanoState reports what Volcano keeps outside of the spec.
func (q *queue) volcanoState(r *reader) {
	annotations := r.in("metadata").in("annotations")
	for _, name := range []string{"volcano.sh/hierarchy", "volcano.sh/hierarchy-weights"} {
		if annotations.has(name) {
			q.lose("metadata.annotations["+name+"]", "Queues have no tree")
		}
	}
	if state := r.in("status").text("state"); state == "Closed" || state == "Closing" {
		q.lose("status.state", "%s has no counterpart: the Queue is open; a capability of 0 cpu lets no pod with a request for cpu start", state)
	}
}

func (q *queue) loseParent(field string) {
	q.lose(field, "Queues have no tree: the weight is relative to all Queues, and no limit of %q applies", q.parent)
}
