package evict

import (
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// bundle collects units that together make room for a task on a node.
type bundle struct {
	task  *api.TaskInfo
	node  *api.NodeInfo
	room  api.Resource // with the units gone
	units []api.Unit
	here  []api.Resource // what each unit holds on the node
}

func (b *bundle) reset(t *api.TaskInfo, node *api.NodeInfo) {
	b.task, b.node = t, node
	b.room = node.Room(t.Priority, api.Future)
	b.units, b.here = b.units[:0], b.here[:0]
}

// short tells whether the task does not fit yet.
func (b *bundle) short() bool { return b.task.Request.Short(b.room) >= 0 }

// helps tells whether v holds some of what the task is short of.
func (b *bundle) helps(v *api.TaskInfo) bool {
	for d, n := range b.task.Request {
		if n > b.room.At(d) && v.Request.At(d) > 0 {
			return true
		}
	}
	return false
}

func (b *bundle) add(u api.Unit, here api.Resource) {
	b.units, b.here = append(b.units, u), append(b.here, here)
	b.room.Add(here)
}

// drop takes the units of a job out.
func (b *bundle) drop(j *api.JobInfo) {
	for i := len(b.units) - 1; i >= 0; i-- {
		if b.units[i].Job == j {
			b.remove(i)
		}
	}
}

func (b *bundle) remove(i int) {
	b.room.Sub(b.here[i])
	b.units, b.here = slices.Delete(b.units, i, i+1), slices.Delete(b.here, i, i+1)
}

func (b *bundle) singlesOf(j *api.JobInfo) int32 {
	n := int32(0)
	for i := range b.units {
		if b.units[i].Job == j && !b.units[i].Whole {
			n++
		}
	}
	return n
}

func (b *bundle) hasGang(j *api.JobInfo) bool {
	return slices.ContainsFunc(b.units, func(u api.Unit) bool { return u.Job == j && u.Whole })
}

// leaveOut drops units without which the task still fits, dearest first. The last one is needed:
// before it was added the task did not fit.
func (b *bundle) leaveOut() {
	for i := len(b.units) - 2; i >= 0; i-- {
		if b.task.Request.Short(b.room.Minus(b.here[i])) < 0 {
			b.remove(i)
		}
	}
}
