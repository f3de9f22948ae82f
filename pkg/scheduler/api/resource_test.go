// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"math"
	"math/big"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"
)

// vectors draws vectors of different lengths with amounts that a model can hold, and rarely with
// extreme ones.
func vectors() *rapid.Generator[Resource] {
	amount := rapid.OneOf(
		rapid.Int64Range(-5, 5),
		rapid.Int64Range(-MaxQuantity, MaxQuantity),
		rapid.SampledFrom([]int64{0, math.MaxInt64, math.MinInt64, math.MaxInt64 - 1, math.MinInt64 + 1}),
	)
	return rapid.Custom(func(t *rapid.T) Resource {
		return rapid.SliceOfN(amount, 0, 6).Draw(t, "amounts")
	})
}

// twin is a vector as anybody would write it down: unbounded numbers, absent ones are zero.
type twin map[int]*big.Int

func twinOf(r Resource) twin {
	w := twin{}
	for i, n := range r {
		w[i] = big.NewInt(n)
	}
	return w
}

func (w twin) at(i int) *big.Int {
	if n := w[i]; n != nil {
		return n
	}
	return new(big.Int)
}

// saturated cuts a number to what an int64 holds.
func saturated(n *big.Int) int64 {
	switch {
	case n.Cmp(big.NewInt(math.MaxInt64)) > 0:
		return math.MaxInt64
	case n.Cmp(big.NewInt(math.MinInt64)) < 0:
		return math.MinInt64
	}
	return n.Int64()
}

const aboveCapability = 8 // dimensions to look at, beyond the longest vector

func TestResourceArithmeticAgainstTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := vectors().Draw(t, "a"), vectors().Draw(t, "b")
		a0, b0 := a.Clone(), b.Clone()
		plus, minus := a.Plus(b), a.Minus(b)
		added, subtracted := a.Clone(), a.Clone()
		added.Add(b)
		subtracted.Sub(b)
		for i := range aboveCapability {
			x, y := twinOf(a).at(i), twinOf(b).at(i)
			sum, difference := saturated(new(big.Int).Add(x, y)), saturated(new(big.Int).Sub(x, y))
			if plus.At(i) != sum || added.At(i) != sum {
				t.Fatalf("dimension %d: %v + %v: Plus says %d, Add %d", i, x, y, plus.At(i), added.At(i))
			}
			if minus.At(i) != difference || subtracted.At(i) != difference {
				t.Fatalf("dimension %d: %v - %v: Minus says %d, Sub %d", i, x, y, minus.At(i), subtracted.At(i))
			}
			if got, want := a.Clone().NotNegative().At(i), max(a.At(i), 0); got != want {
				t.Fatalf("dimension %d: NotNegative says %d, want %d", i, got, want)
			}
			if got, want := a.beyond(b).At(i), max(difference, 0); got != want {
				t.Fatalf("dimension %d: beyond says %d, want %d", i, got, want)
			}
		}
		if diff := cmp.Diff([]Resource{a0, b0}, []Resource{a, b}); diff != "" {
			t.Fatalf("the operands have changed:\n%s", diff)
		}
	})
}

func TestResourceComparisonsAgainstTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := vectors().Draw(t, "a"), vectors().Draw(t, "b")
		fits, within, equal, zero := true, true, true, true
		for i := range aboveCapability {
			x, y := twinOf(a).at(i), twinOf(b).at(i)
			fits = fits && (x.Sign() <= 0 || x.Cmp(y) <= 0)
			within = within && (i >= len(b) || b[i] == Unlimited || x.Cmp(y) <= 0)
			equal = equal && x.Cmp(y) == 0
			zero = zero && x.Sign() == 0
		}
		check := func(what string, got, want bool) {
			if got != want {
				t.Fatalf("%s(%v, %v) = %t", what, a, b, got)
			}
		}
		check("Fits", a.Fits(b), fits)
		check("Short", a.InsufficientDimension(b) < 0, fits)
		check("Within", a.Within(b), within)
		check("Equal", a.Equal(b), equal)
		check("IsZero", a.IsZero(), zero)
		check("AppendKey", string(a.AppendKey(nil)) == string(b.AppendKey(nil)), equal)
		if i := a.InsufficientDimension(b); i >= 0 && (a[i] <= 0 || a[i] <= b.At(i)) {
			t.Fatalf("Short(%v, %v) names %d, which fits", a, b, i)
		}
		if i := a.Exceeds(b); i >= 0 && a.At(i) <= b[i] {
			t.Fatalf("Exceeds(%v, %v) names %d, which is within", a, b, i)
		}
	})
}

