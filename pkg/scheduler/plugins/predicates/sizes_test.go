// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package predicates

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/plugins/predicates/internal/upstream"
)

// sized are the devices of a node, d0, d1 and so on, with these sizes; "-" is none.
func sized(node string, capacity resourcev1.QualifiedName, sizes ...string) *resourcev1.ResourceSlice {
	slice := gpus(node)
	for i, size := range sizes {
		device := resourcev1.Device{Name: fmt.Sprint("d", i)}
		if size != "-" {
			device.Capacity = map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{capacity: {Value: resource.MustParse(size)}}
		}
		slice.Spec.Devices = append(slice.Spec.Devices, device)
	}
	return slice
}

// atLeast selects devices with this memory.
func atLeast(memory string) string {
	return fmt.Sprintf(`device.capacity[%q].memory.compareTo(quantity(%q)) >= 0`, driver, memory)
}

// alternatives is a claim for one device, of each of these sizes at least.
func alternatives(name string, memory ...string) *resourcev1.ResourceClaim {
	claim := deviceClaim(name, 1)
	request := &claim.Spec.Devices.Requests[0]
	request.Exactly = nil
	for _, m := range memory {
		request.FirstAvailable = append(request.FirstAvailable, resourcev1.DeviceSubRequest{
			Name: "of" + m, DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1,
			Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: atLeast(m)}}},
		})
	}
	return claim
}

func forAll(claim *resourcev1.ResourceClaim) *resourcev1.ResourceClaim {
	claim.Spec.Devices.Requests[0].Exactly.AllocationMode, claim.Spec.Devices.Requests[0].Exactly.Count = resourcev1.DeviceAllocationModeAll, 0
	return claim
}

func asAdmin(claim *resourcev1.ResourceClaim) *resourcev1.ResourceClaim {
	claim.Spec.Devices.Requests[0].Exactly.AdminAccess = ptr.To(true)
	return claim
}

// thousandths returns the scores of all nodes for a pod.
func thousandths(ssn *framework.Session, pod string) map[string]int {
	got := map[string]int{}
	for _, n := range ssn.Cluster().Nodes() {
		got[n.Name] = int(ssn.NodeScore(taskNamed(ssn.Cluster(), pod), n) / (api.OneScore / 1000))
	}
	return got
}

