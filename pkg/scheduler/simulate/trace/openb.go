// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// GPUModel is the label of nodes that has the model of their GPUs, in the format openb.
const GPUModel = "gpu-model"

// readOpenb reads the pods of Alibaba's cluster-trace-gpu-v2023. Pods with equal requests that were created in the same
// second form a gang, which runs as long as the longest of them; a share of a GPU counts as a whole one. Pods that were
// never scheduled are left out, because their run time is not known, unless the options keep them.
func readOpenb(l *lines, o Options) (*Trace, error) {
	t, err := readHeader(l, "name", "cpu_milli", "memory_mib", "num_gpu", "gpu_spec", "creation_time", "deletion_time", "scheduled_time")
	if err != nil {
		return nil, err
	}
	trace, gangs := &Trace{}, map[string]int{}
	for {
		more, err := t.row()
		if err != nil {
			return nil, err
		}
		if !more {
			trace.Notes = l.notes()
			return trace, nil
		}
		job, err := t.openbPod(o)
		if err != nil {
			return nil, err
		}
		if job == nil {
			continue
		}
		key := strings.Join([]string{t.text("creation_time"), t.text("cpu_milli"), t.text("memory_mib"), t.text("num_gpu"), t.text("gpu_spec")}, " ")
		at, known := gangs[key]
		if !known {
			gangs[key] = len(trace.Jobs)
			trace.Jobs = append(trace.Jobs, *job)
			continue
		}
		gang := &trace.Jobs[at]
		gang.Min++
		gang.Replicas++
		gang.Run = max(gang.Run, job.Run)
	}
}

// openbPod returns the pod of a row; nil if it is left out.
func (t *table) openbPod(o Options) (*Job, error) {
	unscheduled := t.text("scheduled_time") == "" || t.text("deletion_time") == ""
	if unscheduled && !o.Unscheduled {
		t.skip("pods that were never scheduled")
		return nil, nil
	}
	n, err := t.numbers("cpu_milli", "memory_mib", "num_gpu", "creation_time", "deletion_time", "scheduled_time")
	if err != nil {
		return nil, err
	}
	if !unscheduled && n["deletion_time"] < n["scheduled_time"] {
		return nil, t.errorf("deletion_time: %d is before scheduled_time, %d", n["deletion_time"], n["scheduled_time"])
	}
	job := &Job{ID: t.text("name"), Min: 1, Replicas: 1, Request: openbAmounts(n, n["num_gpu"])}
	if models := t.text("gpu_spec"); models != "" {
		job.Selector = map[string][]string{GPUModel: strings.Split(models, "|")}
	}
	if job.Submit, err = t.seconds("creation_time", float64(n["creation_time"])); err != nil {
		return nil, err
	}
	if unscheduled {
		return job, nil
	}
	job.Run, err = t.seconds("deletion_time", float64(n["deletion_time"]-n["scheduled_time"]))
	return job, err
}

func openbAmounts(n map[string]int64, gpus int64) v1.ResourceList {
	list := v1.ResourceList{
		v1.ResourceCPU:    *resource.NewMilliQuantity(n["cpu_milli"], resource.DecimalSI),
		v1.ResourceMemory: *resource.NewQuantity(n["memory_mib"]<<20, resource.BinarySI),
	}
	if gpus > 0 {
		list[GPU] = *resource.NewQuantity(gpus, resource.DecimalSI)
	}
	return list
}

// readOpenbNodes reads the nodes of Alibaba's cluster-trace-gpu-v2023.
func readOpenbNodes(t *table) ([]*v1.Node, error) {
	if err := t.require("sn", "cpu_milli", "memory_mib", "gpu", "model"); err != nil {
		return nil, err
	}
	return t.nodes(func() (*v1.Node, error) {
		n, err := t.numbers("cpu_milli", "memory_mib", "gpu")
		if err != nil {
			return nil, err
		}
		node := newNode(t.text("sn"), openbAmounts(n, n["gpu"]))
		if model := t.text("model"); model != "" {
			node.Labels[GPUModel] = model
		}
		return node, nil
	})
}
