// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package fragmentation

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// The dimensions of vectors in these tests.
const (
	cpu = iota
	memory
	gpu
)

// threeTypes are types of whole GPUs, with parts of ten.
func threeTypes() []Type {
	return []Type{
		{Request: api.Resource{cpu: 8, gpu: 1}, Share: Whole, Weight: 5},
		{Request: api.Resource{cpu: 32, gpu: 4}, Share: Whole, Weight: 3},
		{Request: api.Resource{cpu: 96, gpu: 8}, Share: Whole, Weight: 2},
	}
}

// left is a node of which so many whole GPUs and cpus are left.
func left(gpus, cpus int64) *Node {
	return &Node{Idle: api.Resource{cpu: cpus, memory: 0}, Devices: []Devices{{Whole, gpus}}, Admits: All}
}

// TestWholeDevices is case FR1: F of nodes of 8 GPUs and 96 cpu in thousandths of a GPU, and what pods would change.
func TestWholeDevices(t *testing.T) {
	type change struct {
		GPUs, CPUs int64 // of the pod
		F          int64 // change of F
		Score      api.Score
	}
	for name, tc := range map[string]struct {
		gpus, cpus int64 // left
		f          int64
		want       []change
	}{
		"A, an empty node":                       {8, 96, 0, []change{{1, 8, 1400, 456_250}, {4, 32, 800, 475_000}, {0, 8, 1600, 450_000}}},
		"B, a node with one pod":                 {7, 88, 1400, []change{{1, 8, -200, 506_250}, {4, 32, 100, 496_875}, {0, 8, 0, 500_000}}},
		"C, a node where only one of three fits": {3, 40, 1500, []change{{1, 8, -500, 515_625}, {0, 8, 0, 500_000}}},
		"D, a node where the second fits too":    {4, 96, 800, []change{{1, 8, 700, 478_125}, {4, 32, -800, 525_000}, {0, 8, 0, 500_000}}},
		"E, a node where one pod of 1 GPU fits":  {1, 8, 500, []change{{1, 8, -500, 515_625}, {0, 8, 500, 484_375}}},
	} {
		t.Run(name, func(t *testing.T) {
			set := NewSet(gpu, threeTypes())
			before := set.Lost(left(tc.gpus, tc.cpus))
			if got := before / set.Total(); got != tc.f || before%set.Total() != 0 {
				t.Errorf("F is %d/%d, want %d", before, set.Total(), tc.f)
			}
			var got []change
			for _, c := range tc.want {
				n := left(tc.gpus-c.GPUs, tc.cpus)
				n.Taken = api.Resource{cpu: c.CPUs}
				after := set.Lost(n)
				got = append(got, change{c.GPUs, c.CPUs, (after - before) / set.Total(), set.Score(before, after)})
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestSharedDevices has types that need a half, a whole, and two GPUs.
func TestSharedDevices(t *testing.T) {
	set := NewSet(gpu, []Type{
		{Request: api.Resource{cpu: 2, gpu: 1}, Share: 500, Weight: 5},
		{Request: api.Resource{cpu: 4, gpu: 1}, Share: Whole, Weight: 3},
		{Request: api.Resource{cpu: 8, gpu: 2}, Share: Whole, Weight: 2},
	})
	for name, tc := range map[string]struct {
		free []Devices
		cpu  int64
		want int64
	}{
		"a half and a whole GPU":                   {[]Devices{{500, 1}, {Whole, 1}}, 8, 450},
		"a half taken of the half":                 {[]Devices{{Whole, 1}}, 6, 200},
		"a half taken of the whole":                {[]Devices{{500, 2}}, 6, 500},
		"two whole GPUs":                           {[]Devices{{Whole, 2}}, 16, 0},
		"a half taken of one of two whole GPUs":    {[]Devices{{500, 1}, {Whole, 1}}, 14, 450},
		"no cpu left":                              {[]Devices{{Whole, 2}}, 0, 2000},
		"less left of one than any type can use":   {[]Devices{{100, 1}, {Whole, 2}}, 16, 100},
		"nothing left of any GPU":                  {nil, 16, 0},
		"cpu for all types but the one of 2 GPUs":  {[]Devices{{Whole, 2}}, 7, 400},
		"cpu for the pods that share a GPU, alone": {[]Devices{{Whole, 2}}, 2, 1000},
	} {
		t.Run(name, func(t *testing.T) {
			got := set.Lost(&Node{Idle: api.Resource{cpu: tc.cpu}, Devices: tc.free, Admits: All})
			if got != tc.want*set.Total() {
				t.Errorf("F is %d/%d, want %d", got, set.Total(), tc.want)
			}
		})
	}
}

// TestOtherReasons has reasons besides devices and cpu.
func TestOtherReasons(t *testing.T) {
	set := NewSet(gpu, []Type{
		{Request: api.Resource{memory: 10, gpu: 1}, Share: Whole, Weight: 3},
		{Request: api.Resource{cpu: 1}, Weight: 1},
	})
	for name, tc := range map[string]struct {
		given Node
		want  int64 // F
	}{
		"devices are of no use to pods without devices": {Node{Idle: api.Resource{memory: 10}, Admits: All}, 500},
		"too little memory":                             {Node{Idle: api.Resource{memory: 9}, Admits: All}, 2000},
		"a node that does not admit the pods":           {Node{Idle: api.Resource{memory: 10}, Admits: 2}, 2000},
	} {
		t.Run(name, func(t *testing.T) {
			tc.given.Devices = []Devices{{Whole, 2}}
			if got := set.Lost(&tc.given); got != tc.want*set.Total() {
				t.Errorf("F is %d/%d, want %d", got, set.Total(), tc.want)
			}
		})
	}
}

func TestScoreIsLimited(t *testing.T) {
	set := NewSet(gpu, threeTypes())
	if got := set.Score(0, 17*Whole*set.Total()); got != 0 {
		t.Errorf("17 GPUs lost score %d, want 0", got)
	}
	if got := set.Score(17*Whole*set.Total(), 0); got != api.OneScore {
		t.Errorf("17 GPUs regained score %d, want %d", got, api.OneScore)
	}
}

// TestLost compares with the definition.
func TestLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount := rapid.Int64Range(0, 6)
		vector := func(name string) api.Resource {
			return api.Resource{cpu: amount.Draw(t, name+" cpu"), memory: amount.Draw(t, name+" memory"), gpu: amount.Draw(t, name+" gpus")}
		}
		types := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Type {
			return Type{
				Request: api.Resource{cpu: amount.Draw(t, "cpu"), memory: amount.Draw(t, "memory"), gpu: rapid.Int64Range(0, 3).Draw(t, "gpus")},
				Share:   rapid.SampledFrom([]int64{250, 500, Whole}).Draw(t, "share"), Weight: rapid.Int64Range(1, 9).Draw(t, "weight"),
			}
		}), 1, MaxTypes).Draw(t, "types")
		n := &Node{Idle: vector("idle"), Taken: vector("taken"), Admits: Mask(rapid.Uint32().Draw(t, "admits"))}
		for _, free := range rapid.SliceOfN(rapid.SampledFrom([]int64{0, 100, 250, 400, 750, Whole}), 0, 6).Draw(t, "free") {
			n.Devices = append(n.Devices, Devices{Free: free, Count: 1})
		}
		if got, want := NewSet(gpu, types).Lost(n), lost(types, n); got != want {
			t.Errorf("F is %d, by definition %d", got, want)
		}
	})
}

