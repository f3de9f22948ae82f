// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/test/scheduler"
)

// TestExtendedResources is DR1 to DR4: pods request an extended resource that a device class provides, on nodes that do
// not list it.
func TestExtendedResources(t *testing.T) {
	host := corev1.LabelHostname
	play(t, map[string]scenario{
		"DR1: a gang gets the devices of two nodes": {
			given: rows(nodes("n", 2, "8cpu"), gpuClass, devices("n1", 8), devices("n2", 8), gang("a", 3, pods(3, "1cpu 4gpu"))),
			step:  step{want: `a: Running Scheduled; 3 running`},
			then:  []step{{do: rows(allocates(3, 12)), want: `a: Running Scheduled; 3 running`}},
		},
		"DR2: a gang that requests more devices than exist takes none": {
			given: rows(nodes("n", 2, "8cpu"), gpuClass, devices("n1", 8), devices("n2", 8), gang("a", 5, pods(5, "1cpu 4gpu"))),
			step: step{
				want:   `a: Pending ExceedsClusterCapacity; 5 waiting Unschedulable`,
				prints: map[string]string{"a": "would not fit the empty nodes (at most 4 of 5 pods)"},
			},
			then: []step{{
				do: rows(allocates(0, 0), devices("n3", 4), node("n3", "8cpu")),
				want: `
					a: Running Scheduled; 5 running`,
			}, {do: rows(allocates(5, 20)), want: `a: Running Scheduled; 5 running`}},
		},
		"DR3: one node has a device plugin, one has a driver": {
			given: rows(node("driver", "8cpu"), node("plugin", "8cpu 8gpu"), gpuClass, devices("driver", 8), gang("a", 4, pods(4, "1cpu 4gpu"))),
			step:  step{want: `a: Running Scheduled; 4 running (driver 2, plugin 2)`, by: host},
			then:  []step{{do: rows(allocates(2, 8)), want: `a: Running Scheduled; 4 running`}},
		},
		"DR4: the capability of a queue counts both": {
			given: rows(
				node("driver", "8cpu"), node("plugin", "8cpu 8gpu"), gpuClass, devices("driver", 8), queue("q", 1, atMost("8gpu")),
				gang("a", 2, pods(2, "1cpu 4gpu"), in("q"))),
			step: step{want: `a: Running Scheduled; 2 running`},
			then: []step{{
				do: rows(gang("b", 1, pods(1, "1cpu 4gpu"), in("q"))),
				want: `
					a: Running Scheduled; 2 running
					b: Pending QueueFull; 1 waiting QueueFull`,
				prints: map[string]string{"b": "8 nvidia.com/gpu"},
			}},
		},
		"DR4: the capability of a queue counts claims": {
			given: rows(
				node("driver", "8cpu"), node("plugin", "8cpu 8gpu"), gpuClass, devices("driver", 8), queue("q", 1, atMost("8gpu")),
				claimsFor(4, "b-0", "c-0"), gang("a", 1, pods(1, "1cpu 4gpu"), in("q")), gang("b", 1, pods(1, "1cpu", usingOwn("b")), in("q"))),
			step: step{want: `
				a: Running Scheduled; 1 running
				b: Running Scheduled; 1 running`},
			then: []step{{
				do: rows(gang("c", 1, pods(1, "1cpu", usingOwn("c")), in("q"))),
				want: `
					a: Running Scheduled; 1 running
					b: Running Scheduled; 1 running
					c: Pending QueueFull; 1 waiting QueueFull`,
				prints: map[string]string{"c": "8 nvidia.com/gpu"},
			}},
		},
		"DR6: a claim that a gang of 17 shares counts once": {
			given: rows(
				node("driver", "64cpu"), gpuClass, devices("driver", 8), queue("q", 1, atMost("8gpu")), claimsFor(8, "shared"),
				gang("a", 17, pods(17, "1cpu", usingClaim("shared")), in("q"))),
			step: step{want: `a: Running Scheduled; 17 running`},
			then: []step{{
				do: rows(claimsFor(1, "b-0"), gang("b", 1, pods(1, "1cpu", usingOwn("b")), in("q"))),
				want: `
					a: Running Scheduled; 17 running
					b: Pending QueueFull; 1 waiting QueueFull`,
			}},
		},
		"nodes that are full, and nodes without devices": {
			given: rows(nodes("n", 4, "8cpu"), gpuClass, devices("n1", 2), devices("n2", 2), gang("a", 2, pods(2, "1cpu 2gpu"))),
			step:  step{want: `a: Running Scheduled; 2 running (n1 1, n2 1)`, by: host},
			then: []step{{
				do: rows(gang("b", 1, pods(1, "1cpu 1gpu"))),
				want: `
					a: Running Scheduled; 2 running
					b: Pending NotEnoughResources; 1 waiting Unschedulable`,
				prints: map[string]string{"b": "0/4 nodes are available: 2 Insufficient nvidia.com/gpu, 2 without nvidia.com/gpu"},
			}},
		},
		"claims of users hold the devices": {
			given: rows(
				nodes("n", 1, "8cpu"), gpuClass, deviceClass, devices("n1", 2), deviceClaims("a-0"),
				gang("a", 1, pods(1, "1cpu", usingOwn("a")))),
			step: step{want: `a: Running Scheduled; 1 running`},
			then: []step{{
				do: rows(gang("b", 2, pods(2, "1cpu 1gpu"))),
				want: `
					a: Running Scheduled; 1 running
					b: Pending NotEnoughResources; 2 waiting Unschedulable`,
			}, {
				do: rows(gang("c", 1, pods(1, "1cpu 1gpu"))),
				want: `
					a: Running Scheduled; 1 running
					b: Pending NotEnoughResources; 2 waiting Unschedulable
					c: Running Scheduled; 1 running`,
				prints: map[string]string{"b": "Insufficient nvidia.com/gpu"},
			}},
		},
		"the resource that every device class has": {
			given: rows(nodes("n", 2, "8cpu"), deviceClass, devices("n2", 2), gang("a", 2, pods(2, "1cpu", requests(implicitGPU, 1)))),
			step:  step{want: `a: Running Scheduled; 2 running (n2 2)`, by: host},
			then:  []step{{do: rows(allocates(2, 2)), want: `a: Running Scheduled; 2 running`}},
		},
		"the class and the devices come after the gang": {
			given: rows(nodes("n", 1, "8cpu"), gang("a", 2, pods(2, "1cpu 1gpu"))),
			step:  step{want: `a: Pending Unschedulable; 2 waiting Unschedulable`, prints: map[string]string{"a": "1 without nvidia.com/gpu"}},
			then: []step{
				{do: rows(gpuClass), want: `a: Pending Unschedulable; 2 waiting Unschedulable`},
				{do: rows(devices("n1", 2)), want: `a: Running Scheduled; 2 running`},
				{do: rows(allocates(2, 2)), want: `a: Running Scheduled; 2 running`},
			},
		},
		"pods are evicted for devices of both kinds": {
			evicts: true, cluster: controllers,
			given: rows(
				node("driver", "8cpu"), node("plugin", "8cpu 2gpu"), gpuClass, devices("driver", 2), priorityClass("low", 1), priorityClass("high", 100),
				gang("a", 1, pods(4, "1cpu 1gpu", priority("low")))),
			step: step{want: `a: Running Scheduled; 4 running (driver 2, plugin 2)`, by: host},
			then: []step{{
				do: rows(gang("b", 1, pods(1, "1cpu 2gpu", priority("high")))),
				want: `
					a: Running Scheduled; 2 running
					b: Running Scheduled; 1 running`,
			}, {
				do: rows(gang("c", 1, pods(1, "1cpu 1gpu", priority("high")))),
				want: `
					a: Running Scheduled; 1 running
					b: Running Scheduled; 1 running
					c: Running Scheduled; 1 running`,
			}},
		},
		"devices are free again when their pods are deleted": {
			cluster: controllers,
			given:   rows(nodes("n", 1, "8cpu"), gpuClass, devices("n1", 2), gang("a", 2, pods(2, "1cpu 1gpu"))),
			step:    step{want: `a: Running Scheduled; 2 running`},
			then: []step{
				{do: rows(func(h *harness) { h.remove(jobLabel+"=a", 1) }, gang("b", 2, pods(2, "1cpu 1gpu"))), want: `b: Running Scheduled; 2 running`},
				{do: rows(allocates(2, 2)), want: `b: Running Scheduled; 2 running`},
			},
		},
	})
}

