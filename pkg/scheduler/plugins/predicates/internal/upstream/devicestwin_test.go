// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	schedulerframework "k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

// TestDevicesEqualPlugin asks for random pods and nodes whether the devices of the node satisfy the pod. The answer must be
// that of kube-scheduler's plugin, which sees all devices of the cluster. In between, devices are reserved and released.
func TestDevicesEqualPlugin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(inBubble{t}, func(t *rapid.T) {
			ctx, stop := context.WithCancel(context.Background())
			defer func() { stop(); synctest.Wait() }()
			d := &drawn{T: t, taken: map[string]bool{}}
			r, cluster := d.runner(ctx)
			var reserved []api.ExternalReservation
			for step := range rapid.IntRange(1, 4).Draw(t, "steps") {
				d.compare(r, cluster, step)
				task := cluster.Tasks()[api.TaskID(rapid.SampledFrom(d.pods).Draw(t, "pod").UID)]
				node := cluster.Node(rapid.SampledFrom(d.nodes).Draw(t, "node").Name)
				if len(reserved) > 0 && rapid.Bool().Draw(t, "release") {
					reserved[0].Release()
					reserved = reserved[1:]
				} else if r.Unfit(cluster.ClassOf(task), task.Pod, node, api.Now) == nil {
					if a, ok := r.ReserveDevices(task, node).(*allocation); ok {
						if a.reserveErr != nil {
							t.Fatalf("pod %s fits on %s, and nothing can be reserved: %v", task.Pod.Name, node.Name, a.reserveErr)
						}
						reserved = append(reserved, a)
					}
				}
			}
		})
	})
}

// compare asks for all pods and nodes.
func (d *drawn) compare(r *FilterRunner, cluster *model.Cluster, step int) {
	for _, pod := range d.pods {
		task := cluster.Tasks()[api.TaskID(pod.UID)]
		for _, node := range d.nodes {
			n := cluster.Node(node.Name)
			got := r.Unfit(cluster.ClassOf(task), pod, n, api.Now)
			c, state := r.devicePlugins[0], schedulerframework.NewCycleState()
			_, status := c.PreFilter(r.ctx, state, pod, nil)
			if status.IsSuccess() {
				r.snapshot.sync(api.Now)
				status = c.Filter(r.ctx, state, pod, r.snapshot.node(n, api.Now))
			}
			if want := status.IsSuccess() || status.IsSkip(); (got == nil) != want {
				d.Fatalf("step %d: pod %s on %s: refused for %v, and kube-scheduler says %v", step, pod.Name, node.Name, got, status)
			}
		}
	}
}

// drawn is a random cluster.
type drawn struct {
	*rapid.T
	objects []runtime.Object
	nodes   []*v1.Node
	pods    []*v1.Pod
	devices []resourcev1.DeviceRequestAllocationResult // all that exist
	taken   map[string]bool                            // devices that are allocated
}

const (
	twinDriver   = "test.driver"
	twinResource = "nvidia.com/gpu"
)

func (d *drawn) yes(name string, of int) bool { return rapid.IntRange(1, of).Draw(d.T, name) == 1 }

// runner returns a runner with an open session over the cluster.
func (d *drawn) runner(ctx context.Context) (*FilterRunner, *model.Cluster) {
	d.addNodes()
	d.addClasses()
	for _, n := range d.nodes {
		for pool := range rapid.IntRange(0, 2).Draw(d.T, "pools") {
			d.addPool(fmt.Sprintf("%s-%d", n.Name, pool), func(s *resourcev1.ResourceSliceSpec) { s.NodeName = &n.Name })
		}
	}
	if d.yes("network", 2) {
		d.addPool("network", func(s *resourcev1.ResourceSliceSpec) { s.AllNodes = ptr.To(true) })
	}
	d.addAllocated()
	for i := range rapid.IntRange(1, 3).Draw(d.T, "pods") {
		d.addPod(fmt.Sprintf("p%d", i))
	}
	client := fake.NewClientset(d.objects...)
	factory := informers.NewSharedInformerFactory(client, 0)
	devices, err := NewDevices(factory, func() {})
	if err != nil {
		d.Fatal(err)
	}
	r, err := NewFilterRunner(Options{
		Plugin: "predicates", Informers: factory, Devices: devices, Kube: client,
		Features: feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate),
	})
	if err != nil {
		d.Fatal(err)
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	synctest.Wait()
	cluster := model.NewCluster(model.Options{SchedulerNames: []string{"batch-scheduler"}, DefaultQueue: "default"})
	cluster.Events().SetDeviceResources([]v1.ResourceName{twinResource})
	for _, n := range d.nodes {
		cluster.Events().SetNode(n)
	}
	for _, p := range d.pods {
		cluster.Events().SetPod(p)
	}
	cluster.Events().Recompute()
	r.Open(cluster, logr.Discard())
	return r, cluster
}

