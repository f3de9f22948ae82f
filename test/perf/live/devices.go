// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/test/cluster"
	"github.com/batch-scheduler/batch-scheduler/test/perf/figures"
	"github.com/batch-scheduler/batch-scheduler/test/perf/testbed"
)

// devices is a cluster whose GPUs a driver publishes. Gangs of pods with one GPU each arrive, one after the other, on the
// idle cluster. Then a scheduler starts that finds many such pods. For each pod, five requests change objects: the claim is
// created, gets a finalizer, and is allocated; the pod gets the name of the claim, and is bound. First plain clients send the
// same requests.
type devices struct{ nodes, size, gangs, burst int }

const (
	// devicesPerNode is the number of GPUs of a node.
	devicesPerNode = 8
	// burstTimeout is the maximum time for the burst.
	burstTimeout = 10 * time.Minute

	deviceDriver, deviceClass, deviceRequest = "gpu.example.com", "gpu", "gpu"
)

func (m devices) measure(ctx context.Context, b bench) ([]figures.Figure, error) {
	var list []figures.Figure
	gangs := idle{nodes: m.nodes, size: m.size, gangs: m.gangs, gpus: 1}
	o := testbed.Options{
		Cluster:  cluster.Options{Nodes: m.nodes, NodeSpecs: []string{"cpu=32,memory=256Gi,pods=110"}, NoKubelets: true},
		Profiles: b.profiles, Progress: b.say,
	}
	err := testbed.Use(ctx, o, func(bed *testbed.Bed) error {
		if err := m.publish(ctx, bed); err != nil {
			return err
		}
		plain, err := gangs.plainWith(ctx, bed, m.allocateAndBind)
		if err != nil {
			return err
		}
		b.say("plain clients allocate devices for %d pods and bind them in %.0f ms", m.size, plain.latencies())
		ceiling, err := m.ceiling(ctx, bed)
		if err != nil {
			return err
		}
		b.say("plain clients allocate and bind %.0f pods per second", ceiling)
		scheduled, err := gangs.scheduled(ctx, bed)
		if err != nil {
			return err
		}
		b.say("gangs started after %.0f ms", scheduled.latencies())
		rate, err := m.bind(ctx, bed, b)
		if err != nil {
			return err
		}
		limit, times := plain.latencies(), scheduled.latencies()
		list = []figures.Figure{
			unbounded("plain-median", quantile(limit, 0.5), "ms"),
			atMost("median", quantile(times, 0.5), "ms", 200),
			unbounded("p99", quantile(times, 0.99), "ms"),
			unbounded("ceiling", ceiling, "pods/s"),
			atLeast("rate", rate, "pods/s", 300),
		}
		return nil
	})
	return list, err
}

// publish creates the class, and the devices of all nodes.
func (m devices) publish(ctx context.Context, bed *testbed.Bed) error {
	client := bed.Client.ResourceV1()
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: deviceClass}}
	class.Spec.ExtendedResourceName = ptr.To(string(testbed.GPU))
	class.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", deviceDriver)}}}
	if _, err := client.DeviceClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
		return err
	}
	for i := range m.nodes {
		name := testbed.NodeName(i)
		slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}}
		slice.Spec = resourcev1.ResourceSliceSpec{Driver: deviceDriver, NodeName: &name, Pool: resourcev1.ResourcePool{Name: name, ResourceSliceCount: 1}}
		for d := range devicesPerNode {
			slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{Name: fmt.Sprintf("gpu-%d", d)})
		}
		if _, err := client.ResourceSlices().Create(ctx, slice, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// allocateAndBind lets plain clients do what a scheduler does for pods on the nodes, round-robin.
func (m devices) allocateAndBind(ctx context.Context, clients testbed.Plain, pods []*corev1.Pod) error {
	return clients.Do(ctx, len(pods), func(ctx context.Context, client kubernetes.Interface, i int) error {
		return allocateAndBind(ctx, client, pods[i].Name, testbed.NodeName(i%m.nodes), fmt.Sprintf("gpu-%d", i/m.nodes%devicesPerNode))
	})
}

func allocateAndBind(ctx context.Context, client kubernetes.Interface, pod, node, device string) error {
	claims := client.ResourceV1().ResourceClaims(testbed.Namespace)
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{
		GenerateName: pod + "-extended-resources-", Annotations: map[string]string{resourcev1.ExtendedResourceClaimAnnotation: "true"},
	}}
	claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: deviceRequest, Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: deviceClass, Count: 1}}}
	claim, err := claims.Create(ctx, claim, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	claim.Annotations["finalizer"] = "as large as one, but does not delay the deletion"
	if claim, err = claims.Update(ctx, claim, metav1.UpdateOptions{}); err != nil {
		return err
	}
	claim.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
		{Request: deviceRequest, Driver: deviceDriver, Pool: node, Device: device},
	}}}
	claim.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: pod, UID: types.UID(pod)}}
	if claim, err = claims.UpdateStatus(ctx, claim, metav1.UpdateOptions{}); err != nil {
		return err
	}
	patch := fmt.Sprintf(`{"status": {"extendedResourceClaimStatus": {"resourceClaimName": %q, "requestMappings": [{"containerName": "main", "resourceName": %q, "requestName": %q}]}}}`,
		claim.Name, testbed.GPU, deviceRequest)
	if _, err = client.CoreV1().Pods(testbed.Namespace).Patch(ctx, pod, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
		return err
	}
	return testbed.Bind(ctx, client, pod, node)
}

