// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// The columns of the tables of cluster-trace-gpu-v2020, whose files have no header.
func paiJobColumns() []string {
	return []string{"job_name", "inst_id", "user", "status", "start_time", "end_time"}
}

func paiTaskColumns() []string {
	return []string{"job_name", "task_name", "inst_num", "status", "start_time", "end_time", "plan_cpu", "plan_mem", "plan_gpu", "gpu_type"}
}

func paiMachineColumns() []string {
	return []string{"machine", "gpu_type", "cap_cpu", "cap_mem", "cap_gpu"}
}

// paiTaskTable is the file with the tasks of the jobs.
const paiTaskTable = "pai_task_table.csv"

// paiTasks are the tasks of a job: pods, and when the first of them began and the last one ended.
type paiTasks struct {
	roles      []Role
	start, end float64
	unknown    bool // whether a task has no start or end
}

// readPAI reads Alibaba's cluster-trace-gpu-v2020 (Weng et al., NSDI '22): pai_job_table.csv, and pai_task_table.csv in the
// same directory. The tasks of a job are one gang. Its run time is the time from the start of the first task until the end
// of the last one; jobs that lack either are left out. Percents of a GPU count as whole GPUs.
func readPAI(l *lines, o Options) (*Trace, error) {
	tasks, err := readPAITasks(o)
	if err != nil {
		return nil, err
	}
	t, err := readTable(l, paiJobColumns())
	if err != nil {
		return nil, err
	}
	trace, first := &Trace{}, math.Inf(1)
	var submitted []float64
	for {
		more, err := t.row()
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
		of := tasks[t.text("job_name")]
		if of == nil || of.unknown || t.text("start_time") == "" {
			l.skip("jobs without tasks, or whose start or end is not known")
			continue
		}
		at, err := t.float("start_time")
		if err != nil {
			return nil, err
		}
		main := of.roles[0]
		job := Job{
			ID: t.text("job_name"), User: t.text("user"), Min: main.Pods, Replicas: main.Pods, Request: main.Request,
		}
		if len(of.roles) > 1 {
			job.Roles = of.roles[1:]
		}
		if job.Run, err = t.seconds("end_time", of.end-of.start); err != nil {
			return nil, err
		}
		trace.Jobs, submitted, first = append(trace.Jobs, job), append(submitted, at), min(first, at)
	}
	for i := range trace.Jobs {
		trace.Jobs[i].Submit = time.Duration(math.Round((submitted[i]-first)*1e6)) * time.Microsecond
	}
	trace.Notes = l.notes()
	return trace, nil
}

// readTable reads the first line of a file with the usual columns.
func readTable(l *lines, usual []string) (*table, error) {
	t, err := readColumns(l, usual)
	if err != nil {
		return nil, err
	}
	return t, t.require(usual...)
}

// readPAITasks returns the tasks by the name of their job.
func readPAITasks(o Options) (map[string]*paiTasks, error) {
	if o.Open == nil {
		return nil, errors.New("the format pai has two files, and only one is given")
	}
	from, err := o.Open(paiTaskTable)
	if err != nil {
		return nil, fmt.Errorf("the tasks of the jobs: %w", err)
	}
	defer from.Close()
	t, err := readTable(newLines(paiTaskTable, from), paiTaskColumns())
	if err != nil {
		return nil, err
	}
	tasks := map[string]*paiTasks{}
	for {
		more, err := t.row()
		if err != nil || !more {
			return tasks, err
		}
		role, start, end, err := paiTask(t)
		if err != nil {
			return nil, err
		}
		of := tasks[t.text("job_name")]
		if of == nil {
			of = &paiTasks{start: math.Inf(1)}
			tasks[t.text("job_name")] = of
		}
		of.roles = append(of.roles, role)
		of.start, of.end = min(of.start, start), max(of.end, end)
		of.unknown = of.unknown || t.text("start_time") == "" || t.text("end_time") == ""
	}
}

// paiTask returns the pods of a row, and when they began and ended.
func paiTask(t *table) (role Role, start, end float64, err error) {
	values := map[string]float64{}
	for _, column := range []string{"inst_num", "start_time", "end_time", "plan_cpu", "plan_mem", "plan_gpu"} {
		n, failed := t.float(column)
		values[column], err = n, cmp.Or(err, failed)
	}
	if err != nil {
		return role, 0, 0, err
	}
	start, end = values["start_time"], values["end_time"]
	if t.text("start_time") != "" && t.text("end_time") != "" && end < start {
		return role, 0, 0, t.errorf("end_time: %v is before start_time, %v", end, start)
	}
	role = Role{Pods: max(1, int(values["inst_num"])), Request: paiAmounts(values["plan_cpu"], values["plan_mem"], math.Ceil(values["plan_gpu"]/100))}
	return role, start, end, nil
}

// paiAmounts returns resources: percents of a CPU, GB of memory, and GPUs.
func paiAmounts(cpu, memory, gpus float64) v1.ResourceList {
	list := v1.ResourceList{}
	if cpu > 0 {
		list[v1.ResourceCPU] = *resource.NewMilliQuantity(int64(cpu*10), resource.DecimalSI)
	}
	if memory > 0 {
		list[v1.ResourceMemory] = *resource.NewQuantity(int64(memory*1024)<<20, resource.BinarySI)
	}
	if gpus > 0 {
		list[GPU] = *resource.NewQuantity(int64(gpus), resource.DecimalSI)
	}
	return list
}

// readPAINodes reads pai_machine_spec.csv.
func readPAINodes(t *table) ([]*v1.Node, error) {
	return t.nodes(func() (*v1.Node, error) {
		values := map[string]float64{}
		var err error
		for _, column := range []string{"cap_cpu", "cap_mem", "cap_gpu"} {
			n, failed := t.float(column)
			values[column], err = n, cmp.Or(err, failed)
		}
		node := newNode(t.text("machine"), paiAmounts(values["cap_cpu"]*100, values["cap_mem"], values["cap_gpu"]))
		if model := t.text("gpu_type"); model != "" && model != "CPU" {
			node.Labels[GPUModel] = model
		}
		return node, err
	})
}
