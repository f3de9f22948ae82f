// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/metrics"

// DeviceMeter is a Plugin that measures how many devices of nodes are free, and what pods they suffice for.
type DeviceMeter interface {
	Plugin
	// MeasureDevices returns the devices as the model shows them; nil if the plugin measures none. It is called once when a
	// session has closed, also if few nodes have changed: it must cost little then.
	MeasureDevices() *metrics.Devices
}

// MeasureDevices returns what the plugins of a closed session measure.
func MeasureDevices(ssn *Session) []*metrics.Devices {
	var list []*metrics.Devices
	ssn.profile.eachPlugin(func(plugin *configured, _ int) {
		if meter, ok := plugin.Plugin.(DeviceMeter); ok {
			if devices := meter.MeasureDevices(); devices != nil {
				list = append(list, devices)
			}
		}
	})
	return list
}
