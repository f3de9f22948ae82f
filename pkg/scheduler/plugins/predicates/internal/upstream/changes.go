package upstream

import (
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// change is what was shown of a node before and after something happened to the pods on it.
type change struct{ before, after *nodeInfos }

// visit names the pods of one face that went and those that came.
func (c change) visit(face api.When, gone, come func(fwk.PodInfo, fwk.NodeInfo)) {
	each := func(of, other *nodeInfos, tell func(fwk.PodInfo, fwk.NodeInfo)) {
		for id, pod := range of.pods {
			if pod.on(face) && (!other.pods[id].on(face) || other.pods[id].info != pod.info) {
				tell(pod.info, of.show(face))
			}
		}
	}
	each(c.before, c.after, gone)
	each(c.after, c.before, come)
}

// on tells whether the pod is on a face. The zero value is on none.
func (r reflected) on(face api.When) bool {
	return r.info != nil && (face == api.Now || !r.leaving)
}

// changes are the last changes of the mirror.
type changes struct {
	base uint64 // how many are forgotten
	list []change
}

// changesLimit bounds how many changes are kept: who is further behind computes anew, which by then
// costs no more.
const changesLimit = 1 << 10

// add notes what happened to a node. If it is another one than before, all must be computed anew.
func (c *changes) add(before, after *nodeInfos) {
	if len(c.list) >= changesLimit || before == nil || after == nil || before.now.Node() != after.now.Node() {
		c.forget()
		return
	}
	c.list = append(c.list, change{before, after})
}

// forget lets all who ask compute anew.
func (c *changes) forget() {
	c.base += uint64(len(c.list)) + 1
	clear(c.list)
	c.list = c.list[:0]
}

// count is how many changes there have been.
func (c *changes) count() uint64 { return c.base + uint64(len(c.list)) }

// since returns the changes after the first so many; false if not all of them are known any more.
func (c *changes) since(count uint64) ([]change, bool) {
	if count < c.base {
		return nil, false
	}
	return c.list[count-c.base:], true
}
