// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package kubelet simulates the kubelets of all nodes of a cluster. Pods that are bound to a node start, end and are
// deleted according to their annotations (see package annotation), but no container runs.
//
// kwok watches pods and applies stages to them, each with a selector, a delay and a patch. Go code of this package
// computes the patches, and the code of the real kubelet decides about admission: a pod that does not fit its node is
// rejected with the reason of a real node (OutOfcpu, NodePorts, NodeAffinity, ...), which makes scheduler errors
// visible.
//
// Unlike real ones these kubelets send no heartbeats and no node status, serve no logs, restart no containers, and
// run pods whatever the conditions of their node.
package kubelet

import (
	"context"
	"fmt"
	"io"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/kwok/controllers"
	kwoklog "sigs.k8s.io/kwok/pkg/log"
)

// Config configures the kubelets.
type Config struct {
	// Client reads pods and nodes, writes their status and deletes pods. It should have no rate limit.
	Client kubernetes.Interface

	// Clock returns the times in the status of pods.
	Clock clock.Clock

	// Log receives the log of kwok, one JSON object per line.
	Log io.Writer

	// Parallelism is the number of pods that change state concurrently on all nodes, at least one. Four process about
	// 600 pods per second; more would take API server capacity from the scheduler under test.
	Parallelism int

	// JobRunTime is how long a pod of a Job without an annotation runs.
	JobRunTime time.Duration
}

// Start starts a kubelet for every existing and future node and returns. They stop when ctx ends.
func Start(ctx context.Context, c Config) error {
	factory := informers.NewSharedInformerFactory(c.Client, 0)
	nodes := factory.Core().V1().Nodes()
	synced := nodes.Informer().HasSynced
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), synced) {
		return fmt.Errorf("listing nodes: %w", context.Cause(ctx))
	}
	lives := &podLifecycle{
		clock:      c.Clock,
		jobRunTime: c.JobRunTime,
		admission:  newAdmission(ctx, c.Client, nodes.Lister()),
	}
	parallelism := uint(c.Parallelism)
	controller, err := controllers.NewController(controllers.Config{
		Clock:          c.Clock,
		TypedClient:    guardedClient{c.Client},
		ManageAllNodes: true,
		NodeIP:         "127.0.0.1",
		CIDR:           "10.128.0.0/9",
		LocalStages: map[internalversion.StageResourceRef][]*internalversion.Stage{
			nodeRef(): nil, // nodes are created complete; without the key kwok would ignore them
			podRef():  stages(),
		},
		PodPlayStageParallelism:   parallelism,
		NodePlayStageParallelism:  parallelism,
		NodeLeaseParallelism:      parallelism,
		PodsOnNodeSyncParallelism: parallelism,
		ID:                        "localcluster",
		FuncMap:                   lives.functions(),
	})
	if err != nil {
		return fmt.Errorf("preparing the simulated kubelets: %w", err)
	}
	logger := kwoklog.NewLogger(c.Log, kwoklog.LevelWarn)
	if err := controller.Start(kwoklog.NewContext(ctx, logger)); err != nil {
		return fmt.Errorf("starting the simulated kubelets: %w", err)
	}
	return nil
}
