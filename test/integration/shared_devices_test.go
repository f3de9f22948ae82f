// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

// TestSharedDevices: several claims share a device, by its capacity or as partitions.
func TestSharedDevices(t *testing.T) {
	host := corev1.LabelHostname
	play(t, map[string]scenario{
		"DR7: claims share the capacity of a device": {
			cluster: controllers,
			given: rows(
				nodes("n", 1, "8cpu"), deviceClass, sharedDevice("n1", "40Gi"),
				claimsForCapacity("10Gi", "a-0", "b-0", "b-1", "b-2", "c-0"),
				gang("a", 1, pods(1, "1cpu", usingOwn("a"))), gang("b", 3, pods(3, "1cpu", usingOwn("b")))),
			step: step{want: `
				a: Running Scheduled; 1 running
				b: Running Scheduled; 3 running`},
			then: []step{{
				do: rows(gang("c", 1, pods(1, "1cpu", usingOwn("c")))),
				want: `
					a: Running Scheduled; 1 running
					b: Running Scheduled; 3 running
					c: Pending NotEnoughResources; 1 waiting Unschedulable`,
				prints: map[string]string{"c": "0/1 nodes are available: 1 Insufficient memory of devices of class gpu"},
			}, {
				do: rows(func(h *harness) { h.remove(jobLabel+"=a", 1) }),
				want: `
					b: Running Scheduled; 3 running
					c: Running Scheduled; 1 running`,
			}},
		},
		"DR7: a gang that requests more capacity than a device has takes none": {
			given: rows(
				nodes("n", 1, "8cpu"), deviceClass, sharedDevice("n1", "40Gi"),
				claimsForCapacity("10Gi", "a-0", "a-1", "a-2", "a-3", "a-4"), gang("a", 5, pods(5, "1cpu", usingOwn("a")))),
			step: step{want: `a: Pending NotEnoughResources; 5 waiting Unschedulable`, prints: map[string]string{"a": "needs 1 more pod of 1 cpu + claim a-4 (1 device of class gpu) and 4 other pods"}},
			then: []step{{
				do: rows(hold("a-0: nothing", "a-4: nothing"), node("n2", "8cpu"), sharedDevice("n2", "10Gi")),
				want: `
					a: Running Scheduled; 5 running`,
			}},
		},
		"DR7: a claim for more capacity than any device has": {
			given: rows(
				nodes("n", 1, "8cpu"), deviceClass, sharedDevice("n1", "40Gi"),
				claimsForCapacity("50Gi", "a-0"), gang("a", 1, pods(1, "1cpu", usingOwn("a")))),
			step: step{want: `a: Pending Unschedulable; 1 waiting Unschedulable`, prints: map[string]string{"a": "too little memory of devices of class gpu"}},
		},
		"DR8: a small partition, then a large one on the other GPU of the node": {
			given: rows(
				nodes("n", 1, "8cpu"), deviceClass, partitions("n1", 2), claimsForPartition("1g", "a-0"), claimsForPartition("7g", "b-0", "c-0"),
				gang("a", 1, pods(1, "1cpu", usingOwn("a")))),
			step: step{want: `a: Running Scheduled; 1 running`},
			then: []step{{
				do: rows(gang("b", 1, pods(1, "1cpu", usingOwn("b")))),
				want: `
					a: Running Scheduled; 1 running
					b: Running Scheduled; 1 running`,
			}, {
				do: rows(gang("c", 1, pods(1, "1cpu", usingOwn("c")))),
				want: `
					a: Running Scheduled; 1 running
					b: Running Scheduled; 1 running
					c: Pending NotEnoughResources; 1 waiting Unschedulable`,
				prints: map[string]string{"c": "Insufficient devices of class gpu"},
			}},
		},
		"DR8: a large partition, then as many small ones as the other GPU has": {
			given: rows(
				nodes("n", 1, "16cpu"), deviceClass, partitions("n1", 2), claimsForPartition("7g", "a-0"),
				claimsForPartition("1g", "b-0", "b-1", "b-2", "b-3", "b-4", "b-5", "b-6", "b-7"), gang("a", 1, pods(1, "1cpu", usingOwn("a")))),
			step: step{want: `a: Running Scheduled; 1 running`},
			then: []step{{
				do: rows(gang("b", 7, pods(8, "1cpu", usingOwn("b")))),
				want: `
					a: Running Scheduled; 1 running
					b: Running Scheduled; 7 running, 1 waiting Unschedulable`,
			}},
		},
		"DR8: no pod is evicted for a partition that its own excludes": {
			cluster: controllers, evicts: true,
			given: rows(
				nodes("n", 1, "8cpu"), deviceClass, partitions("n1", 1), priorityClass("low", 1), priorityClass("high", 100),
				claimsForPartition("1g", "a-0", "a-1", "a-2"), claimsForPartition("7g", "b-0"),
				gang("a", 1, pods(3, "1cpu", priority("low"), usingOwn("a")))),
			step: step{want: `a: Running Scheduled; 3 running`},
			then: []step{{
				do: rows(gang("b", 1, pods(1, "1cpu", priority("high"), usingOwn("b")))),
				want: `
					a: Running Scheduled; 3 running
					b: Pending NotEnoughResources; 1 waiting Unschedulable`,
			}},
		},
		"DR7: no pod is evicted for capacity that claims share": {
			cluster: controllers, evicts: true,
			given: rows(
				nodes("n", 1, "8cpu"), deviceClass, sharedDevice("n1", "40Gi"), priorityClass("low", 1), priorityClass("high", 100),
				claimsForCapacity("10Gi", "a-0", "a-1", "a-2", "a-3", "b-0"), gang("a", 1, pods(4, "1cpu", priority("low"), usingOwn("a")))),
			step: step{want: `a: Running Scheduled; 4 running`},
			then: []step{{
				do: rows(gang("b", 1, pods(1, "1cpu", priority("high"), usingOwn("b")))),
				want: `
					a: Running Scheduled; 4 running
					b: Pending NotEnoughResources; 1 waiting Unschedulable`,
			}},
		},
		"DR8: a gang gets partitions of the GPUs of two nodes, or none": {
			given: rows(
				nodes("n", 2, "16cpu"), deviceClass, partitions("n1", 1), partitions("n2", 1), claimsForPartition("7g", "a-0", "a-1"),
				claimsForPartition("1g", "b-0"), gang("b", 1, pods(1, "1cpu", usingOwn("b")))),
			step: step{want: `b: Running Scheduled; 1 running (n1 1)`, by: host},
			then: []step{{
				do: rows(gang("a", 2, pods(2, "1cpu", usingOwn("a")))),
				want: `
					a: Pending NotEnoughResources; 2 waiting Unschedulable
					b: Running Scheduled; 1 running`,
			}, {
				do: rows(hold("a-0: nothing", "a-1: nothing"), node("n3", "8cpu"), partitions("n3", 1)),
				want: `
					a: Running Scheduled; 2 running (n2 1, n3 1)
					b: Running Scheduled; 1 running (n1 1)`,
				by: host,
			}},
		},
	})
}

