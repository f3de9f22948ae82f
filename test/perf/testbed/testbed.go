// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package testbed runs the measurements of test/perf on a real API server: a local cluster with config/ installed,
// gangs, a watch that observes binds, plain clients for comparison, and the scheduler as a process whose usage can be
// read.
package testbed

import (
	"context"
	"errors"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/batch-scheduler/batch-scheduler/pkg/client/clientset/versioned"
	"github.com/batch-scheduler/batch-scheduler/test/cluster"
	"github.com/batch-scheduler/batch-scheduler/test/scheduler"
)

// Namespace is the namespace of the pods.
const Namespace = "default"

// Progress reports progress.
type Progress func(format string, args ...any)

// Options configure a testbed.
type Options struct {
	Cluster cluster.Options

	// Profiles is a directory that receives profiles of the scheduler and of the cluster; empty: no profiles.
	Profiles string

	Progress Progress
}

// Bed is a local cluster for one measurement.
type Bed struct {
	Cluster *cluster.Cluster
	Workload

	options Options
	dir     string // temporary files
	account string // path of a kubeconfig for the scheduler's service account
	reader  *scheduler.Reader
}

// Use opens a testbed, calls use, and closes the testbed.
func Use(ctx context.Context, o Options, use func(*Bed) error) (err error) {
	b, err := open(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	return use(b)
}

func open(ctx context.Context, o Options) (_ *Bed, err error) {
	b := &Bed{options: o, Workload: Workload{progress: o.Progress}}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	if b.dir, err = os.MkdirTemp("", "testbed-"); err != nil {
		return nil, err
	}
	o.Progress("starting a local cluster of %d nodes", o.Cluster.Nodes)
	o.Cluster.Profiling = o.Profiles != ""
	if b.Cluster, err = cluster.Start(ctx, o.Cluster); err != nil {
		return nil, err
	}
	if err = scheduler.Install(ctx, b.Cluster); err != nil {
		return nil, err
	}
	if b.Client, err = kubernetes.NewForConfig(protobuf(b.Cluster.RESTConfig())); err != nil {
		return nil, err
	}
	if b.Batch, err = versioned.NewForConfig(b.Cluster.RESTConfig()); err != nil {
		return nil, err
	}
	if b.reader, err = scheduler.NewReader(ctx, b.Cluster, b.dir, "cluster-admin"); err != nil {
		return nil, err
	}
	b.account = b.dir + "/account.kubeconfig"
	return b, b.Cluster.ServiceAccountKubeconfig(ctx, scheduler.Namespace, scheduler.Account, b.account)
}

func (b *Bed) close() error {
	var err error
	if b.Cluster != nil {
		err = b.Cluster.Stop()
	}
	return errors.Join(err, os.RemoveAll(b.dir))
}

// protobuf sets the content type of clients of the core API.
func protobuf(config *rest.Config) *rest.Config {
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return config
}

// asScheduler returns the configuration of a client with the identity of the scheduler, so that authentication and
// authorization cost the same.
func (b *Bed) asScheduler() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", b.account)
	if err != nil {
		return nil, fmt.Errorf("credentials of the scheduler: %w", err)
	}
	config.QPS = -1
	return protobuf(config), nil
}
