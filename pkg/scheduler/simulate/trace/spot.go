// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"cmp"
	"math"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// The priorities of the two types of jobs of the format spot.
const (
	spotPriority         = 0
	highPriority         = 1
	highPriorityWorkload = "HP"
	spotWorkload         = "Spot"
)

// readSpot reads job_info_df.csv of Alibaba's cluster-trace-v2026-spot-gpu (Duan et al., ASPLOS '26): each worker is a pod,
// the organization is the queue, and jobs of type HP have a higher priority than those of type Spot. A part of a GPU counts
// as a whole one.
func readSpot(l *lines, _ Options) (*Trace, error) {
	t, err := readHeader(l, "job_name", "organization", "gpu_model", "cpu_request", "gpu_request", "worker_num", "submit_time", "duration", "job_type")
	if err != nil {
		return nil, err
	}
	trace := &Trace{}
	for {
		more, err := t.row()
		if err != nil || !more {
			return trace, err
		}
		job, err := spotJob(t)
		if err != nil {
			return nil, err
		}
		trace.Jobs = append(trace.Jobs, job)
	}
}

func spotJob(t *table) (Job, error) {
	values := map[string]float64{}
	var err error
	for _, column := range []string{"cpu_request", "gpu_request", "worker_num", "submit_time", "duration"} {
		n, failed := t.float(column)
		values[column], err = n, cmp.Or(err, failed)
	}
	pods := int(values["worker_num"])
	job := Job{
		ID: t.text("job_name"), Queue: "organization-" + t.text("organization"), Priority: spotPriority, Min: pods, Replicas: pods,
		Request: spotAmounts(values["cpu_request"], math.Ceil(values["gpu_request"])),
	}
	switch t.text("job_type") {
	case highPriorityWorkload:
		job.Priority = highPriority
	case spotWorkload:
	default:
		err = cmp.Or(err, t.errorf("job_type: must be %s or %s, not %q", highPriorityWorkload, spotWorkload, t.text("job_type")))
	}
	if err == nil && (pods < 1 || pods > math.MaxInt32) {
		err = t.errorf("worker_num: must be at least 1, but is %v", values["worker_num"])
	}
	if model := t.text("gpu_model"); model != "" && values["gpu_request"] > 0 {
		job.Selector = map[string][]string{GPUModel: {model}}
	}
	if err != nil {
		return job, err
	}
	if job.Submit, err = t.seconds("submit_time", values["submit_time"]); err != nil {
		return job, err
	}
	job.Run, err = t.seconds("duration", values["duration"])
	return job, err
}

func spotAmounts(cpus, gpus float64) v1.ResourceList {
	list := v1.ResourceList{v1.ResourceCPU: *resource.NewMilliQuantity(int64(cpus*1000), resource.DecimalSI)}
	if gpus > 0 {
		list[GPU] = *resource.NewQuantity(int64(gpus), resource.DecimalSI)
	}
	return list
}

// readSpotNodes reads node_info_df.csv. Its nodes have no memory, and neither do the requests of its jobs.
func readSpotNodes(t *table) ([]*v1.Node, error) {
	if err := t.require("node_name", "gpu_model", "gpu_capacity_num", "cpu_num"); err != nil {
		return nil, err
	}
	return t.nodes(func() (*v1.Node, error) {
		gpus, err := t.float("gpu_capacity_num")
		cpus, failed := t.float("cpu_num")
		node := newNode("node-"+t.text("node_name"), spotAmounts(cpus, gpus))
		if model := t.text("gpu_model"); model != "" {
			node.Labels[GPUModel] = model
		}
		return node, cmp.Or(err, failed)
	})
}
