// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api

func rackOfBlock() *TopologyLevel {
	return &TopologyLevel{Topology: "default", Name: "rack", Labels: []string{"example.com/block", "example.com/rack"}}
}
