// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	batchfake "github.com/batch-scheduler/batch-scheduler/pkg/client/clientset/versioned/fake"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
)

// claims measures cycles of the whole scheduler with fake clients, where nodes have devices of drivers and a gang arrives.
// The first two gangs wait in a full cluster, the next two in a cluster where half of the nodes are idle and have devices
// of another model: there each device is compared with the selectors, once. The others are placed.
func claims(full, free int) []benchmark {
	refused := func(most float64) []limit {
		return []limit{
			{name: "refused", steps: []string{"arrived"}, most: most},
			{name: "refused/allocations", steps: []string{"arrived"}, unit: allocations},
			{name: "again", steps: []string{"again"}, most: 0.2},
		}
	}
	placed := []limit{
		{name: "cost", steps: []string{"arrived"}, most: 250, unit: microseconds, per: claimsGang},
		{name: "allocations", steps: []string{"arrived"}, unit: allocations, per: claimsGang},
	}
	var list []benchmark
	for _, c := range []claimsCase{
		{name: "full/resource", about: "a gang requests an extended resource of a device class", nodes: full, used: full},
		{name: "full/claims", about: "a gang has claims for a device of a class", nodes: full, used: full, claim: oneOf("")},
		{name: "full/selector", about: "a gang has claims for a model, of which all devices are in use", nodes: full, used: full / 2, claim: oneOf(modelA)},
		{name: "full/alternatives", about: "a gang has claims for one of two models, of which all devices are in use", nodes: full, used: full / 2, claim: oneOf(modelA, modelC)},
		{name: "free/resource", about: "a gang requests an extended resource of a device class", nodes: free, placed: true},
		{name: "free/claims", about: "a gang has claims for a device of a class", nodes: free, claim: oneOf(""), placed: true},
		{name: "free/selector", about: "a gang has claims for a model that half of the nodes have", nodes: free, claim: oneOf(modelA), placed: true},
	} {
		limits := placed
		switch {
		case c.placed:
		case c.used < c.nodes:
			limits = refused(150)
		default:
			limits = refused(20)
		}
		list = append(list, benchmark{name: "claims/" + c.name, about: c.about, build: c.build, whole: c.run, cycles: []cycle{{limits: limits}}})
	}
	return list
}

const (
	claimsGang   = 64
	claimsDriver = "gpu.example.com"
	claimsClass  = "gpu"

	// Models of devices: modelA is that of the first half of the nodes, modelB that of the others; no node has modelC.
	modelA, modelB, modelC = "A", "B", "C"
)

// claimsCase is one benchmark of claims.
type claimsCase struct {
	name, about string
	nodes, used int // nodes whose devices are all in use, each by another pod
	claim       *resourcev1.DeviceRequest
	placed      bool // the gang is placed
}

// oneOf requests one device of one of the models; empty for any model.
func oneOf(models ...string) *resourcev1.DeviceRequest {
	selectors := func(model string) []resourcev1.DeviceSelector {
		if model == "" {
			return nil
		}
		return []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.attributes[%q].model == %q", claimsDriver, model)}}}
	}
	mode := resourcev1.DeviceAllocationModeExactCount
	if len(models) == 1 {
		return &resourcev1.DeviceRequest{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{
			DeviceClassName: claimsClass, Selectors: selectors(models[0]), AllocationMode: mode, Count: 1,
		}}
	}
	r := &resourcev1.DeviceRequest{Name: "gpu"}
	for _, model := range models {
		r.FirstAvailable = append(r.FirstAvailable, resourcev1.DeviceSubRequest{
			Name: "model-" + model, DeviceClassName: claimsClass, Selectors: selectors(model), AllocationMode: mode, Count: 1,
		})
	}
	return r
}

// build returns the nodes with their devices, the pods that use them, and the gang, which is pending.
func (c claimsCase) build() *fixture {
	w := newFixture(c.nodes)
	withoutGPUs := amounts(64, 512, 0)
	withoutGPUs[v1.ResourcePods] = w.nodes[0].Status.Allocatable[v1.ResourcePods]
	w.classes = []resourcev1.DeviceClass{{
		ObjectMeta: metav1.ObjectMeta{Name: claimsClass},
		Spec: resourcev1.DeviceClassSpec{
			ExtendedResourceName: ptr.To("nvidia.com/gpu"),
			Selectors:            []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", claimsDriver)}}},
		},
	}}
	for i, n := range w.nodes {
		n.Status.Allocatable, n.Status.Capacity = withoutGPUs, withoutGPUs
		w.slices = append(w.slices, sliceOf(n, i < (c.nodes+1)/2))
	}
	w.addQueue(queueName(0), 1)
	if c.used > 0 {
		used := w.nodes
		w.nodes = used[:c.used]
		for g := range gpusPerNode {
			w.add(job{name: fmt.Sprintf("full-%d", g), queue: queueName(0), class: low, min: c.used, size: c.used, asks: amounts(1, 1, 0), alter: usesClaim}.running())
		}
		w.nodes = used
		for i := range w.pods {
			w.claims = append(w.claims, *claimOf(w.pods[i], oneOf(""), i/c.used))
		}
	}
	return w
}

