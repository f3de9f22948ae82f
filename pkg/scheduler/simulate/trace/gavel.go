// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// The fields of a line of the traces of gavel, from 0.
const (
	_ = iota // job type
	_        // command
	_        // option for the number of steps
	_        // whether data is needed
	gavelSteps
	gavelArrival
	gavelScale
	gavelFields
)

// gpusPerPod is how many GPUs the pods of large jobs request.
const gpusPerPod = 8

// readGavel reads the traces of gavel (Narayanan et al., OSDI '20), which have seven fields between tabs. The scale factor of
// a job is its number of GPUs: up to 8 in one pod, and more in pods of 8. A line states a number of steps, not a run time.
func readGavel(l *lines, o Options) (*Trace, error) {
	t := &Trace{Notes: []string{fmt.Sprintf("run times are the numbers of steps at %v steps per second", o.StepsPerSecond)}}
	for {
		line, ok := l.next()
		if !ok {
			return t, l.err()
		}
		fields := strings.Split(line, "\t")
		if len(fields) < gavelFields {
			return nil, l.errorf("a job has %d fields between tabs in gavel, but the line has %d", gavelFields, len(fields))
		}
		fields = fields[len(fields)-gavelFields:] // a command may have tabs
		var values [gavelFields]float64
		for i, name := range [gavelFields]string{gavelSteps: "total steps", gavelArrival: "arrival", gavelScale: "scale factor"} {
			if name == "" {
				continue
			}
			var err error
			if values[i], err = strconv.ParseFloat(strings.TrimSpace(fields[i]), 64); err != nil {
				return nil, l.errorf("%s: %q is not a number", name, fields[i])
			}
		}
		job, err := gavelJob(l, values, o)
		if err != nil {
			return nil, err
		}
		t.Jobs = append(t.Jobs, job)
	}
}

func gavelJob(l *lines, values [gavelFields]float64, o Options) (Job, error) {
	gpus := int64(values[gavelScale])
	if values[gavelScale] != math.Trunc(values[gavelScale]) || gpus < 1 || gpus > math.MaxInt32 {
		return Job{}, l.errorf("scale factor: must be a whole number of GPUs, not %v", values[gavelScale])
	}
	pods := (gpus + gpusPerPod - 1) / gpusPerPod
	job := Job{
		ID: strconv.Itoa(l.number), Min: int(pods), Replicas: int(pods),
		Request: v1.ResourceList{GPU: *resource.NewQuantity(min(gpus, gpusPerPod), resource.DecimalSI)},
	}
	var err error
	if job.Submit, err = l.seconds("arrival", values[gavelArrival]); err != nil {
		return job, err
	}
	job.Run, err = l.seconds("total steps", values[gavelSteps]/o.StepsPerSecond)
	return job, err
}