// TestExtendedResourcesRefused is the first half of DR5: the API server refuses part of what a gang needs.
func TestExtendedResourcesRefused(t *testing.T) {
	given := rows(nodes("n", 2, "8cpu"), gpuClass, devices("n1", 8), devices("n2", 8))
	play(t, map[string]scenario{
		"a claim": {
			given: append(slices.Clone(given),
				refusesClaim("a-1-extended-resources-"),
				gang("a", 3, pods(3, "1cpu 4gpu"))),
			step: step{want: `a: Pending ClaimsNotReady; 3 waiting ClaimsNotReady`, prints: map[string]string{"a": "the devices of pod a-1 on node n"}},
			then: []step{
				{do: rows(refusingNoMore), want: `a: Running Scheduled; 3 running`},
				{do: rows(allocates(3, 12)), want: `a: Running Scheduled; 3 running`},
			},
		},
		"a bind": {
			given: append(slices.Clone(given),
				refusesBind("a-1"), gang("a", 3, pods(3, "1cpu 4gpu"))),
			step: step{want: `a: Pending BindFailed; 2 running, 1 waiting BindFailed`, short: "a"},
			then: []step{
				{do: rows(refusingNoMore), want: `a: Running Scheduled; 3 running`},
				{do: rows(allocates(3, 12)), want: `a: Running Scheduled; 3 running`},
			},
		},
	})
}

