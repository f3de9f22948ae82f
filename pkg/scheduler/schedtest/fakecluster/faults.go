// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package fakecluster

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// Faults makes binds and reads of pods slow or faulty.
type Faults struct {
	// Latency is how long each bind takes.
	Latency time.Duration
	// Bind holds the faults of the next binds, by pod; Get is how many of the next reads time out.
	Bind map[string][]Fault
	Get  map[string]int

	start time.Time
	mu    sync.Mutex
	binds []string // with their time
}

// Fault is a bind that returns an error.
type Fault struct {
	Err error
	// Done is set if the bind takes effect in spite of the error, after a delay.
	Done  bool
	Delay time.Duration
}

// Errors of an API server.
//
// immutable: they are only returned
var (
	ErrTimeout  = apierrors.NewTimeoutError("no answer", 0)
	ErrInternal = apierrors.NewInternalError(fmt.Errorf("etcd has no leader"))
	ErrBusy     = apierrors.NewTooManyRequests("slow down", 3)
	ErrNetwork  = fmt.Errorf("connection reset by peer")
	ErrDenied   = apierrors.NewGenericServerResponse(http.StatusForbidden, "create", v1.Resource("pods/binding"), "", "denied", 0, true)
)

// Binds returns the binds that were sent since the last call, with their times.
func (f *Faults) Binds() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	lines := append([]string{}, f.binds...)
	f.binds = nil
	return lines
}

// nextBind records a bind and returns its fault.
func (f *Faults) nextBind(binding *v1.Binding) Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.binds = append(f.binds, fmt.Sprintf("%s %s to %s", time.Since(f.start), binding.Name, binding.Target.Name))
	faults := f.Bind[binding.Name]
	if len(faults) == 0 {
		return Fault{}
	}
	f.Bind[binding.Name] = faults[1:]
	return faults[0]
}

func (f *Faults) nextGetFails(pod string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	fails := f.Get[pod] > 0
	if fails {
		f.Get[pod]--
	}
	return fails
}

// Clientset is a fake clientset whose binds and reads of pods are subject to faults.
type Clientset struct {
	*fake.Clientset
	faults *Faults
}

// CoreV1 implements kubernetes.Interface.
func (c Clientset) CoreV1() corev1.CoreV1Interface { return core{c.Clientset.CoreV1(), c.faults} }

type core struct {
	corev1.CoreV1Interface
	faults *Faults
}

// Pods implements corev1.PodsGetter.
func (c core) Pods(namespace string) corev1.PodInterface {
	return pods{c.CoreV1Interface.Pods(namespace), c.faults}
}

type pods struct {
	corev1.PodInterface
	faults *Faults
}

// Bind implements corev1.PodExpansion.
func (p pods) Bind(ctx context.Context, binding *v1.Binding, options metav1.CreateOptions) error {
	fault := p.faults.nextBind(binding)
	select {
	case <-time.After(p.faults.Latency):
	case <-ctx.Done():
		return ctx.Err()
	}
	if fault.Err == nil {
		return p.PodInterface.Bind(ctx, binding, options)
	}
	if fault.Done {
		go func() {
			time.Sleep(fault.Delay)
			_ = p.PodInterface.Bind(context.WithoutCancel(ctx), binding, options)
		}()
		if fault.Delay == 0 {
			time.Sleep(time.Nanosecond) // so that the bind takes effect first
		}
	}
	return fault.Err
}

// Get implements corev1.PodInterface.
func (p pods) Get(ctx context.Context, name string, options metav1.GetOptions) (*v1.Pod, error) {
	if p.faults.nextGetFails(name) {
		return nil, ErrTimeout
	}
	return p.PodInterface.Get(ctx, name, options)
}
