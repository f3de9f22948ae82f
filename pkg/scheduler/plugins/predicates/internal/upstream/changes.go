// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// change is the NodeInfo of a node before and after its pods changed.
type change struct{ before, after *nodeInfos }

// forEachPod calls removed and added for the pods of the given time that differ between before and after.
func (c change) forEachPod(when api.When, removed, added func(fwk.PodInfo, fwk.NodeInfo)) {
	missing := func(of, other *nodeInfos, report func(fwk.PodInfo, fwk.NodeInfo)) {
		for id, pod := range of.pods {
			if pod.on(when) && (!other.pods[id].on(when) || other.pods[id].info != pod.info) {
				report(pod.info, of.at(when))
			}
		}
	}
	missing(c.before, c.after, removed)
	missing(c.after, c.before, added)
}

// on reports whether the pod is on the node at the given time. The zero value never is.
func (r podState) on(when api.When) bool {
	return r.info != nil && (when == api.Now || !r.terminating)
}

// changes is the list of the last changes of the snapshot.
type changes struct {
	base uint64 // changes that are no longer recorded
	list []change
}

// changesLimit limits the number of recorded changes. A reader that is further behind runs PreFilter again, which costs
// no more by then.
const changesLimit = 1 << 10

// add records a change of the pods of a node. Any other change of a node invalidates all readers.
func (c *changes) add(before, after *nodeInfos) {
	if len(c.list) >= changesLimit || before == nil || after == nil || before.now.Node() != after.now.Node() {
		c.forget()
		return
	}
	c.list = append(c.list, change{before, after})
}

// forget invalidates all readers.
func (c *changes) forget() {
	c.base += uint64(len(c.list)) + 1
	clear(c.list)
	c.list = c.list[:0]
}

// count returns the number of changes so far.
func (c *changes) count() uint64 { return c.base + uint64(len(c.list)) }

// since returns the changes after the first count ones; false if some of them are no longer recorded.
func (c *changes) since(count uint64) ([]change, bool) {
	if count < c.base {
		return nil, false
	}
	return c.list[count-c.base:], true
}
