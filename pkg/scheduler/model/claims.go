// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// claimTable holds the resource claims whose devices count, and the pods that use claims.
//
// The devices of a claim count once, however many pods share it: for its bearer. That is the first of the pods that the
// claim is reserved for, and while it is reserved for none that the model knows, the first pod that names it. Pods that
// have ended bear nothing. For example, a gang of 17 pods names a claim for one device: the first pod counts with one
// device, also after the claim is allocated, and the other 16 with none. When the first pod ends, the next one bears it.
type claimTable struct {
	byKey map[string]*deviceClaim       // by namespace/name
	of    map[api.TaskID][]*deviceClaim // the claims that pods name
}

// deviceClaim exists while the API server shows the claim or pods name it.
type deviceClaim struct {
	key               string
	shown             *api.DeviceClaim // nil if it requests nothing that counts, or is not known
	required, counted api.Resource
	users             []*api.TaskInfo // in no order
	bearer            *api.TaskInfo
}

func newClaimTable() claimTable {
	return claimTable{byKey: map[string]*deviceClaim{}, of: map[api.TaskID][]*deviceClaim{}}
}

func sameAmounts(a, b *api.DeviceClaim) bool {
	if a == nil || b == nil {
		return a == b
	}
	return sameList(a.Required, b.Required) && sameList(a.Counted, b.Counted)
}

func sameList(a, b v1.ResourceList) bool {
	if len(a) != len(b) {
		return false
	}
	for name, quantity := range a {
		if other, ok := b[name]; !ok || quantity.Cmp(other) != 0 {
			return false
		}
	}
	return true
}

// use records the claims that the pod of t names; none if gone is set. It returns the other tasks that bear a claim now and
// did not before, or the other way round.
func (ct *claimTable) use(t *api.TaskInfo, gone bool) (moved []*api.TaskInfo) {
	before := ct.of[t.ID]
	if len(before) == 0 && len(t.Pod.Spec.ResourceClaims) == 0 {
		return nil
	}
	var now []*deviceClaim
	if !gone {
		for _, key := range ClaimsOf(t.Pod) {
			now = append(now, ct.named(key))
		}
	}
	for _, claim := range before {
		claim.users = withOrWithout(claim.users, t, false)
	}
	for _, claim := range now {
		claim.users = append(claim.users, t)
	}
	for _, claim := range append(slices.Clone(before), now...) {
		old := claim.bearer
		claim.bearer = claim.findBearer()
		for _, other := range []*api.TaskInfo{old, claim.bearer} {
			if old != claim.bearer && other != nil && other != t {
				moved = append(moved, other)
			}
		}
		ct.release(claim)
	}
	if len(now) == 0 {
		delete(ct.of, t.ID)
	} else {
		ct.of[t.ID] = now
	}
	return moved
}

// ClaimsOf returns the claims that a pod names, as namespace/name, each of them once. Claims that are not made from their
// template yet are left out.
func ClaimsOf(pod *v1.Pod) []string {
	var keys []string
	for i := range pod.Spec.ResourceClaims {
		name, _, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i])
		if err != nil || name == nil {
			continue
		}
		if key := pod.Namespace + "/" + *name; !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// borneDevices are the devices of the claims that a pod bears.
type borneDevices struct{ required, counted api.Resource }

func (ct *claimTable) borneBy(t *api.TaskInfo) (borne borneDevices) {
	for _, claim := range ct.of[t.ID] {
		if claim.bearer == t {
			borne.required.Add(claim.required)
			borne.counted.Add(claim.counted)
		}
	}
	return borne
}

// BorneKey returns the key of a signature whose pods bear devices of claims; without them the key would be another one.
func BorneKey(key string, required, counted api.Resource) string {
	return string(counted.AppendKey(required.AppendKey([]byte(key + "claims;"))))
}

func (ct *claimTable) named(key string) *deviceClaim {
	claim := ct.byKey[key]
	if claim == nil {
		claim = &deviceClaim{key: key}
		ct.byKey[key] = claim
	}
	return claim
}

func (ct *claimTable) release(claim *deviceClaim) {
	if claim.shown == nil && len(claim.users) == 0 {
		delete(ct.byKey, claim.key)
	}
}

func (c *deviceClaim) findBearer() *api.TaskInfo {
	var consumers []api.TaskID
	if c.shown != nil {
		consumers = c.shown.Consumers
	}
	return Bearer(c.users, consumers)
}

// Bearer returns the one of the users of a claim for which its devices count; nil if none of them has not ended.
func Bearer(users []*api.TaskInfo, consumers []api.TaskID) *api.TaskInfo {
	var bearer *api.TaskInfo
	for _, t := range users {
		if !api.StatusOf(t.Pod).Ended() && (bearer == nil || bears(t, bearer, consumers)) {
			bearer = t
		}
	}
	return bearer
}

// bears reports whether a rather than b bears a claim that both use.
func bears(a, b *api.TaskInfo, consumers []api.TaskID) bool {
	waits := func(t *api.TaskInfo) int {
		switch {
		case slices.Contains(consumers, t.ID):
			return 0
		case len(t.Pod.Spec.SchedulingGates) == 0:
			return 1
		}
		return 2
	}
	return cmp.Or(cmp.Compare(waits(a), waits(b)),
		api.CompareAge(a.Pod.CreationTimestamp.UnixNano(), b.Pod.CreationTimestamp.UnixNano(), a.Key, b.Key), cmp.Compare(a.ID, b.ID)) < 0
}
