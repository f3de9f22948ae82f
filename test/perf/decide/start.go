// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	batchfake "github.com/batch-scheduler/batch-scheduler/pkg/client/clientset/versioned/fake"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/builtin"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/metrics"
)

// starting runs the whole scheduler with fake clients: its informers list 20 running pods per node and one pending
// pod. The bounded figure is the time from the sync of the informers to the request that binds the pod: all objects
// are added to a new model, and the first session has no cached results. The time of the informers themselves, which
// mostly depends on the API server, has no bound.
func starting(nodes int) benchmark {
	const perNode = 20
	return benchmark{
		name: "D8/start", about: "D8: from synced informers to the first decision, 20 running pods per node",
		whole: start,
		build: func() *fixture {
			w := newFixture(nodes)
			for q := range fleetQueues {
				w.addQueue(queueName(q), 1)
			}
			for g := range nodes * perNode / 10 {
				asks := amounts(1, 4, int64(g%3/2))
				w.add(job{name: fmt.Sprintf("gang-%05d", g), queue: queueName(g % fleetQueues), class: low, min: 10, size: 10, asks: asks}.running())
			}
			w.add(job{name: waitingJob, queue: queueName(0), class: low, min: 1, size: 1})
			return w
		},
		cycles: []cycle{{limits: []limit{
			{name: "decision", steps: []string{"decision"}, most: 3000},
			{name: "informers", steps: []string{"informers"}},
		}}},
	}
}

// waitingJob is the job to be bound.
const waitingJob = "waiting"

// start starts a scheduler for the objects of a fixture and stops it when it has bound a pod.
func start(ctx context.Context, w *fixture) (cost, error) {
	runtime.GC()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	bound := make(chan string, 1)
	s, err := newScheduler(w, bound, prometheus.NewRegistry(), nil)
	if err != nil {
		return cost{}, err
	}
	took := newCost()
	took.measure("informers", func() { err = s.Start(ctx) })
	if err != nil {
		return took, err
	}
	ended := make(chan error, 1)
	var pod string
	took.measure("decision", func() {
		go func() { ended <- s.Run(ctx) }()
		select {
		case pod = <-bound:
		case <-ctx.Done():
		case <-time.After(time.Minute):
		}
	})
	stop()
	if err := <-ended; err != nil {
		return took, err
	}
	if want := waitingJob + "-0000"; pod != want {
		return took, fmt.Errorf("bound first was %q, and should be %s", pod, want)
	}
	return took, nil
}

// newScheduler wires the scheduler like its program. The name of the first pod that it binds is sent to bound. A function
// may change the fake clients and the policy before.
func newScheduler(w *fixture, bound chan<- string, exported *prometheus.Registry, alter func(*fake.Clientset, *batchfake.Clientset, *conf.Configuration)) (*scheduler.Scheduler, error) {
	registry, err := builtin.NewRegistry()
	if err != nil {
		return nil, err
	}
	policy, err := conf.Default(registry.Catalog())
	if err != nil {
		return nil, err
	}
	kube, batch := fakeClients(w)
	if alter != nil {
		alter(kube, batch, policy)
	}
	kube.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, apiruntime.Object, error) {
		binding, ok := action.(clienttesting.CreateAction).GetObject().(*v1.Binding)
		if !ok {
			return true, nil, errors.New("only bindings are created")
		}
		select {
		case bound <- binding.Name:
		default:
		}
		return true, binding, nil
	})
	return scheduler.New(scheduler.Options{
		SchedulerNames: []string{schedulerName}, DefaultQueue: "default", Period: time.Second, BindWorkers: 4,
		Kube: kube, Batch: batch, Config: policy, Registry: registry,
		Metrics: metrics.New(exported), Clock: clock.RealClock{}, Log: logr.Discard(),
	})
}

// fakeClients returns clients that list the objects of the fixture without copying them.
func fakeClients(w *fixture) (*fake.Clientset, *batchfake.Clientset) {
	kube := fake.NewClientset(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: low}, Value: priorityOf(low)})
	batch := batchfake.NewClientset()
	lists := func(list apiruntime.Object) clienttesting.ReactionFunc {
		return func(clienttesting.Action) (bool, apiruntime.Object, error) { return true, list, nil }
	}
	kube.PrependReactor("list", "pods", lists(&v1.PodList{Items: values(w.pods)}))
	kube.PrependReactor("list", "nodes", lists(&v1.NodeList{Items: values(w.nodes)}))
	kube.PrependReactor("list", "deviceclasses", lists(&resourcev1.DeviceClassList{Items: w.classes}))
	kube.PrependReactor("list", "resourceslices", lists(&resourcev1.ResourceSliceList{Items: w.slices}))
	kube.PrependReactor("list", "resourceclaims", lists(&resourcev1.ResourceClaimList{Items: w.claims}))
	batch.PrependReactor("list", "podgroups", lists(&v1alpha1.PodGroupList{Items: values(w.groups)}))
	batch.PrependReactor("list", "queues", lists(&v1alpha1.QueueList{Items: values(w.queues)}))
	return kube, batch
}

func values[T any](pointers []*T) []T {
	list := make([]T, len(pointers))
	for i, p := range pointers {
		list[i] = *p
	}
	return list
}
