package evict

import (
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// victimSet collects units that together make room for a task on a node.
type victimSet struct {
	task  *api.TaskInfo
	node  *api.NodeInfo
	room  api.Resource // with the units gone
	units []api.Unit
	here  []api.Resource // what each unit holds on the node
}

func (b *victimSet) reset(t *api.TaskInfo, node *api.NodeInfo) {
	b.task, b.node = t, node
	b.room = node.Available(t.Priority, api.Future)
	b.units, b.here = b.units[:0], b.here[:0]
}

// short tells whether the task does not fit yet.
func (b *victimSet) short() bool { return b.task.Request.InsufficientDimension(b.room) >= 0 }

// helps tells whether v holds some of what the task is short of.
func (b *victimSet) helps(v *api.TaskInfo) bool {
	for d, n := range b.task.Request {
		if n > b.room.At(d) && v.Request.At(d) > 0 {
			return true
		}
	}
	return false
}

func (b *victimSet) add(u api.Unit, here api.Resource) {
	b.units, b.here = append(b.units, u), append(b.here, here)
	b.room.Add(here)
}

// drop takes the units of a job out.
func (b *victimSet) drop(j *api.JobInfo) {
	for i := len(b.units) - 1; i >= 0; i-- {
		if b.units[i].Job == j {
			b.remove(i)
		}
	}
}

func (b *victimSet) remove(i int) {
	b.room.Sub(b.here[i])
	b.units, b.here = slices.Delete(b.units, i, i+1), slices.Delete(b.here, i, i+1)
}

func (b *victimSet) singlesOf(j *api.JobInfo) int32 {
	n := int32(0)
	for i := range b.units {
		if b.units[i].Job == j && !b.units[i].Whole {
			n++
		}
	}
	return n
}

func (b *victimSet) hasGang(j *api.JobInfo) bool {
	return slices.ContainsFunc(b.units, func(u api.Unit) bool { return u.Job == j && u.Whole })
}

// leaveOut drops units without which the task still fits, dearest first. The last one is needed:
// before it was added the task did not fit.
func (b *victimSet) leaveOut() {
	for i := len(b.units) - 2; i >= 0; i-- {
		if b.task.Request.InsufficientDimension(b.room.Minus(b.here[i])) < 0 {
			b.remove(i)
		}
	}
}
