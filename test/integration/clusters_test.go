// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/batch-scheduler/batch-scheduler/test/cluster"
	"github.com/batch-scheduler/batch-scheduler/test/scheduler"
)

// clusters are those that cases have used, and that are as they were after config/ had been installed. A cluster takes more to
// start than most cases need.
var clusters struct {
	sync.Mutex
	idle []*installed
}

// installed is a cluster where config/ is installed.
type installed struct {
	*cluster.Cluster
	state *cluster.State // nil: other cases must not use it
}

// takeCluster returns a cluster for a case.
func takeCluster(ctx context.Context, o cluster.Options) (*installed, error) {
	shared := cmp.Equal(o, noControllers)
	clusters.Lock()
	if last := len(clusters.idle) - 1; shared && last >= 0 {
		c := clusters.idle[last]
		clusters.idle = clusters.idle[:last]
		clusters.Unlock()
		return c, nil
	}
	clusters.Unlock()
	started, err := cluster.Start(ctx, o)
	if err != nil {
		return nil, err
	}
	c := &installed{Cluster: started}
	if err = scheduler.Install(ctx, started); err == nil && shared {
		c.state, err = cluster.ReadState(ctx, started)
	}
	if err != nil {
		return nil, errors.Join(err, started.Stop())
	}
	return c, nil
}

// release makes the cluster of a case that has ended available to others, or stops it if it is not like a new one.
func (c *installed) release(t *testing.T) {
	if c.state != nil && !t.Failed() {
		err := c.state.Restore(context.Background())
		if err == nil {
			clusters.Lock()
			defer clusters.Unlock()
			clusters.idle = append(clusters.idle, c)
			return
		}
		t.Logf("the cluster is not used again: %v", err)
	}
	if err := c.Stop(); err != nil {
		t.Errorf("stopping the cluster: %v", err)
	}
}

// stopClusters stops all clusters that no case uses.
func stopClusters() (err error) {
	for _, c := range clusters.idle {
		err = errors.Join(err, c.Stop())
	}
	return err
}
