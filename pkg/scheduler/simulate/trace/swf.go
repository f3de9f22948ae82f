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

// The fields of a line of the Standard Workload Format, version 2.2, from 0.
const (
	swfID = iota
	swfSubmit
	_ // wait
	swfRun
	swfAllocated
	_ // average CPU time
	_ // used memory
	swfRequested
	swfRequestedTime
	_ // requested memory
	_ // status
	swfUser
	_ // group
	_ // executable
	swfQueue
	_ // partition
	_ // preceding job
	_ // think time
	swfFields
)

var swfNames = [swfFields]string{
	swfID: "job number", swfSubmit: "submit time", swfRun: "run time", swfAllocated: "allocated processors",
	swfRequested: "requested processors", swfRequestedTime: "requested time", swfQueue: "queue",
}

// readSWF reads the Standard Workload Format of the Parallel Workloads Archive: 18 numbers per line, -1 if unknown; comments
// begin with a semicolon. Each processor is a pod that requests one CPU. Jobs without run time or processors are left out.
func readSWF(l *lines, _ Options) (*Trace, error) {
	t := &Trace{}
	for {
		line, ok := l.next()
		if !ok {
			t.Notes = l.notes()
			return t, l.err()
		}
		if strings.HasPrefix(strings.TrimSpace(line), ";") {
			continue
		}
		job, err := swfJob(l, line)
		if err != nil {
			return nil, err
		}
		if job != nil {
			t.Jobs = append(t.Jobs, *job)
		}
	}
}

// swfJob returns the job of a line; nil if the job is left out.
func swfJob(l *lines, line string) (*Job, error) {
	fields := strings.Fields(line)
	if len(fields) != swfFields {
		return nil, l.errorf("a job has %d fields in swf, but the line has %d", swfFields, len(fields))
	}
	values, err := swfValues(l, fields)
	if err != nil {
		return nil, err
	}
	size := values[swfRequested]
	if size <= 0 {
		size = values[swfAllocated]
	}
	switch {
	case values[swfRun] < 0:
		l.skip("jobs without run time")
		return nil, nil
	case size <= 0:
		l.skip("jobs without processors")
		return nil, nil
	case size > math.MaxInt32:
		return nil, l.errorf("processors: %v are too many", size)
	}
	job := &Job{
		ID: fields[swfID], Min: int(size), Replicas: int(size),
		Request: v1.ResourceList{v1.ResourceCPU: *resource.NewQuantity(1, resource.DecimalSI)},
	}
	if job.Submit, err = l.seconds(swfNames[swfSubmit], values[swfSubmit]); err != nil {
		return nil, err
	}
	if job.Run, err = l.seconds(swfNames[swfRun], values[swfRun]); err != nil {
		return nil, err
	}
	job.Limit = job.Run // as other simulators do if no time is requested
	if values[swfRequestedTime] > 0 {
		if job.Limit, err = l.seconds(swfNames[swfRequestedTime], values[swfRequestedTime]); err != nil {
			return nil, err
		}
	}
	if fields[swfUser] != "-1" {
		job.User = fields[swfUser]
	}
	if values[swfQueue] >= 0 {
		job.Queue = fmt.Sprintf("queue-%d", int64(values[swfQueue]))
	}
	return job, nil
}

// swfValues returns the fields that are read as numbers.
func swfValues(l *lines, fields []string) (values [swfFields]float64, err error) {
	for i, name := range swfNames {
		if name == "" {
			continue
		}
		if values[i], err = strconv.ParseFloat(fields[i], 64); err != nil {
			return values, l.errorf("%s (field %d): %q is not a number", name, i+1, fields[i])
		}
	}
	return values, nil
}
