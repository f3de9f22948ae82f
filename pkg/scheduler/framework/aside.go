package framework

import (
	"maps"
	"time"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// reservation is room that is set aside for a job, because it has waited long or was promised it.
type reservation struct {
	job        *api.JobInfo
	placements []api.Decision
	held       *api.Reservation // nil while it is open to a job whose turn it is
	nomination *nomination      // nil if the job is a gang that has waited long
}

// Placements count tasks that are to go to a node.
type Placements map[Placement]int

// Placement is the place of a task on a node.
type Placement struct {
	Node      string
	Signature *api.Signature
}

// StarvationAfter is how long a gang waits before room is set aside for it; 0: for ever.
func (ssn *Session) StarvationAfter() time.Duration { return ssn.profile.starvationAfter }

// Reserve keeps room for a gang at the places where it is to come together, as far as it is free
// or being released, until the session closes. The next session is to do the same before all others
// take what has become free since; it is told of the places by WasSetAside.
func (ssn *Session) Reserve(job *api.JobInfo, places []api.Decision) {
	ssn.addReservation(&reservation{job: job, placements: places})
}

func (ssn *Session) addReservation(a *reservation) {
	a.held = ssn.cluster.Ledger().Reserve(a.job.Queue, a.placements)
	ssn.reservations = append(ssn.reservations, a)
}

// PreviousReservation returns what the last session has set aside for the job; nil if nothing.
func (ssn *Session) PreviousReservation(job *api.JobInfo) Placements {
	return ssn.memory.reservations[job.ID]
}

// ActivateReservation says whose turn it is, nil for nobody's. What is set aside for a job is open to that job,
// and to jobs of its queue that go before it because of their priority.
func (ssn *Session) ActivateReservation(job *api.JobInfo) {
	for _, a := range ssn.reservations {
		switch open := a.nomination == nil && ssn.JobPipelined(a.job) || job != nil && ssn.opensTo(a, job); {
		case open && a.held != nil:
			ssn.cluster.Ledger().Unreserve(a.held)
			a.held = nil
		case !open && a.held == nil:
			a.held = ssn.cluster.Ledger().Reserve(a.job.Queue, a.placements)
		}
	}
}

func (ssn *Session) opensTo(a *reservation, job *api.JobInfo) bool {
	return job == a.job || job.Queue == a.job.Queue && job.Priority > a.job.Priority && ssn.CompareJobs(job, a.job) < 0
}

// StarvationReservation returns what is set aside for a job whose turn it is, nil if nothing is.
func (ssn *Session) StarvationReservation(job *api.JobInfo) *api.StarvationReservation {
	for _, a := range ssn.reservations {
		if a.job == job && a.nomination == nil {
			return &api.StarvationReservation{After: ssn.StarvationAfter(), Nodes: countNodes(a.placements), Startable: startable(a.placements), Need: int32(len(a.placements))}
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
			room = p.Node.Available(p.Task.Priority, api.Now)
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

// releaseReservations ends what was set aside, and remembers where for gangs that have waited long. Where it
// changes there is hope for those who found no room because of it.
func (ssn *Session) releaseReservations() {
	before := ssn.memory.reservations
	ssn.memory.reservations = map[api.JobID]Placements{}
	for _, a := range ssn.reservations {
		if a.held != nil {
			ssn.cluster.Ledger().Unreserve(a.held)
		}
		if a.nomination != nil {
			continue
		}
		placements := Placements{}
		for _, p := range a.placements {
			placements[placementOf(p)]++
		}
		ssn.memory.reservations[a.job.ID] = placements
	}
	ssn.reservations = nil
	if !maps.EqualFunc(before, ssn.memory.reservations, func(a, b Placements) bool { return maps.Equal(a, b) }) {
		ssn.InvalidatePlans()
	}
}
