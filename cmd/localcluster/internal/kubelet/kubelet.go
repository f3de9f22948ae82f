// Package kubelet simulates the kubelets of all nodes of a cluster. Pods that are bound to
// a node start, end and go away as their annotations say (see package annotation), but no
// container ever runs.
//
// The machinery is kwok's: it watches pods and plays stages on them, each a selector, a
// delay and a change. What the changes say is decided here, in Go, and admission is decided
// by the code of the real kubelet: a pod that does not fit its node is rejected with the
// reason a real node gives (OutOfcpu, NodePorts, NodeAffinity, ...), which makes the
// mistakes of a scheduler visible.
//
// Unlike real ones these kubelets post no heartbeats and no node status, serve no logs,
// restart no container, and run pods whatever the conditions of their node say.
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

// Config says how the kubelets behave.
type Config struct {
	// Client reads pods and nodes, writes their status and deletes pods. It should have no
	// rate limit.
	Client kubernetes.Interface

	// Clock gives the moments in the status of pods.
	Clock clock.Clock

	// Log receives what kwok has to say, one JSON object a line.
	Log io.Writer

	// Parallelism is how many pods change state at the same time over all nodes, at least
	// one. Four serve about 600 pods a second; more takes the API server away from the
	// scheduler under test.
	Parallelism int

	// JobRunTime is how long a pod of a Job runs that does not say so itself.
	JobRunTime time.Duration
}

// Start starts a kubelet for every node there is or will be, whoever creates it, and
// returns. They stop when ctx ends.
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
		TypedClient:    deletingByUID{c.Client},
		ManageAllNodes: true,
		NodeIP:         "127.0.0.1",
		CIDR:           "10.128.0.0/9",
		LocalStages: map[internalversion.StageResourceRef][]*internalversion.Stage{
			nodeRef(): nil, // nodes are created complete; without the key kwok would not look at them
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
