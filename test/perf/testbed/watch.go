package testbed

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// reportPeriod is how often progress is reported.
const reportPeriod = 5 * time.Second

// WatchPods calls see for each pod that there is and whenever one changes or goes away, until ctx
// ends. It returns when see has been called for all there are. It is one informer and nothing
// else, the least that a scheduler needs.
func (b *Bed) WatchPods(ctx context.Context, see func(pod *corev1.Pod, gone bool)) error {
	factory := informers.NewSharedInformerFactory(b.Client, 0)
	informer := factory.Core().V1().Pods().Informer()
	show := func(obj any, gone bool) {
		if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = last.Obj
		}
		if pod, ok := obj.(*corev1.Pod); ok {
			see(pod, gone)
		}
	}
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { show(obj, false) },
		UpdateFunc: func(_, obj any) { show(obj, false) },
		DeleteFunc: func(obj any) { show(obj, true) },
	})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return fmt.Errorf("watching pods: %w", context.Cause(ctx))
	}
	return nil
}

// Binds sees pods get their nodes, as everybody who watches sees it.
type Binds struct {
	say Progress

	mu      sync.Mutex
	bound   map[types.UID]bool
	Tally   // guarded by mu
	changed chan struct{}
}

// Tally is how many pods have a node, and when the first and the last of them got it.
type Tally struct {
	Count       int
	First, Last time.Time
}

// PerSecond is the rate from the first bind to the last.
func (t Tally) PerSecond() float64 {
	if seconds := t.Last.Sub(t.First).Seconds(); seconds > 0 {
		return float64(t.Count) / seconds
	}
	return 0
}

// WatchBinds watches until ctx ends. Pods that have a node already do not count.
func (b *Bed) WatchBinds(ctx context.Context) (*Binds, error) {
	w := &Binds{say: b.options.Say, bound: map[types.UID]bool{}, changed: make(chan struct{}, 1)}
	if err := b.WatchPods(ctx, w.see); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.Tally = Tally{}
	return w, nil
}

func (w *Binds) see(pod *corev1.Pod, _ bool) {
	if pod.Spec.NodeName == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.bound[pod.UID] {
		return
	}
	w.bound[pod.UID] = true
	w.Last = time.Now()
	if w.Count == 0 {
		w.First = w.Last
	}
	w.Count++
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// Tell returns what has been seen so far.
func (w *Binds) Tell() Tally {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.Tally
}

// Wait returns when count pods have nodes. It returns an error if that does not come to pass:
// because ctx has ended, or what is to bind them.
func (w *Binds) Wait(ctx context.Context, count int, ended <-chan struct{}) error {
	report := time.NewTicker(reportPeriod)
	defer report.Stop()
	for {
		now := w.Tell()
		if now.Count >= count {
			return nil
		}
		select {
		case <-w.changed:
		case <-report.C:
			w.say("%d of %d pods are bound", now.Count, count)
		case <-ended:
			return errors.New("the scheduler has ended")
		case <-ctx.Done():
			return fmt.Errorf("%d of %d pods are bound: %w", now.Count, count, context.Cause(ctx))
		}
	}
}