// TestDeviceSizes asserts the scores of n1 and n2, in thousandths, with a weight of 1.
func TestDeviceSizes(t *testing.T) {
	const memory = "memory"
	two := func(n1, n2 int) map[string]int { return map[string]int{"n1": n1, "n2": n2} }
	lists := func(n *v1.Node) { n.Status.Allocatable[gpuResource] = resource.MustParse("4") }
	for name, tt := range map[string]struct {
		arguments conf.Arguments // besides the weight
		objects   []runtime.Object
		node2     change[v1.Node]
		pod       *v1.Pod
		want      map[string]int
	}{
		"the node with smaller devices": {
			objects: []runtime.Object{sized("n1", memory, "80Gi"), sized("n2", memory, "40Gi"), deviceClaim("one", 1)},
			pod:     pod("p", usesClaim("one")), want: two(444, 615),
		},
		"devices that the claim does not select do not count": {
			objects: []runtime.Object{sized("n1", memory, "24Gi", "80Gi"), sized("n2", memory, "24Gi"), selects(atLeast("30Gi"), deviceClaim("one", 1))},
			pod:     pod("p", usesClaim("one")), want: two(444, 0),
		},
		"the smallest free devices of the node": {
			objects: []runtime.Object{sized("n1", memory, "80Gi", "24Gi", "40Gi"), sized("n2", memory, "80Gi", "24Gi", "40Gi"), deviceClaim("one", 2), allocated("n2", "d1", deviceClaim("x", 1))},
			pod:     pod("p", usesClaim("one")), want: two(666, 516), // (24+40)/2 = 32, (40+80)/2 = 60
		},
		"while too few are free, those that are allocated too": {
			objects: []runtime.Object{sized("n1", memory, "80Gi"), sized("n2", memory, "40Gi"), deviceClaim("one", 1), allocated("n1", "d0", deviceClaim("x", 1)), allocated("n2", "d0", deviceClaim("y", 1))},
			pod:     pod("p", usesClaim("one")), want: two(444, 615),
		},
		"the mean of two claims, by their devices": {
			objects: []runtime.Object{sized("n1", memory, "64Gi", "64Gi", "64Gi"), sized("n2", memory, "64Gi", "192Gi", "192Gi"),
				deviceClaim("one", 1), selects(atLeast("40Gi"), deviceClaim("two", 2))},
			pod: pod("p", usesClaim("one"), usesClaim("two")), want: two(500, 388), // one: 1/2, two: (64+192)/2 = 128 → 1/3
		},
		"all devices count as one": {
			objects: []runtime.Object{sized("n1", memory, "32Gi", "32Gi"), sized("n2", memory, "32Gi", "32Gi", "64Gi"), forAll(deviceClaim("one", 1))},
			pod:     pod("p", usesClaim("one")), want: two(500, 333),
		},
		"the first alternative comes first, although its devices are larger": {
			objects: []runtime.Object{sized("n1", memory, "80Gi"), sized("n2", memory, "40Gi"), alternatives("one", "60Gi", "30Gi")},
			pod:     pod("p", usesClaim("one")), want: two(722, 307), // (1 + 0.444)/2, 0.615/2
		},
		"an alternative whose devices are allocated": {
			objects: []runtime.Object{sized("n1", memory, "80Gi", "40Gi"), sized("n2", memory, "40Gi"), alternatives("one", "60Gi", "30Gi"), allocated("n1", "d0", deviceClaim("x", 1))},
			pod:     pod("p", usesClaim("one")), want: two(307, 307),
		},
		"devices that remain free for others do not count": {
			objects: []runtime.Object{sized("n1", memory, "80Gi"), sized("n2", memory, "40Gi"), asAdmin(deviceClaim("one", 1))},
			pod:     pod("p", usesClaim("one")), want: two(0, 0),
		},
		"a claim that is allocated": {
			objects: []runtime.Object{sized("n1", memory, "80Gi"), sized("n2", memory, "40Gi"), allocated("n1", "d0", deviceClaim("one", 1))},
			pod:     pod("p", usesClaim("one")), want: two(0, 0),
		},
		"a pod without claims": {
			objects: []runtime.Object{sized("n1", memory, "80Gi"), sized("n2", memory, "40Gi")},
			pod:     pod("p"), want: two(0, 0),
		},
		"a claim that does not exist": {
			objects: []runtime.Object{sized("n1", memory, "80Gi")},
			pod:     pod("p", usesClaim("one")), want: two(0, 0),
		},
		"an extended resource, on a node that has a device plugin": {
			objects: []runtime.Object{sized("n1", memory, "192Gi")}, node2: lists,
			pod: pod("p", gpu(1)), want: two(250, 500),
		},
		"a device without the capacity is typical": {
			objects: []runtime.Object{sized("n1", memory, "-"), sized("n2", memory, "32Gi"), deviceClaim("one", 1)},
			pod:     pod("p", usesClaim("one")), want: two(500, 666),
		},
		"another capacity": {
			arguments: conf.Arguments{"smallestdevice.capacity": "cores", "smallestdevice.typical": "100"},
			objects:   []runtime.Object{sized("n1", "cores", "300"), sized("n2", "cores", "25"), deviceClaim("one", 1)},
			pod:       pod("p", usesClaim("one")), want: two(250, 800),
		},
		"a capacity with the domain of the driver": {
			arguments: conf.Arguments{"smallestdevice.capacity": "test.driver/memory"},
			objects:   []runtime.Object{sized("n1", "memory", "192Gi"), sized("n2", "test.driver/memory", "32Gi"), deviceClaim("one", 1)},
			pod:       pod("p", usesClaim("one")), want: two(250, 666),
		},
		"the driver publishes its domain": {
			objects: []runtime.Object{sized("n1", "test.driver/memory", "192Gi"), sized("n2", "other.driver/memory", "32Gi"), deviceClaim("one", 1)},
			pod:     pod("p", usesClaim("one")), want: two(250, 500),
		},
		"sizes beyond all bounds": {
			objects: []runtime.Object{sized("n1", memory, "8Ei", "8Ei", "8Ei"), sized("n2", memory, "0", "0", "0"), deviceClaim("one", 3)},
			pod:     pod("p", usesClaim("one")), want: two(0, 1000),
		},
	} {
		t.Run(name, func(t *testing.T) {
			runWithAPIServer(t, append(tt.objects, gpuClassFor(gpuResource)), []*v1.Pod{tt.pod}, func(t *testing.T, s *fakeAPIServer) {
				s.given.devices = map[string]int64{"n1": 1, "n2": 1}
				if tt.node2 != nil {
					tt.node2(s.given.nodes[1])
				}
				profile, _ := s.profileWith(t, tt.arguments)
				ssn, _ := s.given.openWith(t, profile)
				if diff := cmp.Diff(tt.want, thousandths(ssn, "p")); diff != "" {
					t.Errorf("scores (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// profileWith returns a profile with the score for small devices.
func (s *fakeAPIServer) profileWith(t *testing.T, arguments conf.Arguments) (profile *framework.Profile, made *plugin) {
	t.Helper()
	s.given.arguments = conf.Arguments{"smallestdevice.weight": "1"}
	for key, value := range arguments {
		s.given.arguments[key] = value
	}
	spec := Spec()
	build := spec.New
	spec.New = func(d *conf.Decoder, handle framework.Handle) (framework.Plugin, error) {
		p, err := build(d, handle)
		made, _ = p.(*plugin)
		return p, err
	}
	profile = s.given.profileOf(t, spec)
	synctest.Wait()
	return profile, made
}

// TestNoScoreForDevicesByDefault: without a weight the plugin does not take part in the choice of nodes.
func TestNoScoreForDevicesByDefault(t *testing.T) {
	objects := []runtime.Object{gpuClass(), sized("n1", "memory", "80Gi"), sized("n2", "memory", "40Gi"), deviceClaim("one", 1)}
	runWithAPIServer(t, objects, []*v1.Pod{pod("p", usesClaim("one"))}, func(t *testing.T, s *fakeAPIServer) {
		ssn, _ := s.given.openWith(t, s.profile)
		if diff := cmp.Diff(map[string]int{"n1": 0, "n2": 0}, thousandths(ssn, "p")); diff != "" {
			t.Errorf("scores (-want +got):\n%s", diff)
		}
	})
}

// TestDeviceSizesFollowPlacements places pods with claims at random, takes them back, and compares each score with one that is
// computed afresh.
func TestDeviceSizesFollowPlacements(t *testing.T) {
	memory := []string{"16Gi", "24Gi", "40Gi", "80Gi", "-"}
	rapid.Check(t, func(r *rapid.T) {
		drawn := func(node string) *resourcev1.ResourceSlice {
			return sized(node, "memory", rapid.SliceOfN(rapid.SampledFrom(memory), 1, 4).Draw(r, "devices of "+node)...)
		}
		objects := []runtime.Object{gpuClass(), drawn("n1"), drawn("n2")}
		if rapid.Bool().Draw(r, "network") {
			objects = append(objects, drawn(""))
		}
		var pods []*v1.Pod
		for i := range 5 {
			name := fmt.Sprint("p", i)
			claim := deviceClaim(name, int64(rapid.IntRange(1, 2).Draw(r, "count")))
			switch rapid.IntRange(0, 3).Draw(r, "claim") {
			case 1:
				selects(atLeast("30Gi"), claim)
			case 2:
				claim = alternatives(name, "60Gi", "20Gi")
			case 3:
				forAll(claim)
			}
			objects, pods = append(objects, claim), append(pods, pod(name, usesClaim(name)))
		}
		runWithAPIServer(t, objects, pods, func(t *testing.T, s *fakeAPIServer) {
			profile, plugin := s.profileWith(t, nil)
			ssn, _ := s.given.openWith(t, profile)
			stmt := ssn.Statement()
			for range rapid.IntRange(1, 10).Draw(r, "steps") {
				p := taskNamed(ssn.Cluster(), rapid.SampledFrom(pods).Draw(r, "pod").Name)
				n := ssn.Cluster().Node(rapid.SampledFrom([]string{"n1", "n2"}).Draw(r, "node"))
				mark := stmt.Mark()
				if p.Waiting() && ssn.Predicate(p, n, api.Now) == nil {
					if stmt.Allocate(p, n); rapid.Bool().Draw(r, "undo") {
						stmt.RollbackTo(mark)
					}
				}
				compareScores(t, ssn, plugin, pods)
			}
			stmt.Discard()
			compareScores(t, ssn, plugin, pods)
		})
	})
}

// compareScores compares the scores of the session with those of a plugin that has seen nothing else.
func compareScores(t *testing.T, ssn *framework.Session, p *plugin, pods []*v1.Pod) {
	t.Helper()
	for _, pod := range pods {
		task := taskNamed(ssn.Cluster(), pod.Name)
		for _, n := range ssn.Cluster().Nodes() {
			fresh := upstream.NewSizes(p.runner.Shortages(), "memory", 64<<30)
			fresh.Open(ssn.Cluster())
			if got, want := ssn.NodeScore(task, n), fresh.Score(task, n); got != want {
				t.Errorf("score of %s for %s: got %d, want %d", n.Name, pod.Name, got, want)
			}
		}
	}
}
