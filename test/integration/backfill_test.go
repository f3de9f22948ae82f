// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// line is a cluster where jobs wait in a line behind pods that run. It has one node, and the pods of most jobs need 1 cpu of it,
// as they would a node each.
type line struct {
	*harness
	running []string // pods
}

func newLine(t *testing.T, cpus int, depth string) *line {
	l := &line{harness: newHarness(t, noControllers)}
	l.do(nodes("n", 1, fmt.Sprintf("%dcpu", cpus)), queue("default", 1))
	l.start("--scheduler-conf=" + l.file("policy.yaml", strings.NewReplacer(
		"reclaim, allocate, backfill, preempt", "allocate, backfill", "depth: 1", "depth: "+depth).Replace(planning)))
	return l
}

// lineJob is a gang of pods that need 1 cpu each, for some minutes of the cases, which are ten real ones: limits are far longer
// than what the test takes.
func lineJob(name string, count int, minutes int32) row {
	return gang(name, int32(count), pods(count, "1cpu"), limited(600*minutes))
}

// holder is a job of one pod, so that all of it ends at once.
func holder(name string, cpus int, minutes int32) row {
	return gang(name, 1, pods(1, fmt.Sprintf("%dcpu", cpus)), limited(600*minutes))
}

// starts waits until all pods of a job run, and none but those that ran before.
func (l *line) starts(job string, count int) {
	l.t.Helper()
	for i := range count {
		l.running = append(l.running, fmt.Sprintf("%s-%d", job, i))
	}
	slices.Sort(l.running)
	l.boundNow(l.running...)
	l.eventually(l.hasStarted(job))
}

// ends completes the pods of a job, and deletes them.
func (l *line) ends(job string) {
	l.t.Helper()
	var ended []string
	l.running = slices.DeleteFunc(l.running, func(pod string) bool {
		is := strings.HasPrefix(pod, job+"-")
		if is {
			ended = append(ended, pod)
		}
		return is
	})
	l.setPhase(corev1.PodSucceeded, ended...)
	l.deleteNow(ended...)
}

// minutesPass sets the limit of a running job so that it ends in so many minutes, and waits until the start of a job that waits
// for it is planned for then.
func (l *line) minutesPass(running string, left int, waiting string) {
	l.t.Helper()
	before := l.podGroup(waiting).Status.LatestStartTime.Time
	l.setLimit(running, time.Duration(left)*10*time.Minute)
	l.eventually(func() error {
		if _, latest := l.planned(waiting); !latest.Before(before) {
			return fmt.Errorf("%s is still planned to start at %s", waiting, latest)
		}
		return nil
	})
}

// TestBackfill is TI1. Of 10 cpus 6 are in use until minute 10, and 2 until minute 4. Jobs start in minutes 10, 0, 4, 20 and 8.
// Minutes pass by shorter limits of what runs.
func TestBackfill(t *testing.T) {
	l := newLine(t, 10, "1")
	l.do(holder("six", 6, 10))
	l.starts("six", 1)
	l.do(holder("two", 2, 4))
	l.starts("two", 1)
	l.do(lineJob("job1", 8, 10))
	_, latest := l.planned("job1")
	if end := l.podGroup("six").Status.StartTime.Add(100 * time.Minute); latest.Before(end) || latest.After(end.Add(time.Minute)) {
		t.Errorf("job1 starts at %s at the latest, and what is in the way ends at %s", latest, end)
	}
	l.do(lineJob("job2", 2, 8))
	l.starts("job2", 2)
	l.do(lineJob("job3", 2, 20))
	l.do(lineJob("job4", 1, 4))
	l.do(lineJob("job5", 2, 1)) // one minute less, because time passes until it starts
	l.boundNow(l.running...)

	l.setLimit("job2", 40*time.Minute) // minute 4
	l.minutesPass("six", 6, "job1")
	l.ends("two")
	l.starts("job3", 2)

	l.minutesPass("six", 2, "job1") // minute 8
	l.ends("job2")
	l.starts("job5", 2)

	l.ends("job5") // minute 10
	l.ends("six")
	l.starts("job1", 8)
	l.waitNow("Unschedulable", "planned to start at", "job4-0")

	l.ends("job1") // minute 20
	l.starts("job4", 1)
}

// TestBackfillOfAll is TI2. Of 4 cpus 2 are in use until minute 2. With EASY backfilling the last job starts at once, and delays
// the second. With conservative backfilling the second has a start too, and the last one waits.
func TestBackfillOfAll(t *testing.T) {
	for depth, then := range map[string]func(*line){
		"1": func(l *line) {
			l.starts("job3", 1)
			l.ends("two")
			l.starts("job1", 3)
			l.ends("job1")
			l.waitNow("Unschedulable", "planned to start at", "job2-0")
			l.ends("job3")
			l.starts("job2", 4)
		},
		"-1": func(l *line) {
			l.waitNow("Unschedulable", "planned to start at", "job3-0")
			l.ends("two")
			l.starts("job1", 3)
			l.ends("job1")
			l.starts("job2", 4)
			l.ends("job2")
			l.starts("job3", 1)
		},
	} {
		t.Run("depth "+depth, func(t *testing.T) {
			l := newLine(t, 4, depth)
			l.do(holder("two", 2, 2))
			l.starts("two", 1)
			l.do(lineJob("job1", 3, 1))
			l.planned("job1")
			l.do(lineJob("job2", 4, 1))
			l.waitNow("Unschedulable", "needs 4 more pods", "job2-0")
			l.do(lineJob("job3", 1, 4))
			then(l)
		})
	}
}
