// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"fmt"
	"net"
	"sync"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// plainClients is the number of plain clients.
const plainClients = 64

// Plain are clients that bind without scheduling. Each has its own connection and the identity of the scheduler.
type Plain []kubernetes.Interface

// PlainClients returns clients with established connections.
func (b *Bed) PlainClients(ctx context.Context) (Plain, error) {
	p := make(Plain, plainClients)
	for i := range p {
		config, err := b.asScheduler()
		if err != nil {
			return nil, err
		}
		config.Dial = (&net.Dialer{}).DialContext // clients with the same configuration share connections
		if p[i], err = kubernetes.NewForConfig(config); err != nil {
			return nil, err
		}
	}
	return p, each(ctx, len(p), func(i int) error {
		_, err := p[i].Discovery().ServerVersion()
		return err
	})
}

// Do calls do for each of count items, each client with one item at a time, and returns the first error.
func (p Plain) Do(ctx context.Context, count int, do func(ctx context.Context, client kubernetes.Interface, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var running sync.WaitGroup
	for _, client := range p {
		running.Go(func() {
			for i := range next {
				if err := do(ctx, client, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	for i := range count {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	running.Wait()
	return context.Cause(ctx)
}

// Bind binds pods to the nodes of the testbed, round-robin.
func (p Plain) Bind(ctx context.Context, pods []*corev1.Pod, nodes int) error {
	return p.Do(ctx, len(pods), func(ctx context.Context, client kubernetes.Interface, i int) error {
		return Bind(ctx, client, pods[i].Name, NodeName(i%nodes))
	})
}

// NodeName is the name of a node of the local cluster.
func NodeName(i int) string { return fmt.Sprintf("node-%d", i) }

// Bind binds a pod.
func Bind(ctx context.Context, client kubernetes.Interface, pod, node string) error {
	return client.CoreV1().Pods(Namespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: pod, Namespace: Namespace},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}, metav1.CreateOptions{})
}

// Evict evicts a pod.
func Evict(ctx context.Context, client kubernetes.Interface, pod string) error {
	return client.PolicyV1().Evictions(Namespace).Evict(ctx, &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Name: pod, Namespace: Namespace},
	})
}
