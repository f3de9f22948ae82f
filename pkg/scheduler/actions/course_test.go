package actions_test

import (
	"fmt"
	"slices"
	"strings"

	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// course is a cluster and how things go in it: binds succeed, pods run, and nobody comes but pods
// that were evicted. Cycles are counted from 0.
type course struct {
	given     []Row
	noForming bool // no room is set aside for gangs that have waited long
	grace     int  // for how many cycles victims stay before they are gone
	back      bool // victims come back as new pods, as controllers make them

	refused map[int]int    // in which cycle an eviction is refused, and which; those before it take place
	pardon  int            // after how many cycles it may be tried again
	lost    map[int]string // after which cycle a node is lost, and which

	patience int  // how often a state may come back with evictions in between
	ahead    bool // jobs may go ahead of those that pods were evicted for
}

const (
	quiet = 3   // cycles without a decision are rest
	most  = 120 // cycles until then
)

// config is that of the cluster.
func (k course) config() Option {
	if k.noForming {
		return WithConfig("starvationAfter: 0\n" + allFour)
	}
	return WithConfig(allFour)
}

// run lets cycles pass until nothing changes. It returns an error if the cluster comes back to a
// state with evictions in between, or does not come to rest.
func (k course) run(c *Cluster) error {
	r := &run{course: k, c: c, takers: takers{}, seen: map[string]int{}, gone: map[int][]string{}, pardoned: map[int][]string{}}
	for still := 0; still < quiet; r.cycles++ {
		still++
		if transcript := r.cycle(); strings.Contains(transcript, "evict ") || strings.Contains(transcript, "bind ") {
			still = 0
		}
		if err := r.check(); err != nil {
			return err
		}
		r.answer()
		r.happen()
		if len(r.gone)+len(r.pardoned)+len(r.lost) > 0 {
			still = 0
		}
		c.WaitUntilDue()
	}
	return nil
}

// run is a course on its way.
type run struct {
	course
	c         *Cluster
	cycles    int
	evictions int
	takers    takers
	log       []string
	seen      map[string]int // evictions until then, by state

	gone, pardoned map[int][]string // pods, by the cycle after which that happens
}

func (r *run) cycle() string {
	transcript := r.c.Cycle()
	r.log = append(r.log, transcript)
	r.evictions += strings.Count(transcript, "evict ")
	r.takers.decided(transcript, r.c.Plans())
	return transcript
}

func (r *run) check() error {
	state := r.c.State()
	before, known := r.seen[state]
	switch {
	case known && before < r.evictions:
		if r.patience--; r.patience < 0 {
			return fmt.Errorf("comes back, with evictions in between, to the state\n%s\n\nthe cycles were\n%s", state, strings.Join(r.log, "\n--\n"))
		}
	case r.cycles > most:
		return fmt.Errorf("is not at rest after %d cycles:\n%s", r.cycles, strings.Join(r.log, "\n--\n"))
	}
	r.seen[state] = r.evictions
	if err := r.takers.check(r.cycles); err != nil && !r.ahead {
		return fmt.Errorf("%w:\n%s", err, strings.Join(r.log, "\n--\n"))
	}
	return nil
}

// answer lets binds and evictions take effect, the latter when they are due.
func (r *run) answer() {
	r.c.ConfirmBinds()
	r.c.Start()
	victims := slices.DeleteFunc(r.c.EvictionsInFlight(), func(name string) bool {
		return slices.ContainsFunc(mapsValues(r.gone), func(names []string) bool { return slices.Contains(names, name) })
	})
	if at, refused := r.refused[r.cycles]; refused && at < len(victims) {
		r.log = append(r.log, "refused: "+victims[at])
		r.c.FailEvictions(victims[at:]...)
		r.c.BlockEviction(victims[at])
		for _, name := range victims[at:] {
			r.takers.spared(name)
		}
		r.pardoned[r.cycles+r.pardon] = append(r.pardoned[r.cycles+r.pardon], victims[at])
		victims = victims[:at]
	}
	if len(victims) > 0 {
		r.gone[r.cycles+r.grace] = victims
	}
	for _, name := range r.gone[r.cycles] {
		r.takers.gone(name, r.cycles)
		if r.c.FinishEvictions(name); r.back {
			r.c.CreateAgain(name)
		}
	}
	delete(r.gone, r.cycles)
}

// happen is what else happens. What was before does not count any more then.
func (r *run) happen() {
	if pods := r.pardoned[r.cycles]; len(pods) > 0 {
		r.log = append(r.log, fmt.Sprintf("pardoned: %q", pods))
		r.c.AllowEviction(pods...)
		clear(r.seen)
	}
	delete(r.pardoned, r.cycles)
	if node := r.lost[r.cycles]; node != "" {
		r.log = append(r.log, "lost: "+node)
		r.lose(node)
		clear(r.seen)
	}
	delete(r.lost, r.cycles)
}

// lose takes a node away with all that is on it.
func (r *run) lose(node string) {
	pods := r.c.PodsOn(node)
	for cycle, names := range r.gone {
		r.gone[cycle] = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(pods, name) })
	}
	clear(r.takers) // all of them may have waited for that node
	r.c.DeleteNode(node)
	r.c.Delete(pods...)
	if r.back {
		r.c.CreateAgain(pods...)
	}
}

func mapsValues(m map[int][]string) [][]string {
	var list [][]string
	for _, names := range m {
		list = append(list, names)
	}
	return list
}