// sharedDevice is one device that claims share in steps of 1Gi.
func sharedDevice(node, memory string) row {
	return func(h *harness) {
		s, step := newSlice(node), resource.MustParse("1Gi")
		s.Spec.Devices = []resourcev1.Device{{
			Name: gpu, AllowMultipleAllocations: ptr.To(true),
			Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {
				Value:         resource.MustParse(memory),
				RequestPolicy: &resourcev1.CapacityRequestPolicy{Default: &step, ValidRange: &resourcev1.CapacityRequestPolicyRange{Min: &step, Step: &step}},
			}},
		}}
		h.publish(s)
	}
}

// claimsForCapacity are claims for this memory of one device each.
func claimsForCapacity(memory string, names ...string) row {
	spec := oneDevice()
	spec.Devices.Requests[0].Exactly.Capacity = &resourcev1.CapacityRequirements{
		Requests: map[resourcev1.QualifiedName]resource.Quantity{"memory": resource.MustParse(memory)},
	}
	return claimsOf(spec, names...)
}

// partitions are GPUs of which each is one device 7g or up to seven devices 1g.
func partitions(node string, gpus int) row {
	return func(h *harness) {
		counters, s := newSlice(node), newSlice(node)
		counters.Name += "-counters"
		counters.Spec.Pool.ResourceSliceCount, s.Spec.Pool.ResourceSliceCount = 2, 2
		for i := range gpus {
			card := fmt.Sprint(gpu, i)
			counters.Spec.SharedCounters = append(counters.Spec.SharedCounters, resourcev1.CounterSet{Name: card, Counters: slicesOfCard(7)})
			s.Spec.Devices = append(s.Spec.Devices, partition(card, "7g", 0, 7))
			for j := range 7 {
				s.Spec.Devices = append(s.Spec.Devices, partition(card, "1g", j, 1))
			}
		}
		h.publish(counters)
		h.publish(s)
	}
}

func partition(card, profile string, index int, slices int64) resourcev1.Device {
	return resourcev1.Device{
		Name:             fmt.Sprintf("%s-%s-%d", card, profile, index),
		Attributes:       map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"profile": {StringValue: &profile}},
		ConsumesCounters: []resourcev1.DeviceCounterConsumption{{CounterSet: card, Counters: slicesOfCard(slices)}},
	}
}

func slicesOfCard(n int64) map[string]resourcev1.Counter {
	return map[string]resourcev1.Counter{"slices": {Value: *resource.NewQuantity(n, resource.DecimalSI)}}
}

// claimsForPartition are claims for one partition each.
func claimsForPartition(profile string, names ...string) row {
	spec := oneDevice()
	spec.Devices.Requests[0].Exactly.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{
		Expression: fmt.Sprintf("device.attributes[%q].profile == %q", driver, profile),
	}}}
	return claimsOf(spec, names...)
}
