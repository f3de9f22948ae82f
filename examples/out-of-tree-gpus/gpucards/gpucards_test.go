// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package gpucards

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/builtin"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// policy has the plugin alone to score nodes, with these arguments.
func policy(arguments string) Option {
	return WithConfig(`
actions: [allocate]
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: gpucards, arguments: {` + arguments + `}}]
`)
}

// gpuNode is a node with the labels of GPU feature discovery; memory is in MiB.
func gpuNode(name, product, memory string) Row {
	return Node(name, "64cpu 8gpu", Label(labelProduct, product), Label(labelMemory, memory), Label(labelCount, "8"))
}

// memoryAbove restricts pods to nodes whose cards have more memory, in MiB.
func memoryAbove(memory string) PodOption {
	return Mutate(func(p *v1.Pod) {
		p.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
			NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{
				{Key: labelMemory, Operator: v1.NodeSelectorOpGt, Values: []string{memory}},
			}}},
		}}}
	})
}

// devices are what a driver publishes for a node; a clock of 0 is not published.
func devices(node, product, memory string, clock int64, more ...resourcev1.Device) *resourcev1.ResourceSlice {
	device := resourcev1.Device{
		Name:       "gpu-0",
		Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{attributeProduct: {StringValue: &product}},
		Capacity:   map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{capacityMemory: {Value: resource.MustParse(memory)}},
	}
	if clock > 0 {
		device.Attributes[attributeClock] = resourcev1.DeviceAttribute{IntValue: ptr.To(clock)}
	}
	return &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: node},
		Spec:       resourcev1.ResourceSliceSpec{Driver: "gpu.nvidia.com", NodeName: &node, Devices: append([]resourcev1.Device{device}, more...)},
	}
}

// newScenario registers the plugin with an informer that has the slices.
func newScenario(t *testing.T, given []Row, slices []*resourcev1.ResourceSlice, options ...Option) *Scenario {
	t.Helper()
	factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	for _, slice := range slices {
		if err := factory.Resource().V1().ResourceSlices().Informer().GetIndexer().Add(slice); err != nil {
			t.Fatal(err)
		}
	}
	registry, err := builtin.NewRegistry()
	if err != nil {
		t.Fatal(err)
	}
	spec := Spec()
	build := spec.New
	spec.New = func(d *conf.Decoder, handle framework.Handle) (framework.Plugin, error) {
		handle.Informers = factory
		return build(d, handle)
	}
	if err := registry.AddPlugin(Name, spec); err != nil {
		t.Fatal(err)
	}
	return New(t, registry, given, options...)
}

