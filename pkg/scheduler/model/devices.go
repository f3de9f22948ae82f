// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// SetDevices sets the devices of a node that device classes provide as extended resources; nil if there are none. They
// count as allocatable, except those of resources that the node lists itself. The node need not exist.
func (e Events) SetDevices(node string, devices v1.ResourceList) {
	c := e.c
	if len(devices) == 0 {
		delete(c.nodes.devices, node)
	} else {
		c.nodes.devices[node] = devices
	}
	if n := c.nodes.existing(node); n != nil {
		e.replaceNode(n, n.Node)
	}
}

// SetDeviceResources sets the extended resources that device classes provide. Whether a pod that requests one of them
// fits on a node depends on objects outside the model, so that it gets another signature.
func (e Events) SetDeviceResources(names []v1.ResourceName) {
	c := e.c
	c.signatures.setDeviceResources(names)
	var affected []*api.TaskInfo
	for _, t := range c.tasks {
		if t.Signature.DeviceResources != c.signatures.requestsDevices(t.Signature.PodRequest) {
			affected = append(affected, t)
		}
	}
	e.readAgain(affected)
	e.changed()
}

// readAgain reads the pods of tasks again, because of something else than the pods that changed.
func (e Events) readAgain(tasks []*api.TaskInfo) {
	slices.SortFunc(tasks, func(a, b *api.TaskInfo) int { return cmp.Compare(a.ID, b.ID) })
	for _, t := range slices.Compact(tasks) {
		e.c.detach(t)
		e.c.nodes.removeNominated(t)
		e.readPod(t, t.Pod)
	}
}

// SetDeviceClaim sets what the claim namespace/name requests; nil if it does not exist or requests nothing that counts.
func (e Events) SetDeviceClaim(key string, shown *api.DeviceClaim) {
	c := e.c
	claim := c.claims.named(key)
	before := claim.bearer
	again := !sameAmounts(claim.shown, shown)
	claim.shown, claim.required, claim.counted = shown, nil, nil
	if shown != nil {
		claim.required, claim.counted = c.dims.Vector(shown.Required), c.dims.Vector(shown.Counted)
	}
	claim.bearer = claim.findBearer()
	e.changed()
	if again || claim.bearer != before {
		e.readAgain(slices.DeleteFunc([]*api.TaskInfo{before, claim.bearer}, func(t *api.TaskInfo) bool { return t == nil }))
	}
	c.claims.release(claim)
}

// replaceNode gives a node another version of its object.
func (e Events) replaceNode(n *api.NodeInfo, node *v1.Node) {
	c := e.c
	e.changed()
	c.generations.NodeSpecs++
	tasks := slices.Collect(maps.Values(n.Tasks))
	c.detachAll(tasks)
	c.nodes.set(n, node, api.Allocatable(c.dims, node, c.nodes.devices[node.Name]), c.dims)
	c.attachAll(tasks)
}

// DevicesKey ends the key of a signature that requests resources of device classes.
const DevicesKey = "devices;"

func (st *signatureTable) setDeviceResources(names []v1.ResourceName) {
	st.deviceDimensions = nil
	for _, name := range names {
		st.deviceDimensions = append(st.deviceDimensions, st.dims.Index(name))
	}
}

// requestsDevices reports whether a device class provides one of the requested resources.
func (st *signatureTable) requestsDevices(request api.Resource) bool {
	for _, d := range st.deviceDimensions {
		if request.At(d) > 0 {
			return true
		}
	}
	return false
}
