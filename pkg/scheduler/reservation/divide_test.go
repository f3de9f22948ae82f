// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package reservation

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// TestParts divides a request between nodes that have just enough, so that rounding down would leave a part over.
func TestParts(t *testing.T) {
	rest := api.Resource{3, 10}
	var got []api.Resource
	for _, available := range []api.Resource{{1, 4}, {1, 4}, {0, 9}, {1, 3}, {5, 5}} {
		part := proportional(rest, available)
		rest.Sub(part)
		got = append(got, part)
	}
	if diff := cmp.Diff([]api.Resource{{1, 4}, {1, 3}, nil, {1, 3}, {0, 0}}, got); diff != "" {
		t.Error(diff)
	}
}

// TestAnyPart asserts of random amounts that a part is available, at most the request, the largest, and the same in all
// dimensions but for rounding.
func TestAnyPart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amounts := rapid.SliceOfN(rapid.Int64Range(0, 1<<40), 3, 3)
		request, available := api.Resource(amounts.Draw(t, "request")), api.Resource(amounts.Draw(t, "available"))
		part := proportional(request, available)
		if part == nil {
			for d, n := range request {
				if n > 0 && available[d] == 0 {
					return
				}
			}
			t.Fatal("there is no part, although something of each dimension is available")
		}
		largest := false
		for d, n := range part {
			if n > request[d] || n > available[d] && request[d] > 0 {
				t.Fatalf("dimension %d: %d of %d, %d are available", d, n, request[d], available[d])
			}
			largest = largest || n == request[d] || n == available[d]
		}
		if !largest {
			t.Fatalf("%v is not the largest part of %v of which %v are available", part, request, available)
		}
	})
}