func (d *drawn) addNodes() {
	for i := range rapid.IntRange(1, 3).Draw(d.T, "nodes") {
		n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i)}}
		n.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: resource.MustParse("8"), v1.ResourcePods: resource.MustParse("9")}
		if d.yes("plugin", 4) {
			n.Status.Allocatable[twinResource] = resource.MustParse("2")
		}
		d.nodes = append(d.nodes, n)
	}
}

// addClasses adds a class for all devices, and one whose selector fails for devices without the attribute.
func (d *drawn) addClasses() {
	for name, expression := range map[string]string{"any": "true", "a": isModel("A")} {
		class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
		class.Spec.Selectors = selectors(expression)
		if name == "any" {
			class.Spec.ExtendedResourceName = ptr.To(twinResource)
		}
		d.objects = append(d.objects, class)
	}
}

func isModel(model string) string {
	return fmt.Sprintf("device.attributes[%q].model == %q", twinDriver, model)
}

func selectors(expression string) []resourcev1.DeviceSelector {
	return []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}}
}

// addPool adds a pool of one or two slices, which may lack another one, be older, or have counters.
func (d *drawn) addPool(name string, on func(*resourcev1.ResourceSliceSpec)) {
	count := rapid.IntRange(1, 2).Draw(d.T, "slices")
	declared := int64(count)
	if d.yes("incomplete", 6) {
		declared++
	}
	counters := d.yes("counters", 4)
	if counters {
		declared++
		shared := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name + "-counters"}}
		shared.Spec = resourcev1.ResourceSliceSpec{Driver: twinDriver, Pool: resourcev1.ResourcePool{Name: name, ResourceSliceCount: declared}}
		shared.Spec.SharedCounters = []resourcev1.CounterSet{{Name: "card", Counters: map[string]resourcev1.Counter{"partitions": {Value: resource.MustParse("2")}}}}
		on(&shared.Spec)
		d.objects = append(d.objects, shared)
	}
	for i := range count {
		slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(name, "-", i)}}
		slice.Spec = resourcev1.ResourceSliceSpec{Driver: twinDriver, Pool: resourcev1.ResourcePool{Name: name, ResourceSliceCount: declared}}
		on(&slice.Spec)
		if d.yes("newer", 8) {
			slice.Spec.Pool.Generation = 1
		}
		for j := range rapid.IntRange(1, 4).Draw(d.T, "devices") {
			slice.Spec.Devices = append(slice.Spec.Devices, d.device(fmt.Sprintf("d%d-%d", i, j), counters))
			d.devices = append(d.devices, resourcev1.DeviceRequestAllocationResult{Request: "r", Driver: twinDriver, Pool: name, Device: fmt.Sprintf("d%d-%d", i, j)})
		}
		d.objects = append(d.objects, slice)
	}
}

func (d *drawn) device(name string, counters bool) resourcev1.Device {
	device := resourcev1.Device{Name: name, Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{}}
	if !d.yes("without model", 8) {
		device.Attributes["model"] = resourcev1.DeviceAttribute{StringValue: ptr.To(rapid.SampledFrom([]string{"A", "B"}).Draw(d.T, "model"))}
	}
	if d.yes("tainted", 8) {
		device.Taints = []resourcev1.DeviceTaint{{Key: "broken", Effect: resourcev1.DeviceTaintEffectNoSchedule}}
	}
	if d.yes("several", 8) {
		device.AllowMultipleAllocations = ptr.To(true)
	}
	if d.yes("later", 12) {
		device.BindingConditions, device.BindingFailureConditions = []string{"ready"}, []string{"failed"}
	}
	if counters && d.yes("consumes", 2) {
		device.ConsumesCounters = []resourcev1.DeviceCounterConsumption{{CounterSet: "card", Counters: map[string]resourcev1.Counter{"partitions": {Value: resource.MustParse("1")}}}}
	}
	return device
}