func TestShortNamesWhatPeopleWouldNameFirst(t *testing.T) {
	cases := map[string]struct {
		request, available Resource
		want               int
	}{
		"fits":                      {Resource{1, 1}, Resource{1, 1}, -1},
		"cpu before memory":         {Resource{2, 2}, Resource{1, 1}, CPU},
		"memory alone":              {Resource{1, 2}, Resource{1, 1}, Memory},
		"extended before cpu":       {Resource{2, 0, 0, 1, 1}, Resource{1}, fixedDimensions},
		"pods last":                 {Resource{0, 0, 0, 1}, Resource{}, Pods},
		"negative, not requested":   {Resource{1, 0}, Resource{1, -5}, -1},
		"negative, requested":       {Resource{1}, Resource{-1}, CPU},
		"beyond the last available": {Resource{0, 0, 0, 0, 0, 1}, Resource{9}, 5},
		"no request fits nothing":   {nil, nil, -1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := c.request.InsufficientDimension(c.available); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	cases := map[string]struct {
		limits v1.ResourceList
		held   v1.ResourceList
		want   bool
	}{
		"no limits allow all":                      {nil, amountsOf("cpu", "1000"), true},
		"at the limit":                             {amountsOf("cpu", "2"), amountsOf("cpu", "2"), true},
		"above the limit":                          {amountsOf("cpu", "2"), amountsOf("cpu", "2001m"), false},
		"what is not named is not limited":         {amountsOf("cpu", "2"), amountsOf("memory", "1Ti", "example.com/gpu", "9"), true},
		"zero is a limit":                          {amountsOf("example.com/gpu", "0"), amountsOf("example.com/gpu", "1"), false},
		"dimensions that come later are unlimited": {amountsOf("cpu", "2"), amountsOf("example.com/late", "1"), true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			dims := NewDimensions()
			limits := dims.Limits(c.limits)
			if got := dims.Vector(c.held).Within(limits); got != c.want {
				t.Errorf("%s within %v: %t", dims.Format(dims.Vector(c.held)), limits, got)
			}
		})
	}
}

func TestVectorReadsQuantities(t *testing.T) {
	cases := map[string]struct {
		name, quantity string
		want           int64
	}{
		"cpu in milli-units":            {"cpu", "1500m", 1500},
		"parts of a milli-cpu round up": {"cpu", "100u", 1},
		"memory in bytes":               {"memory", "1Ki", 1024},
		"parts of a byte round up":      {"memory", "1500m", 2},
		"negative is zero":              {"memory", "-1Gi", 0},
		"extended":                      {"example.com/gpu", "8", 8},
		"memory above the maximum":      {"memory", "8Ei", MaxQuantity},
		"cpu just below the maximum":    {"cpu", "1125899906842", 1125899906842000},
		"cpu above the maximum":         {"cpu", "1200000000000", MaxQuantity},
		"far above what an int64 holds": {"cpu", "1e30", MaxQuantity},
		"what takes minutes to compare": {"memory", "1e99999999", MaxQuantity},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			dims := NewDimensions()
			r := dims.Vector(amountsOf(c.name, c.quantity))
			if got := r[dims.Index(v1.ResourceName(c.name))]; got != c.want {
				t.Errorf("%s %s is %d, want %d", c.name, c.quantity, got, c.want)
			}
		})
	}
}

// A larger quantity never becomes a smaller amount.
func TestVectorIsMonotonic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(what string) resource.Quantity {
			return *resource.NewScaledQuantity(rapid.Int64Min(0).Draw(t, what), resource.Scale(rapid.IntRange(-3, 3).Draw(t, what+" scale")))
		}
		a, b := draw("a"), draw("b")
		for _, dimension := range []int{CPU, Memory, fixedDimensions} {
			if a.Cmp(b) <= 0 && amount(dimension, a) > amount(dimension, b) {
				t.Fatalf("dimension %d: %s becomes %d, %s becomes %d", dimension, a.String(), amount(dimension, a), b.String(), amount(dimension, b))
			}
		}
	})
}

func TestListIsTheInverseOfVector(t *testing.T) {
	dims := NewDimensions()
	want := amountsOf("cpu", "1500m", "memory", "2Gi", "pods", "3", "example.com/gpu", "2")
	got := dims.List(dims.Vector(want), nil)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	shared := dims.List(dims.Vector(want), dims.Shared)
	delete(want, "pods")
	if diff := cmp.Diff(want, shared); diff != "" {
		t.Error(diff)
	}
}

func TestFormat(t *testing.T) {
	cases := map[string]struct {
		amounts v1.ResourceList
		want    string
	}{
		"nothing":        {nil, "no resources"},
		"a pod's place":  {amountsOf("pods", "1"), "no resources"},
		"parts of a cpu": {amountsOf("cpu", "500m"), "500m cpu"},
		"many cpus":      {amountsOf("cpu", "1000", "nvidia.com/gpu", "2000"), "2000 nvidia.com/gpu + 1000 cpu"},
		"round sizes":    {amountsOf("memory", "1024Gi", "ephemeral-storage", "1G"), "1Ti memory + 1000000000 ephemeral-storage"},
		"extended ones first, by name": {
			amountsOf("memory", "2Gi", "cpu", "4", "z.com/x", "1", "a.com/x", "2"), "2 a.com/x + 1 z.com/x + 4 cpu + 2Gi memory",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			dims := NewDimensions()
			if got := dims.Format(dims.Vector(c.amounts)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestSharedDimensions(t *testing.T) {
	want := map[v1.ResourceName]bool{
		"cpu": true, "memory": true, "example.com/gpu": true, "hugepages-2Mi": true,
		"pods": false, "ephemeral-storage": false, "attachable-volumes-csi-x": false,
	}
	dims := NewDimensions()
	for name, shared := range want {
		t.Run(string(name), func(t *testing.T) {
			if got := dims.Shared(dims.Index(name)); got != shared {
				t.Errorf("shared: %t", got)
			}
		})
	}
}

func TestInParts(t *testing.T) {
	for name, test := range map[string]struct {
		dimension   int
		units, want int64
	}{
		"thousandths":       {CPU, 4_000, 4_000_000},
		"bytes are whole":   {Memory, math.MaxInt64, math.MaxInt64},
		"more than can be":  {CPU, math.MaxInt64 - 5, math.MaxInt64 / 1000 * 1000},
		"less than can be":  {CPU, math.MinInt64 + 5, math.MinInt64 / 1000 * 1000},
		"just not too much": {CPU, math.MaxInt64 / 1000, math.MaxInt64 / 1000 * 1000},
		"a queue of giants": {CPU, 1 << 60, math.MaxInt64 / 1000 * 1000},
		"nothing":           {CPU, 0, 0},
		"less than nothing": {CPU, -3, -3_000},
	} {
		t.Run(name, func(t *testing.T) {
			if got := InParts(test.dimension, test.units); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}
