// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/client-go/informers"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/internal/devices"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

// claims are the resource claims of a simulation. Only deallocations change them: the allocations of pods that are bound
// stay reservations.
type claims struct {
	informer *staticInformer
	counted  *devices.Claims
}

func newClaims(factory informers.SharedInformerFactory, sink devices.ClaimSink) claims {
	c := claims{counted: devices.NewClaims(factory, sink)}
	c.informer, _ = factory.Resource().V1().ResourceClaims().Informer().(*staticInformer)
	c.counted.ClassesChanged()
	return c
}

// podGone deallocates the claims that no other pod uses.
func (c *claims) podGone(pod *v1.Pod) {
	for _, key := range model.ClaimsOf(pod) {
		obj, _, _ := c.informer.indexer.GetByKey(key) // fails for a key that is no string
		before, ok := obj.(*resourcev1.ResourceClaim)
		if !ok || before.Status.Allocation == nil {
			continue
		}
		after := before.DeepCopy()
		after.Status.ReservedFor = slices.DeleteFunc(after.Status.ReservedFor, func(consumer resourcev1.ResourceClaimConsumerReference) bool {
			return consumer.UID == pod.UID
		})
		if len(after.Status.ReservedFor) == 0 {
			after.Status.Allocation, after.Status.Devices = nil, nil
		}
		c.informer.replace(before, after)
		c.counted.ClaimChanged(before, after)
	}
}
