package main

import (
	"context"
	"fmt"
	"net"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"github.com/batch-scheduler/batch-scheduler/test/cluster"
)

// plainClients is how many clients bind pods in the measurement of the ceiling.
const plainClients = 64

// ceiling creates the same pods and has plain clients bind them, node after node, while an
// informer watches as a scheduler's would. It returns pods per second, from the first binding
// to the last, seen by the same watch as in the measurement proper.
func ceiling(ctx context.Context, c *cluster.Cluster, o options, say progress) (float64, error) {
	client, err := kubernetes.NewForConfig(fast(c.RESTConfig()))
	if err != nil {
		return 0, err
	}
	say("ceiling: creating %d pods", o.pods())
	if err = createPods(ctx, client, o); err != nil {
		return 0, err
	}
	limited, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	factory := informers.NewSharedInformerFactory(client, 0)
	factory.Core().V1().Pods().Informer()
	factory.Start(limited.Done())
	factory.WaitForCacheSync(limited.Done())
	w, err := newBindWatch(limited, client)
	if err != nil {
		return 0, err
	}
	nodes, err := client.CoreV1().Nodes().List(limited, metav1.ListOptions{})
	if err != nil {
		return 0, fmt.Errorf("listing nodes: %w", err)
	}
	say("ceiling: %d plain clients bind them", plainClients)
	failed := bindAll(limited, c, o, nodes.Items)
	if err := w.wait(limited, o.pods(), nil, say); err != nil {
		return 0, err
	}
	if err := <-failed; err != nil {
		return 0, err
	}
	return float64(w.count) / w.last.Sub(w.first).Seconds(), nil
}

// bindAll has the clients bind all pods and then sends the first error, or nil.
func bindAll(ctx context.Context, c *cluster.Cluster, o options, nodes []corev1.Node) <-chan error {
	ctx, cancel := context.WithCancelCause(ctx)
	next := make(chan int)
	var running sync.WaitGroup
	for range plainClients {
		running.Go(func() {
			client, err := plainClient(c)
			for i := range next {
				if err == nil {
					err = bind(ctx, client, i/o.size, i%o.size, nodes[i%len(nodes)].Name)
				}
				if err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	failed := make(chan error, 1)
	go func() {
		defer cancel(nil)
		for i := range o.pods() {
			select {
			case next <- i:
			case <-ctx.Done():
			}
		}
		close(next)
		running.Wait()
		failed <- context.Cause(ctx)
	}()
	return failed
}

// plainClient returns a client with a connection of its own.
func plainClient(c *cluster.Cluster) (kubernetes.Interface, error) {
	config := fast(c.RESTConfig())
	config.Dial = (&net.Dialer{}).DialContext // clients with the same configuration share connections
	return kubernetes.NewForConfig(config)
}

func bind(ctx context.Context, client kubernetes.Interface, gang, member int, node string) error {
	pod := newPod(gang, member)
	return client.CoreV1().Pods(namespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: namespace},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}, metav1.CreateOptions{})
}