// burstGangs are the gangs of the burst.
func (m devices) burstGangs() []testbed.Gang {
	gangs := testbed.Gangs(m.burst/m.size, m.size) // of which burst is a multiple
	for i := range gangs {
		gangs[i].Name, gangs[i].GPUs = fmt.Sprintf("burst-%04d", i), 1
	}
	return gangs
}

// ceiling returns how many pods per second plain clients bind, with devices, and removes the pods and all claims.
func (m devices) ceiling(ctx context.Context, bed *testbed.Bed) (float64, error) {
	gangs := m.burstGangs()
	pods := testbed.Pods(gangs)
	if err := bed.Create(ctx, pods); err != nil {
		return 0, err
	}
	clients, err := bed.PlainClients(ctx)
	if err != nil {
		return 0, err
	}
	limited, cancel := context.WithTimeout(ctx, burstTimeout)
	defer cancel()
	binds, err := bed.WatchBinds(limited)
	if err != nil {
		return 0, err
	}
	if err = m.allocateAndBind(limited, clients, pods); err != nil {
		return 0, err
	}
	if err = binds.Wait(limited, len(pods), bed.Cluster.Done()); err != nil {
		return 0, err
	}
	if err = bed.Remove(ctx, gangs...); err != nil {
		return 0, err
	}
	return binds.Counts().PerSecond(), bed.Client.ResourceV1().ResourceClaims(testbed.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
}

// bind returns how many pods per second a scheduler binds that has just started, from its readiness to the last bind.
func (m devices) bind(ctx context.Context, bed *testbed.Bed, b bench) (float64, error) {
	gangs := m.burstGangs()
	if err := bed.Submit(ctx, gangs...); err != nil {
		return 0, err
	}
	limited, cancel := context.WithTimeout(ctx, burstTimeout)
	defer cancel()
	binds, err := bed.WatchBinds(limited)
	if err != nil {
		return 0, err
	}
	s, err := bed.StartScheduler(ctx)
	if err != nil {
		return 0, err
	}
	defer s.Kill() // if it has not been stopped
	if err = s.Ready(limited); err != nil {
		return 0, err
	}
	began := time.Now() // all claims of a gang are written before its first bind
	profiled := s.Profile(ctx, "devices", time.Duration(m.burst)*time.Second/1000)
	if err = binds.Wait(limited, len(testbed.Pods(gangs)), s.Done()); err != nil {
		return 0, err
	}
	if err = profiled(); err != nil {
		return 0, err
	}
	rate := float64(m.burst) / binds.Counts().Last.Sub(began).Seconds()
	b.say("the scheduler has bound %d pods, %.0f per second", binds.Counts().Count, rate)
	if err = checkDevices(ctx, bed); err != nil {
		return 0, err
	}
	return rate, s.End()
}

// checkDevices fails if two claims have one device, or a pod with a node has no claim.
func checkDevices(ctx context.Context, bed *testbed.Bed) error {
	claims, err := bed.Client.ResourceV1().ResourceClaims(testbed.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	owners, node := map[string]string{}, map[string]string{}
	for i := range claims.Items {
		claim := &claims.Items[i]
		if claim.Status.Allocation == nil {
			continue
		}
		for _, r := range claim.Status.Allocation.Devices.Results {
			device := r.Pool + "/" + r.Device
			if other := owners[device]; other != "" {
				return fmt.Errorf("claims %s and %s have device %s", other, claim.Name, device)
			}
			owners[device], node[claim.Name] = claim.Name, r.Pool
		}
	}
	pods, err := bed.Client.CoreV1().Pods(testbed.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if status := pod.Status.ExtendedResourceClaimStatus; pod.Spec.NodeName != "" && (status == nil || node[status.ResourceClaimName] != pod.Spec.NodeName) {
			return fmt.Errorf("pod %s runs on %s without a device there", pod.Name, pod.Spec.NodeName)
		}
	}
	return nil
}
