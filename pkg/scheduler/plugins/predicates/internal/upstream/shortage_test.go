// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	resourcev1 "k8s.io/api/resource/v1"
)

// TestMatchCache asserts which results are computed after each change of the slices, and which remain.
func TestMatchCache(t *testing.T) {
	t.Parallel()
	slices := map[string]*resourcev1.ResourceSlice{"a": {}, "b": {}}
	var c matchCache
	var computed []string
	for i, change := range []struct{ needs, want []string }{
		{needs: []string{"a", "b", "a"}, want: []string{"a", "b"}},
		{needs: []string{"a"}},
		{needs: []string{"a", "b"}, want: []string{"b"}},
	} {
		computed = nil
		c.begin()
		for _, name := range change.needs {
			got := c.get(slices[name], func() *match {
				computed = append(computed, name)
				return &match{failed: name == "a"}
			})
			if got.failed != (name == "a") {
				t.Errorf("change %d: %s gets the result of another slice", i, name)
			}
		}
		if diff := cmp.Diff(change.want, computed); diff != "" {
			t.Errorf("change %d: computed (-want +got):\n%s", i, diff)
		}
		if len(c.now) > 2 {
			t.Errorf("change %d: %d results are kept", i, len(c.now))
		}
	}
}
