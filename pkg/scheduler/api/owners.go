// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// OwnerKinds are the kinds of objects that the policy lists in grouping.kinds, as a set.
type OwnerKinds uint16

// The kinds, in the order of their names in OwnerKindNames.
const (
	KindJob OwnerKinds = 1 << iota
	KindJobSet
	KindKubeflow
	KindKueue
	KindLeaderWorkerSet
	KindMPIJob
	KindRayCluster
	KindSparkApplication
	KindTrainJob
)

var ownerKindNames = [...]string{
	"job", "jobset", "kubeflow", "kueue", "leaderworkerset", "mpijob", "raycluster", "sparkapplication", "trainjob",
}

// OwnerKindNames returns the names of all kinds in the policy, sorted.
func OwnerKindNames() []string { return ownerKindNames[:] }

// OwnerKindNamed returns the kind with a name; none if there is no such kind.
func OwnerKindNamed(name string) OwnerKinds {
	if i := slices.Index(ownerKindNames[:], name); i >= 0 {
		return 1 << i
	}
	return 0
}

// Has reports whether one of the kinds is in the set.
func (k OwnerKinds) Has(kinds OwnerKinds) bool { return k&kinds != 0 }

// Grouping is the part of the policy that makes gangs of pods by their owners. The zero value makes none.
type Grouping struct {
	Kinds OwnerKinds
	// IndexedJobs makes a gang of each indexed Job whose completions equal its parallelism. It needs KindJob.
	IndexedJobs bool
}

// OwnerRules find the object that may make a pod a member of a gang, without reading it.
type OwnerRules interface {
	// OwnerOf returns the object, and false if the pod has none of a kind with a rule.
	OwnerOf(*v1.Pod) (OwnerRef, bool)
}

// OwnerKey names an object that makes gangs of its pods.
type OwnerKey struct {
	Kind      string // of the API, such as JobSet
	Namespace string
	Name      string
}

// OwnerRef is how a pod names its owner.
type OwnerRef struct {
	OwnerKey
	UID types.UID // empty if the pod does not name it
}

// Names reports whether the pod can mean the object with this UID.
func (r OwnerRef) Names(uid types.UID) bool { return r.UID == "" || r.UID == uid }

// Compare orders references.
func (r OwnerRef) Compare(o OwnerRef) int {
	for _, pair := range [...][2]string{{r.Kind, o.Kind}, {r.Namespace, o.Namespace}, {r.Name, o.Name}, {string(r.UID), string(o.UID)}} {
		if n := strings.Compare(pair[0], pair[1]); n != 0 {
			return n
		}
	}
	return 0
}

// Owner is what the scheduler keeps of an object that makes gangs of its pods. It is never modified.
type Owner struct {
	metav1.ObjectMeta // namespace, name, UID and resourceVersion
	Kind              string
	// Gangs are the gangs of the pods; the first one that selects a pod counts. A pod that none selects counts as if it had
	// no owner.
	Gangs []OwnerGang
	// Problem is why the gangs are not known although the object was read; empty if they are.
	Problem string
}

// OwnerGang is a gang that an object makes of some of its pods.
type OwnerGang struct {
	Stage string // distinguishes the gangs of one object
	// Label and Values select pods: those whose label has one of the values. All pods if Label is empty.
	Label  string
	Values []string
	// KeyLabels are labels of pods: pods with different values are in different gangs.
	KeyLabels []string
	MinMember int32
}

// Key returns the key of the object.
func (o *Owner) Key() OwnerKey { return OwnerKey{o.Kind, o.Namespace, o.Name} }

// EqualOwners reports whether two versions of an object make the same gangs.
func EqualOwners(a, b *Owner) bool {
	return a.UID == b.UID && a.Problem == b.Problem && slices.EqualFunc(a.Gangs, b.Gangs, func(x, y OwnerGang) bool {
		return x.Stage == y.Stage && x.Label == y.Label && x.MinMember == y.MinMember &&
			slices.Equal(x.Values, y.Values) && slices.Equal(x.KeyLabels, y.KeyLabels)
	})
}

// gangOf returns the gang that selects a pod, or nil.
func (o *Owner) gangOf(pod *v1.Pod) *OwnerGang {
	for i := range o.Gangs {
		if g := &o.Gangs[i]; g.Label == "" || slices.Contains(g.Values, pod.Labels[g.Label]) {
			return g
		}
	}
	return nil
}

// key returns what distinguishes the gang of a pod from others in its namespace and queue.
func (g *OwnerGang) key(owner *Owner, pod *v1.Pod) string {
	var b strings.Builder
	b.WriteString(string(owner.UID))
	b.WriteString("/")
	b.WriteString(g.Stage)
	for _, label := range g.KeyLabels {
		b.WriteString("/")
		b.WriteString(pod.Labels[label])
	}
	return b.String()
}

// Owners are the objects that make gangs of their pods, as far as the model knows them.
type Owners interface {
	OwnerRules
	// Owner returns the object that a pod names, nil if it is not known.
	Owner(OwnerRef) *Owner
	// Gone reports whether it is known that the object does not exist that the pod names.
	Gone(*v1.Pod) bool
}

// JobOwner is the object that makes a gang of the members of a job.
type JobOwner struct {
	OwnerKey
	// Unknown is set if the object was not read, so that it is not known how many pods must start together. None of them
	// is placed, and what they request does not count.
	Unknown bool
	Problem string // see Owner
}

// Missing reports whether the members of a job wait because their owner was not read; false without an owner.
func (o *JobOwner) Missing() bool { return o != nil && o.Unknown }

// ofOwner returns the job of a pod by the rule of its owner; false if no rule applies.
func (rule *MembershipRule) ofOwner(pod *v1.Pod, queue QueueID) (Membership, bool) {
	if rule.Owners == nil {
		return Membership{}, false
	}
	ref, found := rule.Owners.OwnerOf(pod)
	if !found {
		return Membership{}, false
	}
	prefix := pod.Namespace + "/" + string(queue) + "/"
	owner := rule.Owners.Owner(ref)
	switch {
	case owner == nil && rule.Owners.Gone(pod):
		return Membership{}, false
	case owner == nil || owner.Problem != "":
		unknown := &JobOwner{OwnerKey: ref.OwnerKey, Unknown: true}
		if owner != nil {
			unknown.Problem = owner.Problem
		}
		id := JobID("unknown/" + prefix + ref.Kind + "/" + ref.Name + "/" + string(ref.UID))
		return Membership{Job: id, Queue: queue, MinMember: 1, Owner: unknown}, true
	}
	gang := owner.gangOf(pod)
	if gang == nil {
		return Membership{}, false
	}
	return Membership{Job: JobID("owned/" + prefix + gang.key(owner, pod)), Queue: queue, MinMember: gang.MinMember, Owner: &JobOwner{OwnerKey: ref.OwnerKey}}, true
}