// TestExtendedResourcesKilled is the second half of DR5: the scheduler is killed between the creation of the claims and
// the last bind. The next one completes the gang and deletes the claims that no pod uses.
func TestExtendedResourcesKilled(t *testing.T) {
	for name, kill := range map[string]func(*testing.T, *harness){
		"before the first bind": func(_ *testing.T, h *harness) {
			h.do(refusesBind("a-0", "a-1", "a-2"))
			s := h.startScheduler()
			h.do(gang("a", 3, pods(3, "1cpu 4gpu")))
			h.eventually(func() error { return h.allocated(3, 12) })
			s.Kill()
			_, _ = s.Wait()
			h.do(refusingNoMore)
		},
		"after the first bind": func(_ *testing.T, h *harness) {
			p, args := h.newProxy()
			s := h.startScheduler(append(args, "--bind-workers=1")...)
			p.OnBind(func(n int) {
				if n == 1 {
					s.Kill()
				}
			})
			h.do(gang("a", 3, pods(3, "1cpu 4gpu")))
			_, _ = s.Wait()
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, noControllers)
			h.do(nodes("n", 2, "8cpu"), gpuClass, devices("n1", 8), devices("n2", 8))
			kill(t, h)
			left := h.claimsForExtendedResources()
			if len(left) == 0 {
				t.Fatal("the scheduler that was killed has left no claims")
			}
			h.start()
			h.awaitStable(`a: Running Scheduled; 3 running`, "")
			h.do(allocates(3, 12))
			h.must(h.view.invariants())
		})
	}
}

