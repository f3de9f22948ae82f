package actions_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// restless is a plugin that decides nothing. It notes whether a session repeats the one before, and can
// keep the next one from doing so by asking for it at once.
type restless struct{ repeats, on bool }

func (*restless) Name() string { return "restless" }

func (p *restless) OnSessionOpen(ssn *framework.Session) {
	ssn.AddOpenedFn("restless", func() {
		p.repeats = ssn.Repeats()
		if p.on {
			ssn.WakeAt(ssn.Now)
		}
	})
}

func (*restless) OnSessionClose(*framework.Session) {}

// A session that only repeats the one before has the same decisions and explanations as one that looks at
// everything again.
func TestRepeatsAgainstSessionsThatLook(t *testing.T) {
	compared := 0
	rapid.Check(t, func(t *rapid.T) {
		r, probe := &random{t: t}, &restless{}
		registry := builtIn(t)
		spec := framework.PluginSpec{New: func(*conf.Decoder, framework.Handle) (framework.Plugin, error) { return probe, nil }}
		if err := registry.AddPlugin("restless", spec); err != nil {
			t.Fatal(err)
		}
		actions := r.oneOf("actions", `"allocate, backfill"`, `"reclaim, allocate, backfill, preempt"`)
		config := strings.Replace(conf.DefaultYAML(), `"allocate, backfill"`, actions, 1) + "- plugins: [{name: restless}]\n"
		c := New(t, registry, r.rows(), WithConfig(config))
		for range rapid.IntRange(1, 4).Draw(t, "rounds") {
			c.Cycle()
			c.Cycle()
			probe.on = true
			decisions, waits := c.Cycle(), c.Waits()
			probe.on = false
			if repeated := probe.repeats; repeated {
				compared++
				if again := c.Cycle(); again != decisions || c.Waits() != waits || probe.repeats {
					t.Fatalf("repeated:\n%s\n%s\nlooked at again (repeated: %t):\n%s\n%s", decisions, waits, probe.repeats, again, c.Waits())
				}
			}
			for range rapid.IntRange(0, 3).Draw(t, "happenings") {
				r.happening(c)
			}
		}
	})
	if compared == 0 {
		t.Error("no session repeated another")
	}
}
