// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// withGPUs has two nodes with device plugins, of a model each, one node whose GPUs are those of a DRA driver, and one with AMD
// GPUs. Pods run there and wait.
func withGPUs(t *testing.T, more ...runtime.Object) *pretended {
	t.Helper()
	p := newPretended()
	amounts := func(name corev1.ResourceName, gpus, cpus int64) corev1.ResourceList {
		list := corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(cpus, resource.DecimalSI)}
		if gpus > 0 {
			list[name] = *resource.NewQuantity(gpus, resource.DecimalSI)
		}
		return list
	}
	node := func(name string, labels map[string]string, allocatable corev1.ResourceList) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
		allocatable[corev1.ResourcePods] = resource.MustParse("110")
		n.Status.Allocatable = allocatable
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		return n
	}
	pod := func(name, on string, gpus, cpus int64) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
		p.Spec.NodeName = on
		p.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: amounts("nvidia.com/gpu", gpus, cpus)}}}
		return p
	}
	h100 := map[string]string{"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "example.com/pool": "new"}
	a100 := map[string]string{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "example.com/pool": "old"}
	for _, object := range append([]runtime.Object{
		node("a", a100, amounts("nvidia.com/gpu", 8, 96)), node("b", h100, amounts("nvidia.com/gpu", 8, 192)),
		node("c", h100, amounts("nvidia.com/gpu", 0, 192)), node("d", nil, amounts("amd.com/gpu", 4, 64)),
		pod("one", "a", 1, 90), pod("two", "b", 2, 8), pod("three", "c", 3, 24), pod("four", "", 4, 32), pod("five", "", 8, 64),
	}, more...) {
		if err := p.core.Tracker().Add(object); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// driver provides 8 devices of node c as nvidia.com/gpu.
func driver() []runtime.Object {
	node := "c"
	slice := &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: node},
		Spec:       resourcev1.ResourceSliceSpec{Driver: "gpu.example.com", NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1}},
	}
	for i := range 8 {
		slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{Name: fmt.Sprint("gpu-", i)})
	}
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu.example.com"}}
	class.Spec.ExtendedResourceName = new("nvidia.com/gpu")
	return []runtime.Object{slice, class}
}

func TestTopGPUs(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		line  string
		given []runtime.Object
	}{
		"top-gpus":             {line: "top gpus"},
		"top-gpus-json":        {line: "top gpus -o json"},
		"top-gpus-dra":         {"top gpus", driver()},
		"top-gpus-resource":    {line: "top gpus --resource amd.com/gpu"},
		"top-gpus-model-label": {"top gpus --model-label example.com/pool", driver()},
		"complete-gpus":        {line: "__complete top gpus "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			printed(t, name, run(t, withGPUs(t, test.given...), "", strings.Split(test.line, " ")...))
		})
	}
}

// TestTopGPUsWithoutRights refuses one kind of objects each.
func TestTopGPUsWithoutRights(t *testing.T) {
	t.Parallel()
	const needed = "top gpus reads the nodes and the pods of all namespaces: it requires a ClusterRoleBinding to a role that may list them, such as batch-scheduler-record"
	const warning = "Warning: GPUs of DRA drivers are not counted: "
	for refused, want := range map[string]string{
		"nodes": needed, "pods": needed, "deviceclasses": warning, "resourceslices": warning, "resourceclaims": warning,
	} {
		t.Run(refused, func(t *testing.T) {
			t.Parallel()
			c := withGPUs(t, driver()...)
			c.refuse("list", refused, apierrors.NewForbidden(schema.GroupResource{Resource: refused}, "", errors.New("no")))
			got := run(t, c, "", "top", "gpus")
			if !strings.Contains(got, want) || strings.Contains(got, "H100-80GB-HBM3      1") != (want == warning) {
				t.Errorf("want %q in %q, and nodes without drivers only after a warning", want, got)
			}
		})
	}
}

// TestTopGPUsReadsNoDevicesWithoutAClass lists the requests: without a class of the resource, there are none for what may be
// large.
func TestTopGPUsReadsNoDevicesWithoutAClass(t *testing.T) {
	t.Parallel()
	c := withGPUs(t)
	run(t, c, "", "top", "gpus")
	for _, action := range c.core.Actions() {
		if kind := action.GetResource().Resource; kind == "resourceslices" || kind == "resourceclaims" {
			t.Errorf("%s %s", action.GetVerb(), kind)
		}
	}
}
