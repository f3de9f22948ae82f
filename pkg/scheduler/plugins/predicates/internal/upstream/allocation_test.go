// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/semaphore"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
)

// waitingBinding writes claims until a channel is closed.
type waitingBinding struct {
	binding
	writing atomic.Int32
	written chan struct{}
}

func (b *waitingBinding) PreBind(context.Context, fwk.CycleState, *v1.Pod, string) *fwk.Status {
	b.writing.Add(1)
	defer b.writing.Add(-1)
	<-b.written
	return nil
}

// TestWriters: a limited number of pods write their claims at the same time, and those that take long do not keep others from
// it.
func TestWriters(t *testing.T) {
	const pods = writers + 10
	synctest.Test(t, func(t *testing.T) {
		d := &Devices{writing: semaphore.NewWeighted(writers), pending: map[types.UID]*allocation{}}
		b := &waitingBinding{written: make(chan struct{})}
		var committing sync.WaitGroup
		for range pods {
			a := &allocation{binding: b, devices: d, pod: &v1.Pod{}, node: &v1.Node{}, timeout: time.Minute, done: make(chan struct{})}
			committing.Go(func() {
				if err := a.Commit(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if n := b.writing.Load(); n != writers {
			t.Errorf("%d pods write their claims, want %d", n, writers)
		}
		time.Sleep(slowWrite)
		synctest.Wait()
		if n := b.writing.Load(); n != pods {
			t.Errorf("%d pods write their claims after %v, want %d", n, slowWrite, pods)
		}
		close(b.written)
		committing.Wait()
	})
}
