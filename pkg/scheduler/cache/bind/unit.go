// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package bind

import (
	"time"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// Unit is the binds of one statement. The binder sends them without binds of other units in
// between, and sends all of them once it has sent the first. Its exported fields do not change
// after Enqueue.
type Unit struct {
	Job      api.JobID
	PodGroup *v1.ObjectReference // nil for a job without PodGroup
	Requests []*Request          // at least one; see Add

	// StartsGang is set if the gang did not have its minimum of members before this unit.
	StartsGang bool
	// Created is when the last of the pods or the PodGroup was created.
	Created time.Time

	followers []*Unit // guarded by Binder.mu: units that wait until this one is prepared

	sent, finished, bound int // guarded by Binder.mu: how many requests are
}

// Add appends a bind to the unit.
func (u *Unit) Add(r *Request) {
	r.unit = u
	u.Requests = append(u.Requests, r)
	u.CreatedAt(r.Created)
}

// CreatedAt moves Created forward to the creation of another object that the unit needs.
func (u *Unit) CreatedAt(t time.Time) {
	if t.After(u.Created) {
		u.Created = t
	}
}

func (u *Unit) hasExternal() bool {
	for _, r := range u.Requests {
		if len(r.External) > 0 {
			return true
		}
	}
	return false
}

// Request is one bind. Its exported fields do not change after Enqueue.
type Request struct {
	Namespace, Name string
	UID             types.UID
	Node            string
	Commitment      api.Commitment // written to the pod as annotations
	Created         time.Time      // the creation of the pod

	// External are reservations to commit before the bind, and to release if there is none.
	External []api.ExternalReservation

	unit *Unit
	// err is the error of the last attempt.
	err error
	// checked is set once the back-off after err is over and the pod may be read for the last time.
	checked bool
}

// binding returns the body of the request.
func (r *Request) binding() *v1.Binding {
	return &v1.Binding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.Namespace, Name: r.Name, UID: r.UID,
			Annotations: map[string]string{
				v1alpha1.AnnotationQueue:       string(r.Commitment.Queue),
				v1alpha1.AnnotationPodGroupUID: string(r.Commitment.GroupUID),
			},
		},
		Target: v1.ObjectReference{Kind: "Node", Name: r.Node},
	}
}

func (r *Request) reference() v1.ObjectReference {
	return v1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: r.Namespace, Name: r.Name, UID: r.UID}
}

func (r *Request) releaseExternal() {
	for _, reservation := range r.External {
		reservation.Release()
	}
}

// logger returns log with the pod and its node.
func (r *Request) logger(log logr.Logger) logr.Logger {
	return log.WithValues("pod", klog.KRef(r.Namespace, r.Name), "node", klog.KRef("", r.Node))
}
