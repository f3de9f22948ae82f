// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package devices relates extended resources to the devices that drivers of dynamic resource allocation (DRA) publish.
//
// A DeviceClass can name an extended resource, such as nvidia.com/gpu. A pod that requests the resource can then run on
// a node whose allocatable does not list it: the scheduler allocates devices of the class to the pod. ClassOf finds the
// class of a resource. A Selector finds the devices of a class. An Inventory counts them by node, so that the model can
// treat them as resources of the node.
package devices
