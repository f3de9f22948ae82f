package evict

import (
	"cmp"
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/actions/internal/place"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// domains returns where the claim may be tried, one after the other: everywhere, or in each domain
// that is large enough for a gang that must stay together in one, the largest room first.
func (p *Planner) domains(claim *api.Claim) []place.Domain {
	first := claim.Tasks[0]
	key := first.Shape.TogetherIn()
	if key == "" || claim.Job.ReadyCount() > 0 { // members that run say where the rest must go
		return []place.Domain{nil}
	}
	most := map[string]int64{} // tasks that fit if all members of queues are gone
	now := map[string]int64{}
	nodes := p.ssn.Cluster().Nodes()
	p.ssn.Passing(first.Shape).Each(func(i int) {
		n := nodes[i]
		if value, ok := n.Node.Labels[key]; ok && n.Ready() {
			most[value] += first.Request.TimesIn(n.Allocatable.Minus(n.Outside))
			now[value] += first.Request.TimesIn(n.Room(first.Priority, api.Future))
		}
	})
	var values []string
	for value, n := range most {
		if n >= int64(len(claim.Tasks)) {
			values = append(values, value)
		}
	}
	slices.SortFunc(values, func(a, b string) int {
		return cmp.Or(cmp.Compare(now[b], now[a]), cmp.Compare(most[b], most[a]), cmp.Compare(a, b))
	})
	list := make([]place.Domain, len(values))
	for i, value := range values {
		list[i] = func(n *api.NodeInfo) bool { return n.Node.Labels[key] == value }
	}
	return list
}
