package cache

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/cache/bind"
)

// inFlight is what was committed and is not confirmed: no object of the API server shows it, so
// Rebuild restores it into the new model from here. Each entry ends with the event that confirms or
// refutes it:
//
//	binds      the pod has a node or is deleted, BindFailed, JobBackoff, PodVanished
//	evictions  the pod is being deleted, has ended or is deleted, EvictionFailed
//	backoffs   JobRequeued
//
// It belongs to the scheduling goroutine, as the model does.
type inFlight struct {
	binds     map[types.UID]assumed
	evictions map[types.UID]struct{}
	backoffs  map[api.JobID]string // the reason for which a job backs off
}

// assumed is where a pod is to be bound.
type assumed struct {
	node       string
	commitment api.Commitment
}

func newInFlight() inFlight {
	return inFlight{binds: map[types.UID]assumed{}, evictions: map[types.UID]struct{}{}, backoffs: map[api.JobID]string{}}
}

// bind records a committed bind.
func (f *inFlight) bind(r *bind.Request) { f.binds[r.UID] = assumed{r.Node, r.Commitment} }

// evict records a committed eviction.
func (f *inFlight) evict(uid types.UID) { f.evictions[uid] = struct{}{} }

// observe ends what a pod confirms, as an informer shows it.
func (f *inFlight) observe(pod *v1.Pod) {
	if pod.Spec.NodeName != "" {
		delete(f.binds, pod.UID)
	}
	if pod.DeletionTimestamp != nil || ended(pod) {
		delete(f.evictions, pod.UID)
	}
}

// forget ends everything about a deleted pod.
func (f *inFlight) forget(uid types.UID) {
	delete(f.binds, uid)
	delete(f.evictions, uid)
}

// restore adds everything to a new model, in which all objects are.
func (f *inFlight) restore(model *api.Cluster) {
	for uid, bind := range f.binds {
		model.RestoreAssumed(api.TaskID(uid), bind.node, bind.commitment)
	}
	for uid := range f.evictions {
		if t := model.Tasks[api.TaskID(uid)]; t != nil && t.Status.Holding() { // also on a deleted node
			model.MarkEvicting(t)
		}
	}
	for job, reason := range f.backoffs {
		model.SetBackoff(job, reason)
	}
}