func TestGPUCards(t *testing.T) {
	const clocks = `clocks: "A100=1410, L40S=2520"`
	small := gpuNode("small", "L40S", "46068")
	large := gpuNode("large", "A100", "81920")
	for name, tc := range map[string]struct {
		arguments string
		given     []Row
		slices    []*resourcev1.ResourceSlice
		want      string
	}{
		"memory: the least that suffices": {
			arguments: `clock.weight: 0`,
			given: Given(gpuNode("tiny", "L4", "23034"), small, large, Queue("q", 1),
				Group("q/one", 1, Pending(1, "1gpu", memoryAbove("30000"))), Group("q/two", 1, Pending(1, "1gpu", memoryAbove("50000")))),
			want: "bind q/one-0 small\nbind q/two-0 large",
		},
		"clock: the highest, by product": {
			arguments: clocks + `, memory.weight: 0`,
			given:     Given(large, small, Queue("q", 1), Group("q/one", 1, Pending(1, "1gpu"))),
			want:      "bind q/one-0 small",
		},
		"clock: one that is unknown is between others": {
			arguments: clocks + `, memory.weight: 0, free.weight: 0`,
			given:     Given(large, gpuNode("other", "B200", "180000"), Queue("q", 1), Group("q/one", 1, Pending(1, "1gpu"))),
			want:      "bind q/one-0 other",
		},
		"free cards: the fewest that suffice": {
			given: Given(gpuNode("n1", "A100", "81920"), gpuNode("n2", "A100", "81920"), gpuNode("n3", "A100", "81920"), Queue("q", 1),
				Plain("old", OfQueue("q"), Running(1, "4gpu", "n2"), Running(1, "7gpu", "n3")), Group("q/one", 1, Pending(1, "2gpu"))),
			want: "bind q/one-0 n2",
		},
		"free cards: a gang sees what a gang of the same session has taken": {
			given: Given(gpuNode("n1", "A100", "81920"), gpuNode("n2", "A100", "81920"), Queue("q", 1), Plain("old", OfQueue("q"), Running(1, "1gpu", "n1")),
				Group("q/one", 2, Pending(2, "2gpu", RequireNode("n2"))), Group("q/two", 2, Pending(2, "1gpu"))),
			want: "bind q/one-0 n2\nbind q/one-1 n2\nbind q/two-0 n2\nbind q/two-1 n2",
		},
		"pods without cards have no score": {
			given: Given(large, small, Queue("q", 1), Group("q/one", 1, Pending(1, "1cpu"))),
			want:  "bind q/one-0 large",
		},
		"labels that are no numbers are unknown": {
			arguments: `free.weight: 0`,
			given:     Given(gpuNode("bad", "A100", "much"), small, Queue("q", 1), Group("q/one", 1, Pending(1, "1gpu"))),
			want:      "bind q/one-0 small",
		},
		"devices: memory and clock of a driver, without labels": {
			given:  Given(Node("n1", "8cpu 8gpu"), Node("n2", "8cpu 8gpu"), Queue("q", 1), Group("q/one", 1, Pending(1, "1gpu"))),
			slices: []*resourcev1.ResourceSlice{devices("n1", "A100", "40Gi", 1000), devices("n2", "A100", "40Gi", 1400)},
			want:   "bind q/one-0 n2",
		},
		"devices: the clock of a product": {
			arguments: clocks,
			given:     Given(Node("n1", "8cpu 8gpu"), Node("n2", "8cpu 8gpu"), Queue("q", 1), Group("q/one", 1, Pending(1, "1gpu"))),
			slices:    []*resourcev1.ResourceSlice{devices("n1", "A100", "40Gi", 0), devices("n2", "L40S", "40Gi", 0)},
			want:      "bind q/one-0 n2",
		},
		"devices: of different cards the smallest counts": {
			given: Given(Node("n1", "8cpu 8gpu"), Node("n2", "8cpu 8gpu"), Queue("q", 1), Group("q/one", 1, Pending(1, "1gpu"))),
			slices: []*resourcev1.ResourceSlice{
				devices("n1", "A100", "40Gi", 0), devices("n2", "A100", "80Gi", 0, devices("n2", "A100", "20Gi", 0).Spec.Devices[0], resourcev1.Device{Name: "nic"}),
			},
			want: "bind q/one-0 n2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newScenario(t, tc.given, tc.slices, policy(tc.arguments))
			if diff := cmp.Diff(tc.want, c.Cycle()); diff != "" {
				t.Errorf("transcript (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNoCardTwice: three gangs of 8 cards wait for 16, and the labels of the nodes do not change when pods start. Two gangs start,
// and the third one waits, also before the pods run.
func TestNoCardTwice(t *testing.T) {
	gang := func(name string) Row { return Group("q/"+name, 2, Pending(2, "4gpu")) }
	c := newScenario(t, Given(gpuNode("n1", "A100", "81920"), gpuNode("n2", "A100", "81920"), Queue("q", 1), gang("one"), gang("two"), gang("three")), nil, policy(""))
	if diff := cmp.Diff("bind q/one-0 n1\nbind q/one-1 n1\nbind q/two-0 n2\nbind q/two-1 n2", c.Cycle()); diff != "" {
		t.Errorf("first session (-want +got):\n%s", diff)
	}
	if got := c.Cycle(); got != "" { // the binds have no result yet
		t.Errorf("second session: %s", got)
	}
	if want := "waits q/three NotEnoughResources"; !strings.HasPrefix(c.Waits(), want) {
		t.Errorf("got %q, want %q", c.Waits(), want)
	}
}

func TestArguments(t *testing.T) {
	for name, tc := range map[string]struct {
		given conf.Arguments
		want  string
	}{
		"none":           {},
		"all":            {given: conf.Arguments{"resource": "amd.com/gpu", "memory.weight": "0", "clock.weight": "2", "free.weight": "100", "clocks": "MI300X=2100, MI210=1700"}},
		"a weight":       {given: conf.Arguments{"free.weight": "101"}, want: `[free.weight]: Invalid value: "101": must be a whole number from 0 to 100`},
		"no clock":       {given: conf.Arguments{"clocks": "L40S"}, want: `[clocks]: Invalid value: "L40S": "L40S" is not PRODUCT=MHZ, as in NVIDIA-L40S=2520`},
		"no product":     {given: conf.Arguments{"clocks": "=5"}, want: `[clocks]: Invalid value: "=5": "=5" is not PRODUCT=MHZ, as in NVIDIA-L40S=2520`},
		"a typing error": {given: conf.Arguments{"clock": "A=1"}, want: `[clock]: Forbidden: no such argument; did you mean "clocks"?`},
	} {
		t.Run(name, func(t *testing.T) {
			got, d := "", tc.given.Decoder(nil)
			Spec().Check(d)
			if err := d.Done().ToAggregate(); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}