// TestExtendedResourcesBesideStock compares the claims for equal pods with those of the stock kube-scheduler.
func TestExtendedResourcesBesideStock(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	variants := map[string]func(*corev1.Pod){
		"one-container":  func(p *corev1.Pod) { requestOf(&p.Spec.Containers[0], gpuResource, 2) },
		"two-containers": func(p *corev1.Pod) { container(p, gpuResource, 1); container(p, gpuResource, 3) },
		"init-container": func(p *corev1.Pod) { container(p, gpuResource, 1); initContainer(p, gpuResource, 3, nil) },
		"sidecar":        func(p *corev1.Pod) { container(p, gpuResource, 1); initContainer(p, gpuResource, 2, &always) },
		"implicit": func(p *corev1.Pod) {
			requestOf(&p.Spec.Containers[0], "deviceclass.resource.kubernetes.io/gpu.nvidia.com", 2)
		},
		"two-resources": func(p *corev1.Pod) {
			requestOf(&p.Spec.Containers[0], gpuResource, 1)
			container(p, "deviceclass.resource.kubernetes.io/gpu.nvidia.com", 1)
		},
		"none": func(*corev1.Pod) {},
	}
	h := newHarness(t, stock)
	h.do(nodes("n", 2, "64cpu"), gpuClass, devices("n1", 32), devices("n2", 32))
	h.start()
	var list []*corev1.Pod
	for variant, edit := range variants {
		for prefix, name := range map[string]string{"ours": scheduler.Name, "stock": corev1.DefaultSchedulerName} {
			pod := newPod(prefix+"-"+variant, "1cpu", edit)
			pod.Spec.SchedulerName = name
			list = append(list, pod)
		}
	}
	h.create(list)
	for variant := range variants {
		h.eventually(func() error {
			ours, err := h.claimOf("ours-" + variant)
			if err != nil {
				return err
			}
			theirs, err := h.claimOf("stock-" + variant)
			if err != nil {
				return err
			}
			if diff := cmp.Diff(theirs, ours); diff != "" {
				t.Fatalf("%s (-stock +ours):\n%s", variant, diff)
			}
			return nil
		})
	}
	h.do(allocates(12, 32))
}

// claimed is what a pod gets for its extended resources.
type claimed struct {
	Spec     resourcev1.ResourceClaimSpec
	Mappings []corev1.ContainerExtendedResourceRequest
	Devices  int
}

// claimOf returns what a running pod got.
func (h *harness) claimOf(name string) (claimed, error) {
	pod, err := h.client.CoreV1().Pods(namespace).Get(h.ctx, name, metav1.GetOptions{})
	h.must(err)
	if pod.Status.Phase != corev1.PodRunning {
		return claimed{}, fmt.Errorf("pod %s is %s", name, pod.Status.Phase)
	}
	status := pod.Status.ExtendedResourceClaimStatus
	if status == nil {
		return claimed{}, nil
	}
	claim, err := h.client.ResourceV1().ResourceClaims(namespace).Get(h.ctx, status.ResourceClaimName, metav1.GetOptions{})
	h.must(err)
	return claimed{claim.Spec, status.RequestMappings, len(claim.Status.Allocation.Devices.Results)}, nil
}

const (
	gpuResource = "nvidia.com/gpu"
	implicitGPU = corev1.ResourceName(resourcev1.ResourceDeviceClassPrefix + gpu)
)

// claimsFor are claims for devices of gpuClass.
func claimsFor(count int64, names ...string) row {
	spec := oneDevice()
	spec.Devices.Requests[0].Exactly.DeviceClassName, spec.Devices.Requests[0].Exactly.Count = "gpu.nvidia.com", count
	return claimsOf(spec, names...)
}

// gpuClass provides nvidia.com/gpu, as the class of NVIDIA's driver does.
func gpuClass(h *harness) {
	_, err := h.client.ResourceV1().DeviceClasses().Create(h.ctx, &resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: "gpu.nvidia.com"},
		Spec: resourcev1.DeviceClassSpec{
			ExtendedResourceName: ptr.To(gpuResource),
			Selectors:            []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", driver)}}},
		},
	}, metav1.CreateOptions{})
	h.must(err)
}

func requests(name corev1.ResourceName, count int64) func(*corev1.Pod) {
	return func(p *corev1.Pod) { requestOf(&p.Spec.Containers[0], name, count) }
}

// requestOf sets request and limit of a container, which must be equal.
func requestOf(c *corev1.Container, name corev1.ResourceName, count int64) {
	for _, list := range []*corev1.ResourceList{&c.Resources.Requests, &c.Resources.Limits} {
		if *list == nil {
			*list = corev1.ResourceList{}
		}
		(*list)[name] = *resource.NewQuantity(count, resource.DecimalSI)
	}
}

func container(p *corev1.Pod, name corev1.ResourceName, count int64) {
	p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: fmt.Sprint("c", len(p.Spec.Containers)), Image: "image"})
	requestOf(&p.Spec.Containers[len(p.Spec.Containers)-1], name, count)
}

