// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// Devices is what one cycle found out about the devices of one resource. Nodes that take no pods have nothing free.
type Devices struct {
	Resource    string
	Total, Free int64
	Fitting     []FittingPods
	// Typed reports whether there are types of pods: Stranded and Fragmented are not known without them.
	Typed bool
	// Stranded are the free devices of nodes that no type fits.
	Stranded int64
	// Fragmented is the fragmentation in thousandths of a device.
	Fragmented int64
}

// FittingPods is how many pods that request Size devices fit.
type FittingPods struct{ Size, Pods int64 }

// deviceDescs describe the metrics of devices.
type deviceDescs struct{ total, free, fitting, stranded, fragmented *prometheus.Desc }

func newDeviceDescs(create *maker) deviceDescs {
	const only = " Only with the plugin fragmentation, for its resource."
	return deviceDescs{
		total: create.desc("devices", "Devices of all nodes, such as GPUs."+only, deviceLabel()),
		free:  create.desc("devices_free", "Devices that no pod holds, on nodes that take pods."+only, deviceLabel()),
		fitting: create.desc("devices_fitting_pods", "How many pods that request so many devices each would fit, each on one node; other resources are not considered."+only,
			deviceLabel(), sizeLabel()),
		stranded: create.desc("devices_stranded", "Free devices on nodes that no type of pods fits, because too little is left there of devices or other resources; no series without types."+only,
			deviceLabel()),
		fragmented: create.desc("devices_fragmented", "Fragmentation: the number of free devices that a pod cannot use, mean over the types of pods; no series without types."+only,
			deviceLabel()),
	}
}

func deviceLabel() Label {
	return Label{Name: "resource", Meaning: "the argument `fragmentation.resource`"}
}

func sizeLabel() Label {
	return Label{Name: "size", Values: []string{"1", "2", "4", "8"}}
}

func (d *deviceDescs) all() []*prometheus.Desc {
	return []*prometheus.Desc{d.total, d.free, d.fitting, d.stranded, d.fragmented}
}

func (d *deviceDescs) collect(devices *Devices, gauge func(desc *prometheus.Desc, value float64, labels ...string)) {
	gauge(d.total, float64(devices.Total), devices.Resource)
	gauge(d.free, float64(devices.Free), devices.Resource)
	for _, f := range devices.Fitting {
		gauge(d.fitting, float64(f.Pods), devices.Resource, strconv.FormatInt(f.Size, 10))
	}
	if devices.Typed {
		gauge(d.stranded, float64(devices.Stranded), devices.Resource)
		gauge(d.fragmented, float64(devices.Fragmented)/1000, devices.Resource)
	}
}
