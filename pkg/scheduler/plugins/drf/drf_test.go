// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package drf_test

import (
	"math/big"
	"testing"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// TestDRF asserts how many pods of each PodGroup one cycle binds, where the shares of jobs decide.
func TestDRF(t *testing.T) {
	Cases{
		"two jobs get equal dominant shares": { // Ghodsi et al., section 4.1
			Given: Given(
				Node("n1", "9cpu 18Gi"), Queue("q", 1),
				Group("q/a", 1, Pending(9, "1cpu 4Gi")),
				Group("q/b", 1, Pending(9, "3cpu 1Gi")),
			),
			Want: "a 3, b 2",
		},
		"three jobs, one of them with GPUs": {
			Given: Given(
				Node("n1", "96cpu 384Gi 8gpu"), Queue("q", 1),
				Group("q/a", 1, Pending(20, "4cpu 16Gi 1gpu")),
				Group("q/b", 1, Pending(20, "8cpu 16Gi")),
				Group("q/c", 1, Pending(20, "2cpu 48Gi")),
			),
			Want: "a 5, b 7, c 4",
		},
	}.TestBinds(t)
}

// TestDRFOrdersByDominantShare compares the order of jobs with one by exact fractions.
func TestDRFOrdersByDominantShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ssn := RandomSession(t, BuiltIn(t), []conf.Tier{{Plugins: []conf.Plugin{{Name: "drf"}}}})
		for _, a := range ssn.Jobs() {
			for _, b := range ssn.Jobs() {
				want := dominantShare(ssn, a).Cmp(dominantShare(ssn, b))
				if got := ssn.CompareJobs(a, b); want != 0 && (got < 0) != (want < 0) {
					t.Fatalf("%s holds %v, %s holds %v, of %v: got order %d, want %d",
						a.Key, a.Allocated, b.Key, b.Allocated, ssn.Nodes().Total(), got, want)
				}
			}
		}
	})
}

// dominantShare returns the share that drf should compute: the largest fraction of cpu, memory or devices.
func dominantShare(ssn *framework.Session, j *api.JobInfo) *big.Rat {
	dims, most := ssn.Cluster().Dims(), new(big.Rat)
	for d, held := range j.Allocated {
		name, total := dims.Name(d), ssn.Nodes().Total().At(d)
		if held == 0 || name == v1.ResourcePods || name == v1.ResourceEphemeralStorage {
			continue
		}
		share := big.NewRat(1<<62, 1) // of a resource that no node has
		if total > 0 {
			share = big.NewRat(held, total)
		}
		if share.Cmp(most) > 0 {
			most = share
		}
	}
	return most
}
