// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMatchCache asserts which results are computed in each session, and which remain.
func TestMatchCache(t *testing.T) {
	t.Parallel()
	var c matchCache
	var computed []string
	for i, session := range []struct{ needs, want []string }{
		{needs: []string{"a", "b", "a"}, want: []string{"a", "b"}},
		{needs: []string{"a"}},
		{needs: []string{"a", "b"}, want: []string{"b"}},
	} {
		computed = nil
		c.begin()
		for _, name := range session.needs {
			got := c.get(matchKey{demand: name}, func() []bool {
				computed = append(computed, name)
				return []bool{name == "a"}
			})
			if got[0] != (name == "a") {
				t.Errorf("session %d: %s gets the result of another key", i, name)
			}
		}
		if diff := cmp.Diff(session.want, computed); diff != "" {
			t.Errorf("session %d: computed (-want +got):\n%s", i, diff)
		}
		if len(c.now) > 2 {
			t.Errorf("session %d: %d results are kept", i, len(c.now))
		}
	}
}
