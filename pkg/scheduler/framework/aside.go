package framework

import (
	"maps"
	"time"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// aside is room that is set aside for a job, because it has waited long or was promised it.
type aside struct {
	job     *api.JobInfo
	places  []api.Decision
	kept    *api.Aside // nil while it is open to a job whose turn it is
	promise *promise   // nil if the job is a gang that has waited long
}

// Seats count tasks that are to go to a node.
type Seats map[Seat]int

// Seat is the place of a task on a node.
type Seat struct {
	Node  string
	Shape *api.Shape
}

// StarvationAfter is how long a gang waits before room is set aside for it; 0: for ever.
func (ssn *Session) StarvationAfter() time.Duration { return ssn.profile.starvationAfter }

// SetAside keeps room for a gang at the places where it is to come together, as far as it is free
// or being released, until the session closes. The next session is to do the same before all others
// take what has become free since; it is told of the places by WasSetAside.
func (ssn *Session) SetAside(job *api.JobInfo, places []api.Decision) {
	ssn.setAside(&aside{job: job, places: places})
}

func (ssn *Session) setAside(a *aside) {
	a.kept = ssn.cluster.SetAside(a.job.Queue, a.places)
	ssn.aside = append(ssn.aside, a)
}

// WasSetAside returns what the last session has set aside for the job; nil if nothing.
func (ssn *Session) WasSetAside(job *api.JobInfo) Seats { return ssn.memory.aside[job.ID] }

// Turn says whose turn it is, nil for nobody's. What is set aside for a job is open to that job,
// and to jobs of its queue that go before it because of their priority.
func (ssn *Session) Turn(job *api.JobInfo) {
	for _, a := range ssn.aside {
		switch open := a.promise == nil && ssn.JobPipelined(a.job) || job != nil && ssn.opensTo(a, job); {
		case open && a.kept != nil:
			ssn.cluster.GiveBack(a.kept)
			a.kept = nil
		case !open && a.kept == nil:
			a.kept = ssn.cluster.SetAside(a.job.Queue, a.places)
		}
	}
}

func (ssn *Session) opensTo(a *aside, job *api.JobInfo) bool {
	return job == a.job || job.Queue == a.job.Queue && job.Priority > a.job.Priority && ssn.CompareJobs(job, a.job) < 0
}

// Forming returns what is set aside for a job whose turn it is, nil if nothing is.
func (ssn *Session) Forming(job *api.JobInfo) *api.Forming {
	for _, a := range ssn.aside {
		if a.job == job && a.promise == nil {
			return &api.Forming{After: ssn.StarvationAfter(), Nodes: countNodes(a.places), Startable: startable(a.places), Need: int32(len(a.places))}
		}
	}
	return nil
}

// startable counts the places that have room now.
func startable(places []api.Decision) int32 {
	n := int32(0)
	rooms := map[*api.NodeInfo]api.Resource{}
	for _, p := range places {
		room, known := rooms[p.Node]
		if !known {
			room = p.Node.Room(p.Task.Priority, api.Now)
		}
		if p.Task.Request.Fits(room) {
			room.Sub(p.Task.Request)
			n++
		}
		rooms[p.Node] = room
	}
	return n
}

func countNodes(places []api.Decision) int {
	nodes := map[*api.NodeInfo]bool{}
	for _, p := range places {
		nodes[p.Node] = true
	}
	return len(nodes)
}

// giveBackAsides ends what was set aside, and remembers where for gangs that have waited long. Where it
// changes there is hope for those who found no room because of it.
func (ssn *Session) giveBackAsides() {
	before := ssn.memory.aside
	ssn.memory.aside = map[api.JobID]Seats{}
	for _, a := range ssn.aside {
		if a.kept != nil {
			ssn.cluster.GiveBack(a.kept)
		}
		if a.promise != nil {
			continue
		}
		seats := Seats{}
		for _, p := range a.places {
			seats[seatOf(p)]++
		}
		ssn.memory.aside[a.job.ID] = seats
	}
	ssn.aside = nil
	if !maps.EqualFunc(before, ssn.memory.aside, func(a, b Seats) bool { return maps.Equal(a, b) }) {
		ssn.Hope()
	}
}
