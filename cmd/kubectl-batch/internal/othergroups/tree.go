// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package othergroups

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// PodGroupsOf returns the namespace/name of the native PodGroups whose pods are members of a group that is in a tree of
// groups: the group itself, or all below a composite group.
func (r Reader) PodGroupsOf(ctx context.Context, g *api.Group) (map[string]bool, error) {
	if g.Source != api.SourceComposite {
		return map[string]bool{g.Key().Name: true}, nil
	}
	apis, err := r.Served(ctx)
	if err != nil {
		return nil, err
	}
	groups := map[api.GroupKey]Group{}
	for _, a := range apis {
		if a.Source != api.SourceNative && a.Source != api.SourceComposite {
			continue
		}
		list, err := r.Dynamic.Resource(a.Resource).Namespace(g.Namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			read := Read(a, &list.Items[i])
			groups[read.Key()] = read
		}
	}
	below := map[string]bool{}
	for key, at := range groups {
		for range len(groups) { // parents may form a cycle
			if at.Object == nil || at.Key() == g.Key() {
				break
			}
			at = groups[api.GroupKey{Source: api.SourceComposite, Name: g.Namespace + "/" + at.Parent}]
		}
		if at.Object != nil && at.Key() == g.Key() && key.Source == api.SourceNative {
			below[key.Name] = true
		}
	}
	return below, nil
}
