// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"reflect"
	"slices"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	resourcelisters "k8s.io/client-go/listers/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// ClaimSink receives what Claims finds out. The calls are serialized.
type ClaimSink interface {
	// SetDeviceClaim sets what a claim namespace/name requests; nil if it does not exist or requests nothing that counts.
	SetDeviceClaim(key string, claim *api.DeviceClaim)
}

// Claims counts the devices that resource claims request, by extended resource, as an Inventory counts those of nodes.
// Devices of a class count in the extended resource that the class names, or else in the implicit resource of the class.
// Requests of a class that does not exist do not count: nothing can be allocated for them.
//
// Claims does nothing while there are no claims. Its functions may be called concurrently.
type Claims struct {
	classes resourcelisters.DeviceClassLister
	claims  resourcelisters.ResourceClaimLister
	sink    ClaimSink

	mu    sync.Mutex
	names map[string]v1.ResourceName // by class; filled when a claim asks
	sent  map[string]*api.DeviceClaim
}

// NewClaims returns Claims that read the listers of a factory. The caller reports changes.
func NewClaims(factory informers.SharedInformerFactory, sink ClaimSink) *Claims {
	resources := factory.Resource().V1()
	return &Claims{
		classes: resources.DeviceClasses().Lister(), claims: resources.ResourceClaims().Lister(), sink: sink,
		names: map[string]v1.ResourceName{}, sent: map[string]*api.DeviceClaim{},
	}
}

// ClaimChanged reports a change of a claim: before is nil for a new one, after for a deleted one.
func (c *Claims) ClaimChanged(before, after *resourcev1.ResourceClaim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if after != nil {
		c.send(keyOf(after), c.read(after))
	} else {
		c.send(keyOf(before), nil)
	}
}

// ClassesChanged reports that the lister shows other classes than before.
func (c *Claims) ClassesChanged() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.names)
	list, err := c.claims.List(labels.Everything())
	if err != nil {
		return
	}
	slices.SortFunc(list, func(a, b *resourcev1.ResourceClaim) int { return strings.Compare(keyOf(a), keyOf(b)) })
	for _, claim := range list {
		c.send(keyOf(claim), c.read(claim))
	}
}

func keyOf(claim *resourcev1.ResourceClaim) string { return claim.Namespace + "/" + claim.Name }

func (c *Claims) send(key string, claim *api.DeviceClaim) {
	if reflect.DeepEqual(c.sent[key], claim) {
		return
	}
	if claim == nil {
		delete(c.sent, key)
	} else {
		c.sent[key] = claim
	}
	c.sink.SetDeviceClaim(key, claim)
}

// resourceOf returns the resource in which devices of a class count; empty if the class does not exist.
func (c *Claims) resourceOf(class string) v1.ResourceName {
	name, known := c.names[class]
	if !known {
		name = c.resolve(class)
		c.names[class] = name
	}
	return name
}

func (c *Claims) resolve(name string) v1.ResourceName {
	class, err := c.classes.Get(name)
	if err != nil {
		return ""
	}
	extended := v1.ResourceName(ptr.Deref(class.Spec.ExtendedResourceName, ""))
	if extended != "" && ClassOf(c.classes, extended) == class {
		return extended
	}
	return v1.ResourceName(resourcev1.ResourceDeviceClassPrefix + name) // as the devices of nodes of this class count
}

// read returns what counts of a claim; nil if nothing does. The claim that a scheduler creates for extended resources
// does not count, because its pod requests them itself.
func (c *Claims) read(claim *resourcev1.ResourceClaim) *api.DeviceClaim {
	if claim.Annotations[resourcev1.ExtendedResourceClaimAnnotation] == "true" {
		return nil
	}
	a := &amounts{required: map[v1.ResourceName]int64{}, counted: map[v1.ResourceName]int64{}}
	for i := range claim.Spec.Devices.Requests {
		c.addRequest(a, claim, &claim.Spec.Devices.Requests[i])
	}
	if len(a.counted) == 0 {
		return nil
	}
	read := &api.DeviceClaim{Required: resourceList(a.required), Counted: resourceList(a.counted)}
	for _, consumer := range claim.Status.ReservedFor {
		if consumer.Resource == string(v1.ResourcePods) {
			read.Consumers = append(read.Consumers, api.TaskID(consumer.UID))
		}
	}
	return read
}

// amounts are the devices of a claim: required of the node, and counted in the queue.
type amounts struct{ required, counted map[v1.ResourceName]int64 }

// addRequest adds the devices of a request: those that are allocated, or else as many as it says. Of alternatives it is
// the first one until one of them is allocated.
//
// A node needs as many devices of the class only if an Inventory counts all devices that can be allocated for the
// request: not if it tolerates taints, or requests less of a device than others would get, or has alternatives.
func (c *Claims) addRequest(a *amounts, claim *resourcev1.ResourceClaim, r *resourcev1.DeviceRequest) {
	results := resultsOf(claim, r.Name)
	if e := r.Exactly; e != nil {
		if ptr.Deref(e.AdminAccess, false) { // such devices remain free for others
			return
		}
		a.add(c.resourceOf(e.DeviceClassName), countOf(e.AllocationMode, e.Count, results), len(e.Tolerations) == 0 && e.Capacity == nil)
		return
	}
	if len(r.FirstAvailable) == 0 {
		return
	}
	sub := &r.FirstAvailable[0]
	if len(results) > 0 {
		for i := range r.FirstAvailable {
			if results[0].Request == r.Name+"/"+r.FirstAvailable[i].Name {
				sub = &r.FirstAvailable[i]
			}
		}
	}
	required := len(results) > 0 && len(sub.Tolerations) == 0 && sub.Capacity == nil
	a.add(c.resourceOf(sub.DeviceClassName), countOf(sub.AllocationMode, sub.Count, results), required)
}

func countOf(mode resourcev1.DeviceAllocationMode, count int64, results []resourcev1.DeviceRequestAllocationResult) int64 {
	switch {
	case len(results) > 0:
		return int64(len(results))
	case mode == resourcev1.DeviceAllocationModeAll:
		return 0 // it is not known how many there are on the node
	}
	return max(count, 1)
}

// resultsOf returns the devices that are allocated for a request, whichever of its alternatives it is.
func resultsOf(claim *resourcev1.ResourceClaim, request string) []resourcev1.DeviceRequestAllocationResult {
	if claim.Status.Allocation == nil {
		return nil
	}
	var results []resourcev1.DeviceRequestAllocationResult
	for _, result := range claim.Status.Allocation.Devices.Results {
		if main, _, _ := strings.Cut(result.Request, "/"); main == request {
			results = append(results, result)
		}
	}
	return results
}

func (a *amounts) add(name v1.ResourceName, count int64, required bool) {
	if name == "" || count == 0 {
		return
	}
	a.counted[name] += count
	if required {
		a.required[name] += count
	}
}