func initContainer(p *corev1.Pod, name corev1.ResourceName, count int64, restart *corev1.ContainerRestartPolicy) {
	p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Name: "init", Image: "image", RestartPolicy: restart})
	requestOf(&p.Spec.InitContainers[0], name, count)
}

// refusesClaim has the API server refuse to create claims whose names are generated from the prefix.
func refusesClaim(prefix string) row {
	return func(h *harness) {
		h.deny(refusal, admissionv1.Create, admissionv1.Rule{APIGroups: []string{resourcev1.GroupName}, APIVersions: []string{"v1"}, Resources: []string{"resourceclaims"}},
			fmt.Sprintf("!has(object.metadata.generateName) || object.metadata.generateName != %q", prefix))
		h.refused(func() error {
			claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix}, Spec: oneDevice()}
			_, err := h.client.ResourceV1().ResourceClaims(namespace).Create(h.ctx, claim, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		})
	}
}

// refusesBind has the API server refuse to bind pods.
func refusesBind(pods ...string) row {
	return func(h *harness) {
		h.deny(refusal, admissionv1.Create, admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/binding"}},
			fmt.Sprintf("!(object.metadata.name in [%s])", `"`+strings.Join(pods, `", "`)+`"`))
		h.refused(func() error {
			binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: pods[0], Namespace: namespace}, Target: corev1.ObjectReference{Kind: "Node", Name: "n1"}}
			return h.client.CoreV1().Pods(namespace).Bind(h.ctx, binding, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		})
	}
}

// refused waits until the API server refuses a request by a policy.
func (h *harness) refused(request func() error) {
	h.t.Helper()
	h.eventually(func() error {
		if err := request(); err == nil || !strings.Contains(err.Error(), refusal) {
			return fmt.Errorf("the policy is not in force: %w", err)
		}
		return nil
	})
}

// allocates waits until pods have that many claims for extended resources with that many devices in all.
func allocates(claims, devices int) row {
	return func(h *harness) {
		h.t.Helper()
		h.eventually(func() error { return h.allocated(claims, devices) })
		for _, c := range h.claimsForExtendedResources() {
			pod, err := h.client.CoreV1().Pods(namespace).Get(h.ctx, c.OwnerReferences[0].Name, metav1.GetOptions{})
			h.must(err)
			status := pod.Status.ExtendedResourceClaimStatus
			if pod.UID != c.OwnerReferences[0].UID || pod.Spec.NodeName == "" || status == nil || status.ResourceClaimName != c.Name || len(status.RequestMappings) == 0 {
				h.t.Errorf("claim %s is for pod %s, which is on node %q and uses %v", c.Name, pod.Name, pod.Spec.NodeName, status)
			}
		}
	}
}

// allocated returns how the claims for extended resources differ from those that are expected; nil if they do not. No
// device may be in two claims.
func (h *harness) allocated(claims, devices int) error {
	list := h.claimsForExtendedResources()
	holders := map[string]string{}
	for _, c := range list {
		if c.Status.Allocation == nil {
			return fmt.Errorf("claim %s has no devices", c.Name)
		}
		for _, d := range c.Status.Allocation.Devices.Results {
			id := strings.Join([]string{d.Driver, d.Pool, d.Device}, "/")
			if holders[id] != "" {
				h.t.Fatalf("device %s is in the claims %s and %s", id, holders[id], c.Name)
			}
			holders[id] = c.Name
		}
	}
	if len(list) != claims || len(holders) != devices {
		return fmt.Errorf("%d claims have %d devices, want %d with %d", len(list), len(holders), claims, devices)
	}
	return nil
}

// claimsForExtendedResources returns the claims that schedulers have created.
func (h *harness) claimsForExtendedResources() []resourcev1.ResourceClaim {
	list, err := h.client.ResourceV1().ResourceClaims(namespace).List(h.ctx, metav1.ListOptions{})
	h.must(err)
	return slices.DeleteFunc(list.Items, func(c resourcev1.ResourceClaim) bool {
		return c.Annotations[resourcev1.ExtendedResourceClaimAnnotation] != "true"
	})
}
