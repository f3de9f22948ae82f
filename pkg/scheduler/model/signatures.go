// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// signatureTable interns the signatures of all pods and the equivalence classes within them.
type signatureTable struct {
	dims  *api.Dimensions
	byKey map[string]*api.Signature
	kinds map[string]*api.SignatureKind // by Signature.KindKey
	count uint64                        // signatures that were ever created
	terms *termIndex                    // of all signatures

	deviceDimensions []int // resources that device classes provide
}

func newSignatureTable(dims *api.Dimensions) signatureTable {
	return signatureTable{dims: dims, byKey: map[string]*api.Signature{}, kinds: map[string]*api.SignatureKind{}, terms: newTermIndex()}
}

// acquire returns the signature of a pod that bears devices of claims, with one reference more.
func (st *signatureTable) acquire(pod *v1.Pod, borne borneDevices) *api.Signature {
	request := st.dims.RequestOf(pod)
	key := api.SignatureKey(pod, request)
	devices := st.requestsDevices(request)
	if devices {
		key += DevicesKey
	}
	if len(borne.counted) > 0 {
		key = BorneKey(key, borne.required, borne.counted)
	}
	s, ok := st.byKey[key]
	if !ok {
		s = api.NewSignature(key, pod, request)
		st.count++
		s.Tracking.Number = st.count
		s.DeviceResources = devices
		if len(borne.counted) > 0 {
			s.AddDevices(borne.required, borne.counted)
		}
		st.byKey[key] = s
		st.joinKind(s)
	}
	s.Tracking.References++
	if s.Tracking.References == 1 {
		st.terms.add(s.Terms)
	}
	return s
}

// release ends what acquire began; nil is ignored.
func (st *signatureTable) release(s *api.Signature) {
	if s == nil {
		return
	}
	if s.Tracking.References--; s.Tracking.References == 0 {
		st.terms.remove(s.Terms)
		delete(st.byKey, s.Key())
		if s.Tracking.Kind.Signatures--; s.Tracking.Kind.Signatures == 0 {
			delete(st.kinds, s.KindKey())
		}
	}
}

// joinKind adds a new signature to its kind.
func (st *signatureTable) joinKind(s *api.Signature) {
	if kind := st.kinds[s.KindKey()]; kind != nil {
		s.Tracking.Kind = kind
	} else {
		st.kinds[s.KindKey()] = s.Tracking.Kind
	}
	s.Tracking.Kind.Signatures++
}

// classOf returns the equivalence class of t, which is in a namespace with these labels. If limited is set, tasks with different
// limits of their run times are distinguished.
func (st *signatureTable) classOf(t *api.TaskInfo, namespaceLabels labels.Set, limited bool) *api.EquivalenceClass {
	key := st.terms.selecting(t.Pod, namespaceLabels)
	selected, limit := key != "", time.Duration(0)
	if limited {
		limit = t.Limit()
		key += "/limit=" + limit.String()
	}
	tracking := &t.Signature.Tracking
	if tracking.ClassesAt != st.terms.generation { // classes of deleted terms would pile up
		clear(tracking.Classes)
		tracking.ClassesAt = st.terms.generation
	}
	level, inner := requiredLevel(t), t.ConstrainedSubGroup()
	wanted := api.EquivalenceClass{Signature: t.Signature, Selected: selected, Limit: limit, Level: level, SubGroup: inner}
	if level != nil && inner == nil {
		wanted.Common = intern(tracking.Classes, key+"/topology="+level.Topology+"/"+level.Key(), wanted)
	}
	if level != nil || inner != nil { // where members of the same job run decides
		key += "/job=" + string(t.Job.ID)
	}
	if inner != nil {
		key += "/" + inner.Name
	}
	return intern(tracking.Classes, key, wanted)
}

// intern returns the class with a key. A class without Common is what it has in common with others.
func intern(classes map[string]*api.EquivalenceClass, key string, wanted api.EquivalenceClass) *api.EquivalenceClass {
	class := classes[key]
	if class != nil && class.Level == wanted.Level && class.SubGroup == wanted.SubGroup && (wanted.Common == nil || class.Common == wanted.Common) {
		return class
	}
	class = new(api.EquivalenceClass)
	*class = wanted
	if class.Common == nil {
		class.Common = class
	}
	classes[key] = class
	return class
}

func (st *signatureTable) withMembers() []*api.Signature {
	var signatures []*api.Signature
	for _, s := range st.byKey {
		if s.HasMembers() {
			signatures = append(signatures, s)
		}
	}
	slices.SortFunc(signatures, func(a, b *api.Signature) int { return cmp.Compare(a.Tracking.Number, b.Tracking.Number) })
	return signatures
}
