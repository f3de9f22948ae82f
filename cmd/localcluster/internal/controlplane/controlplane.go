// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package controlplane runs etcd, kube-apiserver and, on request, kube-controller-manager and kube-scheduler in this
// process. All are the unchanged code of their projects; the only TCP listener is the API server's.
//
// The components keep feature gates, metrics and logging in globals: a process can start one control plane, once.
package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/batch-scheduler/batch-scheduler/cmd/localcluster/internal/statedir"
)

// Config configures a control plane.
type Config struct {
	// Dir holds the data of etcd, keys and certificates. Existing data is reused.
	Dir *statedir.Dir

	// Listener is the loopback listener of the API server. The control plane closes it.
	Listener net.Listener

	// LogFile is the log file of etcd. The other components log through klog.
	LogFile string

	// ControllerManager starts the controllers that batch workloads need: service accounts, namespaces, garbage
	// collection, Jobs, ReplicaSets, Deployments, disruption budgets, pod garbage collection, resource claims.
	ControllerManager bool

	// Scheduler starts kube-scheduler under its own name, default-scheduler.
	Scheduler bool

	// Features are the optional features of all components.
	Features Features

	// Unthrottled disables the API server's flow control and its limits on requests in flight.
	Unthrottled bool

	// Profiling makes the API server serve profiles of this process.
	Profiling bool

	// AuditLog is the file that receives a line for each request; empty: none does.
	AuditLog string
}

// ControlPlane is a running control plane.
type ControlPlane struct {
	config      Config
	credentials *credentials

	stops  []func() // in the order of starting
	failed chan error
}

// Start returns when all components serve and pods can be created. It has no context because it cannot be
// interrupted: an API server that is stopped before it is ready terminates the process. For the same reason nothing
// is stopped when Start fails; the caller must report the error and exit.
func Start(c Config) (*ControlPlane, error) {
	p := &ControlPlane{
		config: c,
		failed: make(chan error, 4), // one per component, so that none blocks
	}
	var err error
	if p.credentials, err = newCredentials(c.Dir, "https://"+c.Listener.Addr().String()); err != nil {
		return nil, err
	}
	stop, err := startEtcd(c.Dir, c.LogFile)
	if err != nil {
		return nil, err
	}
	p.stops = append(p.stops, stop)
	for _, start := range p.parts() {
		if err := start(); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// parts returns how the components are started that need the credentials.
func (p *ControlPlane) parts() []func() error {
	parts := []func() error{p.startAPIServer}
	if p.config.ControllerManager {
		parts = append(parts, p.startControllerManager)
	}
	if p.config.Scheduler {
		parts = append(parts, p.startScheduler)
	}
	return parts
}

// URL returns the URL of the API server.
func (p *ControlPlane) URL() string {
	return p.credentials.url
}

// Kubeconfig returns a kubeconfig for an administrator with embedded credentials.
func (p *ControlPlane) Kubeconfig() []byte {
	return p.credentials.kubeconfig
}

// Client returns a client without rate limit for an administrator.
func (p *ControlPlane) Client() (kubernetes.Interface, error) {
	client, err := kubernetes.NewForConfig(p.credentials.admin)
	if err != nil {
		return nil, fmt.Errorf("creating a client: %w", err)
	}
	return client, nil
}

// Failed receives the error of a component that ended unexpectedly.
func (p *ControlPlane) Failed() <-chan error {
	return p.failed
}

// Stop stops all components in the reverse order of their start and returns when they have ended.
func (p *ControlPlane) Stop() {
	for i := len(p.stops) - 1; i >= 0; i-- {
		p.stops[i]()
	}
	p.stops = nil
}

// run runs a component on its own goroutine until Stop.
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

// poll calls ask until it returns nil, a component fails, or the timeout is over; then it returns the last error.
func (p *ControlPlane) poll(what string, interval, timeout time.Duration, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
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
			return fmt.Errorf("%s: not ready after %s: %w", what, timeout, err)
		case <-ticker.C:
		}
	}
}
