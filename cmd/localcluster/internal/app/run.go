// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/batch-scheduler/batch-scheduler/cmd/localcluster/internal/controlplane"
	"github.com/batch-scheduler/batch-scheduler/cmd/localcluster/internal/kubelet"
	"github.com/batch-scheduler/batch-scheduler/cmd/localcluster/internal/nodes"
	"github.com/batch-scheduler/batch-scheduler/cmd/localcluster/internal/statedir"
)

// run starts a cluster, reports that it is ready, waits for ctx to end or for a component to fail, and stops the
// cluster.
func run(ctx context.Context, o *options, plan nodes.Plan, streams Streams) (err error) {
	begin := time.Now()
	if err = checkKubeconfig(o.kubeconfig); err != nil {
		return err
	}
	listener, err := listen(o.port)
	if err != nil {
		return err
	}
	dir, log, err := o.prepare(begin)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer func() { err = errors.Join(err, dir.Close()) }()

	plane, err := controlplane.Start(controlplane.Config{
		Dir:               dir,
		Listener:          listener,
		LogFile:           log.path,
		ControllerManager: o.controllerManager,
		Scheduler:         o.scheduler,
		Features:          o.features(),
		Unthrottled:       o.unthrottled,
		Profiling:         o.profiling,
		AuditLog:          o.auditLog,
	})
	if err != nil {
		return log.explain(err)
	}
	defer plane.Stop()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // before the control plane stops
	if err := o.populate(ctx, plane, plan, log.file); err != nil {
		return unlessStopped(ctx, err)
	}
	kubeconfig := o.kubeconfig
	if kubeconfig == "" {
		kubeconfig = dir.Join("kubeconfig")
	}
	if err := writeKubeconfig(kubeconfig, plane.Kubeconfig()); err != nil {
		return err
	}
	defer removeKubeconfig(kubeconfig, plane.Kubeconfig())

	fmt.Fprintf(streams.Out, "ready after %.1fs: %d nodes at %s, export KUBECONFIG=%s\n",
		time.Since(begin).Seconds(), plan.Size(), plane.URL(), kubeconfig)
	select {
	case <-ctx.Done():
		return nil
	case <-o.stdinClosed(streams.In):
		return nil
	case err := <-plane.Failed():
		return log.explain(err)
	}
}

// prepare creates the state directory, removes those of dead clusters, and redirects all logs to a file.
func (o *options) prepare(now time.Time) (*statedir.Dir, *logFile, error) {
	dir, err := o.openState()
	if err != nil {
		return nil, nil, err
	}
	path := o.logFile
	if path == "" {
		path = dir.Join("log")
	}
	log, err := openLog(path, o.verbosity)
	if err != nil {
		return nil, nil, errors.Join(err, dir.Close())
	}
	if _, err := statedir.Sweep("", now); err != nil {
		fmt.Fprintln(log.file, err) // it does not affect this cluster
	}
	return dir, log, nil
}

func (o *options) openState() (*statedir.Dir, error) {
	if o.stateDir == "" {
		return statedir.New("")
	}
	dir, err := statedir.Open(o.stateDir)
	if err != nil {
		return nil, fmt.Errorf("--state-dir: %w", err)
	}
	return dir, nil
}

// populate creates the nodes and starts their kubelets.
func (o *options) populate(ctx context.Context, plane *controlplane.ControlPlane, plan nodes.Plan, log io.Writer) error {
	client, err := plane.Client()
	if err != nil {
		return err
	}
	if err := nodes.Create(ctx, client, plan.Build(metav1.Now())); err != nil {
		return err
	}
	if o.noKubelets {
		return nil
	}
	return o.startKubelets(ctx, client, log)
}

func (o *options) startKubelets(ctx context.Context, client kubernetes.Interface, log io.Writer) error {
	return kubelet.Start(ctx, kubelet.Config{
		Client:      client,
		Clock:       clock.RealClock{},
		Log:         log,
		Parallelism: o.kubeletParallelism,
		JobRunTime:  o.jobRunTime,
	})
}

// stdinClosed returns a channel that is closed when in ends, or nil if the option is off.
func (o *options) stdinClosed(in io.Reader) <-chan struct{} {
	if !o.stopOnStdinClose {
		return nil
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_, _ = io.Copy(io.Discard, in) // an error is an end too
	}()
	return closed
}

// unlessStopped returns nil when ctx has ended: then err is a consequence of that.
func unlessStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func listen(port int) (net.Listener, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("port %d is in use: set another one with --port, or 0 for a free one", port)
	}
	if errors.Is(err, os.ErrPermission) {
		return nil, fmt.Errorf("port %d is not allowed to this user: set one above 1023 with --port, or 0 for a free one", port)
	}
	if err != nil {
		return nil, fmt.Errorf("listening on --port: %w", err)
	}
	return listener, nil
}
