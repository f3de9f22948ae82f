// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package fragmentation

import (
	"encoding/json"

	v1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// TypeKey returns a key that is equal for signatures whose pods are one type: they request the same and pass the same filters
// of nodes. Namespaces, images and claims do not matter.
func TypeKey(s *api.Signature) string {
	spec := s.Exemplar
	filters := struct {
		Selector    map[string]string
		Affinity    *v1.NodeSelector
		Tolerations []v1.Toleration
	}{Selector: spec.NodeSelector, Tolerations: spec.Tolerations}
	if a := spec.Affinity; a != nil && a.NodeAffinity != nil {
		filters.Affinity = a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	text, err := json.Marshal(filters)
	if err != nil { // API types always marshal
		text = []byte(s.Key())
	}
	return string(append(s.Request.AppendKey(nil), text...))
}
