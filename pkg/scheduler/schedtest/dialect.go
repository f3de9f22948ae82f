// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package schedtest

import (
	v1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// Dialect is a way to write gangs. The rows of a scenario declare PodGroups of this scheduler, and a dialect says the same
// with objects of another API, or with pods alone.
type Dialect struct {
	// Group translates a PodGroup. It is nil if the dialect has no such objects.
	Group func(*v1alpha1.PodGroup) *api.Group
	// Parts translates it to further objects. It is nil if the dialect has one object.
	Parts func(*v1alpha1.PodGroup) []*api.Group
	// Member has a pod, which has its labels, name a PodGroup. title is the spelling in the rows.
	Member func(pod *v1.Pod, group *v1alpha1.PodGroup, title string)
}

// groups returns all objects that a PodGroup is in the dialect.
func (d *Dialect) groups(g *v1alpha1.PodGroup) []*api.Group {
	var groups []*api.Group
	if d.Group != nil {
		groups = append(groups, d.Group(g))
	}
	if d.Parts != nil {
		groups = append(groups, d.Parts(g)...)
	}
	return groups
}

// WithDialects writes each PodGroup in the dialect that a function returns for its title; nil is that of this scheduler.
func WithDialects(of func(title string) *Dialect) Option {
	return func(s *settings) { s.dialects = of }
}

// join makes the pods of a row members of a PodGroup.
func (d *declaration) join(o *objects, g *v1alpha1.PodGroup) {
	dialect := o.dialect(d.title)
	d.last = append(d.last, Mutate(func(p *v1.Pod) { dialect.Member(p, g, d.title) }))
	if dialect.Group != nil {
		d.groupUID = string(g.UID)
	}
}
