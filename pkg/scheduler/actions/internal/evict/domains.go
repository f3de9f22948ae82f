package evict

import (
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/place"
)

// domains returns where the claim may be tried, one after the other: everywhere, or in each domain
// that is large enough for a gang that must stay together in one, the largest room first.
func (p *Planner) domains(claim *api.Claim) []place.Domain {
	key := place.Together(claim)
	if key == "" {
		return []place.Domain{nil}
	}
	var list []place.Domain
	for _, d := range place.Domains(p.ssn, claim.Tasks[0], key) {
		if d.Size >= int64(len(claim.Tasks)) {
			list = append(list, d.Holds)
		}
	}
	return list
}
