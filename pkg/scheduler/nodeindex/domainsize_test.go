// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package nodeindex

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model/modeltest"
)

// TestSizeOfDomains asserts what the domains of three levels and their counts for 20 pod signatures take in a cluster of 5,000
// nodes: at most 4 MB.
func TestSizeOfDomains(t *testing.T) {
	const nodes, signatures, most = 5000, 20, 4 << 20
	c := NewCluster()
	for i := range nodes {
		c.Events().SetNode(Node(fmt.Sprintf("n%d", i), 64, labelled("zone", fmt.Sprint(i/1280)), labelled("block", fmt.Sprint(i/320)), labelled("rack", fmt.Sprint(i/16))))
	}
	var tasks []*api.TaskInfo
	for i := range signatures {
		c.Events().SetPod(Pod(fmt.Sprintf("p%d", i), 1+i))
	}
	index := New(c, c.Dims())
	open(index, c)
	for i := range signatures {
		tasks = append(tasks, c.Tasks()[api.TaskID(fmt.Sprintf("p%d", i))])
		index.Feasible(tasks[i].Signature)
	}
	labels := []string{"zone", "block", "rack"}
	before := heap()
	for i := range labels {
		domains := index.Domains(&api.TopologyLevel{Topology: "t", Name: labels[i], Labels: labels[:i+1]})
		for _, task := range tasks {
			domains.Available(task)
			domains.Capacity(task.Signature)
		}
		domains.Whole(domains.All()[0])
	}
	if size := heap() - before; size > most {
		t.Errorf("the domains take %d bytes, more than %d", size, most)
	} else {
		t.Logf("the domains take %d bytes", size)
	}
	runtime.KeepAlive(index)
}

// heap returns how many bytes of the heap are in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
