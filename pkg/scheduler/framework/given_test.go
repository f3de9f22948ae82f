// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"fmt"
	"strings"

	"github.com/go-logr/logr"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

// failer is what helpers need of a test, random or not.
type failer interface {
	Helper()
	Fatal(args ...any)
}

// testPlugin is a plugin made of functions.
type testPlugin struct {
	name        string
	open, close func(*Session)
}

func (p testPlugin) Name() string { return p.name }

func (p testPlugin) OnSessionOpen(ssn *Session) {
	if p.open != nil {
		p.open(ssn)
	}
}

func (p testPlugin) OnSessionClose(ssn *Session) {
	if p.close != nil {
		p.close(ssn)
	}
}

func (p testPlugin) spec() PluginSpec {
	return PluginSpec{New: func(*conf.Decoder, Handle) (Plugin, error) { return p, nil }}
}

// profileOf makes a profile of tiers of plugins. Points named in off are switched off for all.
func profileOf(t failer, off []conf.Point, tiers ...[]testPlugin) *Profile {
	t.Helper()
	r := NewRegistry()
	c := &conf.Configuration{}
	for _, plugins := range tiers {
		var tier conf.Tier
		for _, p := range plugins {
			if err := r.AddPlugin(p.name, p.spec()); err != nil {
				t.Fatal(err)
			}
			tier.Plugins = append(tier.Plugins, conf.Plugin{Name: p.name, Disabled: off})
		}
		c.Tiers = append(c.Tiers, tier)
	}
	profile, err := r.NewProfile(c, Handle{})
	if err != nil {
		t.Fatal(err)
	}
	return profile
}

// effects keeps what was committed, as words.
type effects struct{ committed []string }

func (e *effects) Commit(decisions []api.Decision) {
	words := make([]string, 0, len(decisions))
	for _, d := range decisions {
		words = append(words, wordsOf(d))
	}
	e.committed = append(e.committed, strings.Join(words, ", "))
}

func wordsOf(d api.Decision) string {
	node := "-"
	if d.Node != nil {
		node = d.Node.Name
	}
	return fmt.Sprintf("%s %s %s", d.Kind, d.Task.ID, node)
}

func open(t failer, p *Profile, c *model.Cluster) (*Session, *effects) {
	t.Helper()
	c.Events().Recompute()
	e := &effects{}
	return p.Open(c, e, logr.Discard()), e
}
