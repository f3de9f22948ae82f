// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/batch-scheduler/batch-scheduler/test/cluster"
)

// Names of log files.
const (
	schedulerLog    = "scheduler.log"
	controlPlaneLog = "control-plane.log"
)

// build builds the local cluster and the scheduler, and returns the path of the latter.
func (d *demo) build(ctx context.Context) (scheduler string, err error) {
	d.out.step("Building. The first time this compiles Kubernetes and takes several minutes.")
	for _, target := range []struct {
		name  string
		build func(context.Context) (string, error)
	}{
		{"local control plane", cluster.Localcluster},
		{"batch-scheduler", func(ctx context.Context) (string, error) { return cluster.Build(ctx, schedulerPackage, false) }},
	} {
		start := time.Now()
		stop := d.out.progress("building the " + target.name)
		scheduler, err = target.build(ctx)
		stop()
		if ctx.Err() != nil { // the same Ctrl-C has ended the go command
			return "", ctx.Err()
		}
		if err != nil {
			return "", fmt.Errorf("%w\n(to see the whole: go build ./cmd/...)", err)
		}
		d.out.detail("%s: built in %s", target.name, time.Since(start).Round(time.Second))
	}
	return scheduler, nil
}

func (d *demo) startCluster(ctx context.Context) (*cluster.Cluster, error) {
	d.out.step("Starting a cluster: %d nodes of 8 cpu, 2 of 8 cpu and 4 GPUs", d.options.nodes)
	start := time.Now()
	c, err := cluster.Start(ctx, cluster.Options{
		NodeSpecs: []string{
			"name=cpu,cpu=8,memory=32Gi,pods=110,count=" + strconv.Itoa(d.options.nodes),
			"name=gpu,cpu=8,memory=32Gi,pods=110,nvidia.com/gpu=4,count=2",
		},
		ControllerManager: true,
		LogFile:           filepath.Join(d.logs, controlPlaneLog),
	})
	if err != nil {
		return nil, err
	}
	d.out.detail("API server %s, ready after %s", c.RESTConfig().Host, time.Since(start).Round(time.Second/10))
	return c, nil
}

// startScheduler starts the scheduler with credentials of its service account and nothing
// else.
func (d *demo) startScheduler(ctx context.Context, c *cluster.Cluster, binary string) (*cluster.Process, error) {
	d.out.step("Starting batch-scheduler as its service account in %s", schedulerNamespace)
	kubeconfig := filepath.Join(d.dir, "scheduler.kubeconfig")
	if err := c.ServiceAccountKubeconfig(ctx, schedulerNamespace, schedulerAccount, kubeconfig); err != nil {
		return nil, err
	}
	process, err := cluster.StartProcess(cluster.ProcessOptions{
		Path: binary,
		Args: []string{
			"--kubeconfig=" + kubeconfig,
			"--scheduler-conf=" + cmp.Or(d.options.schedulerConf, filepath.Join(d.root, "config", "default", "scheduler.yaml")),
			"--secure-port=0", // the machine's ports are not ours
			"-v=2",
		},
		Output: filepath.Join(d.logs, schedulerLog),
	})
	if err != nil {
		return nil, err
	}
	return process, nil
}
