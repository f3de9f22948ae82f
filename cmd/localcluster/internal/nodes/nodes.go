// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package nodes describes the nodes of a local cluster and creates them.
//
// A node is created complete, with capacity, addresses and a Ready condition, in one write: it is never visible
// without them, and later changes by tests are not overwritten.
package nodes

import (
	"context"
	"fmt"
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"
)

// MaxZones is the maximum number of zones: zone-a to zone-z.
const MaxZones = 26

// creators is the number of concurrent creations.
const creators = 8

// Plan describes the nodes of a cluster.
type Plan struct {
	// Pools are created in order. Pools without a name use "node" and are numbered consecutively.
	Pools []Pool

	// Zones is the number of zones to which all nodes are distributed, round-robin; 0: no zone labels.
	Zones int
}

// Size returns the number of nodes in all pools.
func (p Plan) Size() int {
	size := 0
	for _, pool := range p.Pools {
		size += pool.Count
	}
	return size
}

// Build returns the nodes of the plan, in order. Now is the time of their conditions.
func (p Plan) Build(now metav1.Time) []*corev1.Node {
	var built []*corev1.Node
	numbers := map[string]int{}
	for _, pool := range p.Pools {
		for range pool.Count {
			name := pool.Name + "-" + strconv.Itoa(numbers[pool.Name])
			numbers[pool.Name]++
			zone := ""
			if p.Zones > 0 {
				zone = "zone-" + string(rune('a'+len(built)%p.Zones))
			}
			built = append(built, node(name, zone, pool, now))
		}
	}
	return built
}

// Create creates the nodes that do not exist yet, several at a time, and returns the first error.
func Create(ctx context.Context, client kubernetes.Interface, nodes []*corev1.Node) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	workqueue.ParallelizeUntil(ctx, creators, len(nodes), func(i int) {
		if _, err := client.CoreV1().Nodes().Create(ctx, nodes[i], metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			cancel(fmt.Errorf("creating node %s: %w", nodes[i].Name, err))
		}
	})
	return context.Cause(ctx)
}

func node(name, zone string, pool Pool, now metav1.Time) *corev1.Node {
	labels := map[string]string{
		corev1.LabelHostname:   name,
		corev1.LabelOSStable:   "linux",
		corev1.LabelArchStable: "amd64",
	}
	if zone != "" {
		labels[corev1.LabelTopologyZone] = zone
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Status: corev1.NodeStatus{
			Capacity:    maps.Clone(pool.Resources),
			Allocatable: maps.Clone(pool.Resources),
			Conditions:  conditions(now),
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeHostName, Address: name},
				{Type: corev1.NodeInternalIP, Address: "127.0.0.1"},
			},
			NodeInfo: corev1.NodeSystemInfo{
				OperatingSystem: "linux",
				Architecture:    "amd64",
				KubeletVersion:  "simulated",
			},
		},
	}
}

func conditions(now metav1.Time) []corev1.NodeCondition {
	healthy := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason, message string) corev1.NodeCondition {
		return corev1.NodeCondition{
			Type: kind, Status: status, Reason: reason, Message: message,
			LastHeartbeatTime: now, LastTransitionTime: now,
		}
	}
	return []corev1.NodeCondition{
		healthy(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory", "the simulated kubelet has memory"),
		healthy(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure", "the simulated kubelet has disk"),
		healthy(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID", "the simulated kubelet has process numbers"),
		healthy(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", "the simulated kubelet is ready"),
	}
}
