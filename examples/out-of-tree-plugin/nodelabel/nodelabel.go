// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package nodelabel is an example of a plugin. It prefers nodes with a high value of a label, from 0 to 100, and
// excludes nodes without the label.
package nodelabel

import (
	"strconv"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

// Name is the name of the plugin in configurations.
const Name = "nodelabel"

// plugin lives as long as the configuration. It has no state of a session.
type plugin struct {
	label   string
	missing *api.Unfit // made once, because the model compares and shares refusals
}

// Spec registers the plugin. Check reads the same arguments as New, so that "config check" reports invalid ones.
func Spec() framework.PluginSpec {
	return framework.PluginSpec{
		New: func(d *conf.Decoder, _ framework.Handle) (framework.Plugin, error) {
			label := label(d)
			return &plugin{label, &api.Unfit{Reason: api.OtherUnfit, Detail: "node(s) had no valid label " + label, Fixed: true}}, nil
		},
		Check: func(d *conf.Decoder) { label(d) },
	}
}

func label(d *conf.Decoder) string {
	return d.String("label", "example.com/speed", "the label with a value from 0 to 100")
}

func (*plugin) Name() string { return Name }

// OnSessionOpen registers a function at each extension point that the plugin uses.
func (p *plugin) OnSessionOpen(ssn *framework.Session) {
	ssn.AddFilterFn(Name, p.filter)
	ssn.AddNodeOrderFn(Name, p.score)
}

func (*plugin) OnSessionClose(*framework.Session) {}

// filter reads only the node object, as the contract of framework.FilterFn requires.
func (p *plugin) filter(_ *api.Signature, n *api.NodeInfo) *api.Unfit {
	if _, valid := p.value(n); !valid {
		return p.missing
	}
	return nil
}

// score returns a score between 0 and api.OneScore.
func (p *plugin) score(_ *api.TaskInfo, n *api.NodeInfo) api.Score {
	value, _ := p.value(n)
	return api.OneScore * api.Score(value) / 100
}

func (p *plugin) value(n *api.NodeInfo) (int, bool) {
	if n.Node == nil {
		return 0, false
	}
	value, err := strconv.Atoi(n.Node.Labels[p.label])
	return value, err == nil && value >= 0 && value <= 100
}
