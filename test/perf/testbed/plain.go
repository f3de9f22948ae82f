package testbed

import (
	"context"
	"fmt"
	"net"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// plainClients is how many there are.
const plainClients = 64

// Plainly has plain clients do something with each of count things, each client with one at a
// time, and returns the first error. The clients are to the API server who the scheduler is.
func (b *Bed) Plainly(ctx context.Context, count int, do func(ctx context.Context, client kubernetes.Interface, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var running sync.WaitGroup
	for range plainClients {
		client, err := b.plainClient()
		if err != nil {
			return err
		}
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

// plainClient has a connection of its own.
func (b *Bed) plainClient() (kubernetes.Interface, error) {
	config, err := b.asScheduler()
	if err != nil {
		return nil, err
	}
	config.Dial = (&net.Dialer{}).DialContext // clients with the same configuration share connections
	return kubernetes.NewForConfig(config)
}

// BindPlainly has plain clients bind pods, to one node after the other.
func (b *Bed) BindPlainly(ctx context.Context, pods []*corev1.Pod) error {
	nodes, err := b.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	b.options.Say("%d plain clients bind them", plainClients)
	return b.Plainly(ctx, len(pods), func(ctx context.Context, client kubernetes.Interface, i int) error {
		return Bind(ctx, client, pods[i].Name, nodes.Items[i%len(nodes.Items)].Name)
	})
}

// Bind binds a pod.
func Bind(ctx context.Context, client kubernetes.Interface, pod, node string) error {
	return client.CoreV1().Pods(Namespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: pod, Namespace: Namespace},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}, metav1.CreateOptions{})
}