// lost is F by its definition.
func lost(types []Type, n *Node) (sum int64) {
	for i, t := range types {
		var free, enough, tooLittle int64
		for _, d := range n.Devices {
			free += d.Free
			if d.Free >= t.Share {
				enough++
			} else {
				tooLittle += d.Free
			}
		}
		fits := n.Admits>>i&1 == 1 && t.Request[gpu] > 0 && enough >= t.Request[gpu]
		for _, d := range []int{cpu, memory} {
			fits = fits && (t.Request[d] == 0 || t.Request[d] <= n.Idle[d]-n.Taken[d])
		}
		if fits {
			sum += t.Weight * tooLittle
		} else {
			sum += t.Weight * free
		}
	}
	return sum
}

func TestPopular(t *testing.T) {
	for name, tc := range map[string]struct{ given, want []int64 }{
		"no pods":                              {nil, nil},
		"one type":                             {[]int64{7}, []int64{32}},
		"sorted by frequency":                  {[]int64{1, 3}, []int64{24, 8}},
		"rare ones beyond 95 % are left out":   {[]int64{500, 300, 120, 40, 40}, []int64{17, 10, 4, 1}},
		"one pod more changes nothing":         {[]int64{501, 300, 120, 40, 40}, []int64{17, 10, 4, 1}},
		"less than a part is none":             {[]int64{9000, 90, 90, 900}, []int64{29, 3}},
		"the first of equal ones get the rest": {[]int64{1, 1, 1}, []int64{11, 11, 10}},
	} {
		t.Run(name, func(t *testing.T) {
			var types []Type
			for _, pods := range tc.given {
				types = append(types, Type{Weight: pods})
			}
			var got []int64
			for _, typ := range Popular(types) {
				got = append(got, typ.Weight)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestManyTypes has more types than a Set can have.
func TestManyTypes(t *testing.T) {
	types := make([]Type, 2*MaxTypes)
	for i := range types {
		types[i] = Type{Weight: 1, Key: i}
	}
	got := Popular(types)
	if len(got) != MaxTypes || got[MaxTypes-1].Key != MaxTypes-1 || got[0].Weight != 1 {
		t.Errorf("%d types, the last of them %v", len(got), got[len(got)-1])
	}
}

func BenchmarkLost(b *testing.B) {
	var types []Type
	for i := range int64(MaxTypes) {
		types = append(types, Type{Request: api.Resource{cpu: 4 + 3*i, memory: 1 + 5*i%37, gpu: 1 << (i % 4)}, Share: Whole, Weight: 1 + i%3})
	}
	set := NewSet(gpu, types)
	nodes := make([]*Node, 64)
	for i := range nodes {
		nodes[i] = left(int64(i%9), int64(i*7%96))
		nodes[i].Idle[memory] = int64(i * 5 % 40)
	}
	b.ReportAllocs()
	for i := uint(0); b.Loop(); i++ {
		set.Lost(nodes[i%64])
	}
}
