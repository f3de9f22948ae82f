// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/batch-scheduler/batch-scheduler/test/cluster"
	"github.com/batch-scheduler/batch-scheduler/test/perf/figures"
	"github.com/batch-scheduler/batch-scheduler/test/perf/testbed"
)

// waiting compares how soon small gangs start with and without thousands of pending gangs that fit on no node. In both
// cases they arrive at the same rate, on the same cluster.
type waiting struct {
	nodes, gangs, seconds int
	rate                  float64 // pods per second
}

const (
	// waitingSize is the size of the pending gangs. Their pods request more than a node has, in waitingClasses sizes.
	waitingSize    = 2
	waitingClasses = 100
	// settlingPeriod is how often the pods are listed until all have their conditions. The measurement fails if they do
	// not have them after settlingLimit, which is far more than any machine needs: it ends a run that would hang.
	settlingPeriod, settlingLimit = 2 * time.Second, 10 * time.Minute
)

func (m waiting) measure(ctx context.Context, b bench) ([]figures.Figure, error) {
	var list []figures.Figure
	o := testbed.Options{
		Cluster:  cluster.Options{Nodes: m.nodes, NodeSpecs: []string{"cpu=32,memory=256Gi,pods=110"}},
		Profiles: b.profiles, Progress: b.say,
	}
	err := testbed.Use(ctx, o, func(bed *testbed.Bed) error {
		s, err := bed.StartScheduler(ctx)
		if err != nil {
			return err
		}
		defer s.Kill() // unless it has been stopped
		if err = s.Ready(ctx); err != nil {
			return err
		}
		without, err := m.latency(ctx, bed, b, "before")
		if err != nil {
			return err
		}
		if err = m.fill(ctx, bed, b); err != nil {
			return err
		}
		profiled := s.Profile(ctx, "waiting", time.Duration(m.seconds/2)*time.Second)
		with, err := m.latency(ctx, bed, b, "after")
		if err != nil {
			return err
		}
		if err = profiled(); err != nil {
			return err
		}
		list = []figures.Figure{
			unbounded("latency-p99-without", without, "ms"), unbounded("latency-p99-with", with, "ms"),
			atMost("latency-p99-ratio", with/without, "", 1.5),
		}
		return s.End()
	})
	return list, err
}

// latency returns the 99th percentile of how long the gangs of a stream take to start.
func (m waiting) latency(ctx context.Context, bed *testbed.Bed, b bench, name string) (float64, error) {
	f := &flow{bed: bed, starts: newStarts(), rate: m.rate, left: map[string]int{}, prefix: name}
	list, err := f.measure(ctx, time.Duration(m.seconds)*time.Second, b)
	for _, figure := range list {
		if figure.Name == "latency-p99" {
			return figure.Value, err
		}
	}
	return 0, err
}

// fill creates the pending gangs.
func (m waiting) fill(ctx context.Context, bed *testbed.Bed, b bench) error {
	b.say("%d gangs come that fit on no node", m.gangs)
	gangs := make([]testbed.Gang, m.gangs)
	for i := range gangs {
		gangs[i] = testbed.Gang{Name: fmt.Sprintf("waiting-%05d", i), Size: waitingSize, CPUs: int64(33 + i%waitingClasses)}
	}
	if err := bed.Submit(ctx, gangs...); err != nil {
		return err
	}
	began, pods, explained := time.Now(), m.gangs*waitingSize, 0
	err := wait.PollUntilContextTimeout(ctx, settlingPeriod, settlingLimit, true, func(ctx context.Context) (bool, error) {
		list, err := bed.Client.CoreV1().Pods(testbed.Namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return false, err
		}
		left := slices.DeleteFunc(list.Items, isExplained)
		explained = len(list.Items) - len(left)
		return explained == pods, nil
	})
	if err != nil {
		return fmt.Errorf("%d of %d pods have conditions: %w", explained, pods, err)
	}
	b.say("%d pods have their conditions after %.0f s", pods, time.Since(began).Seconds())
	return nil
}

// isExplained reports whether a condition of a pod says why it waits.
func isExplained(pod corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse
	})
}
