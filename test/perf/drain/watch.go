package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// bindWatch sees pods get their nodes, as everybody who watches sees it.
type bindWatch struct {
	events      watch.Interface
	bound       map[types.UID]bool
	count       int // of pods that have a node
	first, last time.Time
}

// newBindWatch watches from now on. The watch ends with the context.
func newBindWatch(ctx context.Context, client kubernetes.Interface) (*bindWatch, error) {
	list, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	events, err := client.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return nil, fmt.Errorf("watching pods: %w", err)
	}
	return &bindWatch{events: events, bound: map[types.UID]bool{}}, nil
}

// wait returns when count pods have nodes. It returns an error if that does not come to pass:
// because the context or the watch has ended, or what is to bind them.
func (w *bindWatch) wait(ctx context.Context, count int, ended <-chan struct{}, say progress) error {
	defer w.events.Stop()
	report := time.NewTicker(5 * time.Second)
	defer report.Stop()
	for w.count < count {
		select {
		case event, ok := <-w.events.ResultChan():
			if !ok || event.Type == watch.Error {
				return errors.New("the watch of pods has ended")
			}
			w.see(event)
		case <-report.C:
			say("%d of %d pods are bound", w.count, count)
		case <-ended:
			return errors.New("the scheduler has ended")
		case <-ctx.Done():
			return fmt.Errorf("time is over: %w", ctx.Err())
		}
	}
	return nil
}

func (w *bindWatch) see(event watch.Event) {
	pod, ok := event.Object.(*corev1.Pod)
	if !ok || pod.Spec.NodeName == "" || w.bound[pod.UID] {
		return
	}
	w.bound[pod.UID] = true
	w.last = time.Now()
	if w.count == 0 {
		w.first = w.last
	}
	w.count++
}
