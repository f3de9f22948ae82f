// Package controlplane runs etcd, kube-apiserver and, on request, kube-controller-manager
// and kube-scheduler inside this process. All are the unchanged code of their projects; the
// one TCP listener is the API server's.
//
// The parts keep feature gates, metrics and logging in globals: one control plane per
// process, started once.
package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/batch-scheduler/batch-scheduler/cmd/localcluster/internal/certs"
	"github.com/batch-scheduler/batch-scheduler/cmd/localcluster/internal/statedir"
)

// Config says what to start.
type Config struct {
	// Dir holds the data of etcd, keys and certificates. What it holds already is gone on from.
	Dir *statedir.Dir

	// Listener is where the API server listens, on a loopback address. The control plane
	// closes it.
	Listener net.Listener

	// LogFile is where etcd logs. The other parts log through klog.
	LogFile string

	// ControllerManager starts the controllers that batch work needs: service accounts,
	// namespaces, garbage collection, Jobs, ReplicaSets, Deployments, disruption budgets,
	// pod garbage collection, resource claims.
	ControllerManager bool

	// Scheduler starts the stock kube-scheduler under its own name, default-scheduler.
	Scheduler bool

	// Unthrottled switches off the API server's flow control and its limits on requests in
	// flight.
	Unthrottled bool

	// Profiling has the API server serve profiles of this process.
	Profiling bool
}

// ControlPlane is a control plane that runs.
type ControlPlane struct {
	config     Config
	authority  *certs.Authority
	url        string
	admin      *rest.Config
	kubeconfig []byte

	stops  []func() // in the order of starting
	failed chan error
}

// Start returns when all parts serve and pods can be created. It takes no context because
// it must not be cut short: an API server that is stopped before it is ready ends the
// process on the spot. For the same reason nothing is stopped when Start fails; the process
// is expected to report the error and end.
func Start(c Config) (*ControlPlane, error) {
	p := &ControlPlane{
		config: c,
		url:    "https://" + c.Listener.Addr().String(),
		failed: make(chan error, 4), // one per part, so that none waits for a reader
	}
	if err := p.writeKeys(); err != nil {
		return nil, err
	}
	for _, start := range p.parts() {
		if err := start(); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (p *ControlPlane) parts() []func() error {
	parts := []func() error{p.startEtcd, p.startAPIServer}
	if p.config.ControllerManager {
		parts = append(parts, p.startControllerManager)
	}
	if p.config.Scheduler {
		parts = append(parts, p.startScheduler)
	}
	return parts
}

// URL is where the API server is reached.
func (p *ControlPlane) URL() string {
	return p.url
}

// Kubeconfig returns a kubeconfig for an administrator, with certificates and key inside.
func (p *ControlPlane) Kubeconfig() []byte {
	return p.kubeconfig
}

// Client returns a client without rate limit for an administrator.
func (p *ControlPlane) Client() (kubernetes.Interface, error) {
	client, err := kubernetes.NewForConfig(p.admin)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return client, nil
}

// Failed delivers the error of a part that ended without being asked to.
func (p *ControlPlane) Failed() <-chan error {
	return p.failed
}

// Stop stops all parts, the last started first, and returns when they have ended.
func (p *ControlPlane) Stop() {
	for i := len(p.stops) - 1; i >= 0; i-- {
		p.stops[i]()
	}
	p.stops = nil
}

// run runs a part on a goroutine of its own until Stop.
func (p *ControlPlane) run(name string, part func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := part(ctx)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			err = errors.New("ended")
		}
		p.failed <- fmt.Errorf("%s: %w", name, err)
	}()
	p.stops = append(p.stops, func() {
		cancel()
		<-done
	})
}

// poll asks until the answer is nil, a part fails, or the time is over; then it returns the
// last answer.
func (p *ControlPlane) poll(what string, interval, patience time.Duration, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		select {
		case failure := <-p.failed:
			return failure
		case <-ctx.Done():
			return fmt.Errorf("%s: not ready after %s: %w", what, patience, err)
		case <-ticker.C:
		}
	}
}