// addAllocated adds claims that have some of the devices.
func (d *drawn) addAllocated() {
	for i, result := range d.devices {
		if !d.yes("allocated", 3) {
			continue
		}
		if d.yes("admin", 8) {
			result.AdminAccess = ptr.To(true)
		}
		claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint("used-", i), UID: types.UID(fmt.Sprint("used-", i))}}
		claim.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{result}}}
		d.objects = append(d.objects, claim)
	}
}

// addPod adds a pod that requests an extended resource, or has one or two claims.
func (d *drawn) addPod(name string) {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}}
	pod.Spec.SchedulerName = "batch-scheduler"
	pod.Spec.Containers = []v1.Container{{Name: "main"}}
	d.pods = append(d.pods, pod)
	if d.yes("extended", 3) {
		amount := v1.ResourceList{twinResource: *resource.NewQuantity(rapid.Int64Range(1, 3).Draw(d.T, "gpus"), resource.DecimalSI)}
		pod.Spec.Containers[0].Resources = v1.ResourceRequirements{Requests: amount, Limits: amount}
		return
	}
	for i := range rapid.IntRange(1, 2).Draw(d.T, "claims") {
		claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint(name, "-", i), UID: types.UID(fmt.Sprint(name, "-", i))}}
		for j := range rapid.IntRange(1, 2).Draw(d.T, "requests") {
			claim.Spec.Devices.Requests = append(claim.Spec.Devices.Requests, d.request(fmt.Sprint("r", j)))
		}
		if d.yes("constraint", 6) {
			claim.Spec.Devices.Constraints = []resourcev1.DeviceConstraint{{MatchAttribute: ptr.To(resourcev1.FullyQualifiedName(twinDriver + "/model"))}}
		}
		d.objects = append(d.objects, claim)
		pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, v1.PodResourceClaim{Name: fmt.Sprint("c", i), ResourceClaimName: &claim.Name})
	}
}

func (d *drawn) request(name string) resourcev1.DeviceRequest {
	r := resourcev1.DeviceRequest{Name: name}
	sub := func(i int) resourcev1.DeviceSubRequest {
		s := resourcev1.DeviceSubRequest{
			Name: fmt.Sprint("s", i), DeviceClassName: rapid.SampledFrom([]string{"any", "any", "a"}).Draw(d.T, "class"),
			AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: rapid.Int64Range(1, 2).Draw(d.T, "count"),
		}
		switch rapid.IntRange(0, 5).Draw(d.T, "selector") {
		case 0:
			s.Selectors = selectors(isModel("B"))
		case 1:
			s.Selectors = selectors(fmt.Sprintf(`"model" in device.attributes[%q] && %s`, twinDriver, isModel("A")))
		}
		if d.yes("all", 8) {
			s.AllocationMode, s.Count = resourcev1.DeviceAllocationModeAll, 0
		}
		if d.yes("tolerates", 8) {
			s.Tolerations = []resourcev1.DeviceToleration{{Operator: resourcev1.DeviceTolerationOpExists}}
		}
		return s
	}
	if d.yes("alternatives", 4) {
		r.FirstAvailable = []resourcev1.DeviceSubRequest{sub(0), sub(1)}
		return r
	}
	s := sub(0)
	r.Exactly = &resourcev1.ExactDeviceRequest{
		DeviceClassName: s.DeviceClassName, AllocationMode: s.AllocationMode, Count: s.Count, Selectors: slices.Clone(s.Selectors), Tolerations: s.Tolerations,
	}
	if d.yes("admin access", 10) {
		r.Exactly.AdminAccess = ptr.To(true)
	}
	return r
}

// inBubble hides the deadline of a test, which is not available in a synctest bubble.
type inBubble struct{ rapid.TB }
