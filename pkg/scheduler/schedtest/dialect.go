// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package schedtest

import (
	v1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

// Dialect is a way to write gangs. The rows of a scenario declare PodGroups of this scheduler, and a dialect says the same
// with objects of another API, or with pods alone.
type Dialect struct {
	// Group translates a PodGroup. It is nil if the dialect has no such objects.
	Group func(*v1alpha1.PodGroup) *api.Group
	// Member has a pod name a PodGroup. title is the spelling in the rows.
	Member func(pod *v1.Pod, group *v1alpha1.PodGroup, title string)
}

// WithDialects writes each PodGroup in the dialect that a function returns for its title; nil is that of this scheduler.
func WithDialects(of func(title string) *Dialect) Option {
	return func(s *settings) { s.dialects = of }
}

// dialect returns the dialect of a PodGroup.
func (o *objects) dialect(title string) *Dialect {
	if o.dialects != nil {
		if d := o.dialects(title); d != nil {
			return d
		}
	}
	return &Dialect{
		Group:  api.OwnGroup,
		Member: func(p *v1.Pod, g *v1alpha1.PodGroup, _ string) { p.Labels[v1alpha1.LabelPodGroup] = g.Name },
	}
}

// join makes the pods of a row members of a PodGroup.
func (d *declaration) join(o *objects, g *v1alpha1.PodGroup) {
	dialect := o.dialect(d.title)
	d.all = append(d.all, Mutate(func(p *v1.Pod) { dialect.Member(p, g, d.title) }))
	if dialect.Group != nil {
		d.groupUID = string(g.UID)
	}
}

func (o *objects) setGroup(title string, g *v1alpha1.PodGroup) {
	o.groups[g.Namespace+"/"+g.Name] = g
	if dialect := o.dialect(title); dialect.Group != nil {
		o.enqueue("group "+string(g.UID), func(m *model.Cluster) { m.Events().SetGroup(dialect.Group(g)) })
	}
}

// removeGroup removes a PodGroup from the models.
func (o *objects) removeGroup(title string, g *v1alpha1.PodGroup) {
	delete(o.groups, g.Namespace+"/"+g.Name)
	if dialect := o.dialect(title); dialect.Group != nil {
		o.enqueue("group "+string(g.UID), func(m *model.Cluster) { m.Events().DeleteGroup(dialect.Group(g).Key(), g.UID) })
	}
}