// sliceOf returns the devices of a node.
func sliceOf(n *v1.Node, first bool) resourcev1.ResourceSlice {
	model := modelB
	if first {
		model = modelA
	}
	slice := resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "slice-" + n.Name, UID: types.UID("slice-" + n.Name)},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: claimsDriver, NodeName: &n.Name, Pool: resourcev1.ResourcePool{Name: n.Name, ResourceSliceCount: 1},
		},
	}
	for d := range gpusPerNode {
		slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{
			Name: deviceName(d), Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"model": {StringValue: &model}},
		})
	}
	return slice
}

func deviceName(i int) string { return fmt.Sprintf("gpu-%d", i) }

// usesClaim makes a pod use the claim that claimOf makes from a template.
func usesClaim(pod *v1.Pod) {
	name := "claim-of-" + pod.Name
	pod.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: ptr.To("template")}}
	pod.Spec.Containers[0].Resources.Claims = []v1.ResourceClaim{{Name: "gpu"}}
	pod.Status.ResourceClaimStatuses = []v1.PodResourceClaimStatus{{Name: "gpu", ResourceClaimName: &name}}
}

// claimOf returns the claim of a pod. If the pod runs, it has the device with a number.
func claimOf(pod *v1.Pod, request *resourcev1.DeviceRequest, device int) *resourcev1.ResourceClaim {
	claim := &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: *pod.Status.ResourceClaimStatuses[0].ResourceClaimName, UID: types.UID("claim-" + pod.UID), ResourceVersion: "1",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID, Controller: ptr.To(true)}},
		},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{*request}}},
	}
	if node := pod.Spec.NodeName; node != "" {
		claim.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
			{Request: request.Name, Driver: claimsDriver, Pool: node, Device: deviceName(device)},
		}}}
		claim.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: pod.Name, UID: pod.UID}}
	}
	return claim
}

// run runs a cycle, adds the gang, and runs two more cycles.
func (c claimsCase) run(ctx context.Context, w *fixture) (cost, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	pods, groups, devices := watch.NewFakeWithChanSize(claimsGang, false), watch.NewFakeWithChanSize(1, false), watch.NewFakeWithChanSize(claimsGang, false)
	took, registry := newCost(), prometheus.NewRegistry()
	s, err := newScheduler(w, nil, registry, func(kube *fake.Clientset, batch *batchfake.Clientset, policy *conf.Configuration) {
		policy.StarvationAfter = 0
		watches := func(kind string, w *watch.FakeWatcher) {
			kube.PrependWatchReactor(kind, func(clienttesting.Action) (bool, watch.Interface, error) { return true, w, nil })
		}
		watches("pods", pods)
		watches("resourceclaims", devices)
		batch.PrependWatchReactor("podgroups", func(clienttesting.Action) (bool, watch.Interface, error) { return true, groups, nil })
	})
	if err != nil {
		return took, err
	}
	if err = s.Start(ctx); err != nil {
		return took, err
	}
	s.RunOnce(ctx)
	gang := &fixture{clock: w.clock}
	gang.add(c.gang())
	groups.Add(gang.groups[0])
	for _, pod := range gang.pods {
		if c.claim != nil {
			devices.Add(claimOf(pod, c.claim, 0))
		}
		pods.Add(pod)
	}
	time.Sleep(eventDelay)
	runtime.GC()
	for _, step := range []string{"arrived", "again"} {
		took.measure(step, func() {
			pprof.Do(ctx, pprof.Labels("decide", "claims/"+c.name, "step", step), s.RunOnce)
		})
	}
	return took, c.check(registry)
}

func (c claimsCase) gang() job {
	j := job{name: "gang", queue: queueName(0), class: low, min: claimsGang, size: claimsGang, asks: amounts(1, 1, 1)}
	if c.claim != nil {
		j.asks, j.alter = amounts(1, 1, 0), usesClaim
	}
	return j
}

// check compares the number of pods that are to be bound with the expected one.
func (c claimsCase) check(registry *prometheus.Registry) error {
	families, err := registry.Gather()
	if err != nil {
		return err
	}
	bound, want := 0, 0
	if c.placed {
		want = claimsGang
	}
	for _, family := range families {
		if family.GetName() != "batch_scheduler_decisions_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			if m.GetLabel()[0].GetValue() == "allocate" {
				bound += int(m.GetCounter().GetValue())
			}
		}
	}
	if bound != want {
		return fmt.Errorf("%d pods are bound, and should be %d", bound, want)
	}
	return nil
}
