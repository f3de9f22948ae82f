// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"time"

	"k8s.io/klog/v2"
)

// waitingNotice is after what time the log says that the scheduler waits for the API server.
const waitingNotice = 5 * time.Second

// noteWaiting logs once that the scheduler waits for the API server, unless the returned function is called before.
// client-go retries for a long time without a line in the log if the API server refuses connections, or never answers.
func (p *process) noteWaiting(ctx context.Context) (stop func()) {
	timer := p.clock.NewTimer(waitingNotice)
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer timer.Stop()
		select {
		case <-ctx.Done():
		case <-timer.C():
			klog.FromContext(ctx).Info("Waiting for the API server", "server", p.server, "after", waitingNotice.String(),
				"request", "first list of pods, nodes and all other resources that the scheduler watches")
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}
