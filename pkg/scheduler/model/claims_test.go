// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/audit"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

const gpus = "example.com/gpu"

// claiming adds a resource claim to the pod.
func claiming(claim string) podChange {
	return func(p *v1.Pod) {
		p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, v1.PodResourceClaim{Name: claim, ResourceClaimName: &claim})
	}
}

// setDeviceClaim creates or changes a claim, or deletes it.
func (m *machine) setDeviceClaim(t *rapid.T) {
	key := "ns/" + one(t, "claim", "c0", "c1")
	var claim *api.DeviceClaim
	if !maybe(t, "deleted") {
		claim = &api.DeviceClaim{Required: amountsOf(gpus, one(t, "required", "1", "2")), Counted: amountsOf(gpus, one(t, "counted", "2", "3"))}
		for _, name := range []string{"p0.0", "p1.0", "p2.1"} {
			if maybe(t, "for "+name) {
				claim.Consumers = append(claim.Consumers, api.TaskID(name))
			}
		}
	}
	m.claims[key] = claim
	m.event(func() { m.c.Events().SetDeviceClaim(key, claim) })
}

// later makes the pod a second younger than others.
func later(p *v1.Pod) { p.CreationTimestamp = metav1.NewTime(dawn.Add(time.Second)) }

// devicesOf is a claim for devices, reserved for some pods.
func devicesOf(count int64, consumers ...api.TaskID) *api.DeviceClaim {
	list := v1.ResourceList{gpus: *resource.NewQuantity(count, resource.DecimalSI)}
	return &api.DeviceClaim{Required: list, Counted: list, Consumers: consumers}
}

// TestDevicesOfClaims: the devices of a claim count once, for one of the pods that share it.
func TestDevicesOfClaims(t *testing.T) {
	type counts struct{ Node, A, B int64 } // held on the node; held and requested in the queues
	shared := func(e model.Events) {
		e.SetPod(aPod("a", claiming("c"), withLabel("scheduling.batch-scheduler.dev/queue", "a")))
		e.SetPod(aPod("b", claiming("c"), withLabel("scheduling.batch-scheduler.dev/queue", "b"), later))
	}
	for name, tc := range map[string]struct {
		when []func(model.Events)
		want counts
	}{
		"a claim that is shown before its pod": {
			[]func(model.Events){func(e model.Events) { e.SetDeviceClaim("ns/c", devicesOf(4)) }, shared}, counts{A: 4},
		},
		"a claim that is shown after its pods counts for the first": {
			[]func(model.Events){shared, func(e model.Events) { e.SetDeviceClaim("ns/c", devicesOf(4)) }}, counts{A: 4},
		},
		"a claim that is reserved counts for the pod that it is reserved for": {
			[]func(model.Events){shared, func(e model.Events) { e.SetDeviceClaim("ns/c", devicesOf(4, "uid-b")) }}, counts{B: 4},
		},
		"a claim counts for the next pod when the first has ended": {
			[]func(model.Events){shared, func(e model.Events) {
				e.SetDeviceClaim("ns/c", devicesOf(4))
				e.SetPod(aPod("a", claiming("c"), withLabel("scheduling.batch-scheduler.dev/queue", "a"), on("n"), inPhase(v1.PodSucceeded)))
			}}, counts{B: 4},
		},
		"a claim counts for the next pod when the first is deleted": {
			[]func(model.Events){shared, func(e model.Events) {
				e.SetDeviceClaim("ns/c", devicesOf(4))
				e.DeletePod("uid-a")
			}}, counts{B: 4},
		},
		"the devices of a pod on a node": {
			[]func(model.Events){shared, func(e model.Events) {
				e.SetDeviceClaim("ns/c", devicesOf(4, "uid-a"))
				e.SetPod(aPod("a", claiming("c"), withLabel("scheduling.batch-scheduler.dev/queue", "a"), on("n")))
			}}, counts{Node: 4, A: 4},
		},
		"another number of devices": {
			[]func(model.Events){shared, func(e model.Events) {
				e.SetDeviceClaim("ns/c", devicesOf(4))
				e.SetDeviceClaim("ns/c", devicesOf(6))
			}}, counts{A: 6},
		},
		"a claim that is deleted": {
			[]func(model.Events){shared, func(e model.Events) {
				e.SetDeviceClaim("ns/c", devicesOf(4))
				e.SetDeviceClaim("ns/c", nil)
			}}, counts{},
		},
		"devices that no node must have count in the queue alone": {
			[]func(model.Events){shared, func(e model.Events) {
				e.SetDeviceClaim("ns/c", &api.DeviceClaim{Counted: devicesOf(4).Counted, Consumers: []api.TaskID{"uid-a"}})
				e.SetPod(aPod("a", claiming("c"), withLabel("scheduling.batch-scheduler.dev/queue", "a"), on("n")))
			}}, counts{A: 4},
		},
		"a pod outside of all queues holds devices of the node": {
			[]func(model.Events){func(e model.Events) {
				e.SetPod(aPod("a", claiming("c"), foreign, on("n")))
				e.SetDeviceClaim("ns/c", devicesOf(4, "uid-a"))
			}}, counts{Node: 4},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newTestCluster()
			for _, name := range []string{"default", "a", "b"} {
				c.Events().SetQueue(aQueue(name))
			}
			c.Events().SetNode(aNode("n"))
			c.Events().SetDevices("n", amountsOf(gpus, "8"))
			for _, event := range tc.when {
				event(c.Events())
				c.Events().Recompute()
				if err := audit.Model(c); err != nil {
					t.Fatal(err)
				}
			}
			d, n := c.Dims().Index(gpus), c.Node("n")
			sum := func(q api.QueueID) int64 { return c.Queues()[q].Allocated.At(d) + c.Queues()[q].Requested.At(d) }
			got := counts{n.Allocatable.At(d) - n.Idle.At(d), sum("a"), sum("b")}
			if got != tc.want {
				t.Errorf("%+v, want %+v", got, tc.want)
			}
		})
	}
}
