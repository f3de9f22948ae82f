// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package cluster runs the local cluster as a child process, for integration tests, benchmarks and the demo.
//
//	c, err := cluster.Start(ctx, cluster.Options{Nodes: 10, NodeSpec: "cpu=4", ControllerManager: true})
//	defer c.Stop()
//	err = c.Apply(ctx, "config/default")
//	kubeconfig, err := c.ServiceAccountKubeconfig(ctx, "batch-scheduler", "batch-scheduler", path)
//	scheduler, err := cluster.StartProcess(cluster.ProcessOptions{Path: binary, Args: ...})
//
// The binary is built on first use, without the race detector, and shared by all tests and
// programs of one source tree (see Build). A cluster is ready about two seconds after Start
// and takes 300 MB; several can run side by side. A control plane is never linked into the
// process that imports this package.
package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// BinaryVariable is the environment variable with the path of a built localcluster. If it is empty or unset, one is
// built.
const BinaryVariable = "LOCALCLUSTER_BINARY"

const localclusterPackage = "github.com/batch-scheduler/batch-scheduler/cmd/localcluster"

// stopTimeout is how long a cluster may take to stop before it is killed. Usually it takes about one second.
const stopTimeout = 30 * time.Second

// Options configure a cluster. The zero value is an API server with simulated kubelets and without nodes.
// localcluster
// --help describes each option.
type Options struct {
	// Nodes is the number of nodes of each spec that has no count of its own.
	Nodes int

	// NodeSpecs are the kinds of nodes, such as "cpu=32,memory=256Gi,nvidia.com/gpu=8";
	// none means one kind with the default capacity.
	NodeSpecs []string

	// Zones is the number of zones to which the nodes are distributed.
	Zones int

	// ControllerManager runs the controllers for Jobs, Deployments and so on. Without it no service accounts are
	// created.
	ControllerManager bool

	// KubeScheduler runs kube-scheduler as default-scheduler.
	KubeScheduler bool

	// NoKubelets leaves bound pods Pending.
	NoKubelets bool

	// KubeletParallelism is the number of pods that change state concurrently; 0 is the default of localcluster.
	KubeletParallelism int

	// JobRunTime is how long pods of Jobs run; 0 is the default of localcluster.
	JobRunTime time.Duration

	// WorkloadAPI serves the API of Kubernetes for groups of pods, scheduling.k8s.io/v1alpha2, with its feature gate.
	WorkloadAPI bool

	// FeatureGates are further feature gates of the control plane, such as "WorkloadWithJob=true".
	FeatureGates []string

	// Unthrottled disables the API server's flow control.
	Unthrottled bool

	// Restartable keeps the state until Stop, so that Kill and Restart are possible.
	Restartable bool

	// Profiling serves profiles of the control plane on /debug/pprof/ of the API server.
	Profiling bool

	// AuditLog receives a line of JSON for each request to the API server; empty: none. It is complete after Stop.
	AuditLog string

	// LogFile receives the log of the control plane. If it is empty, the log is deleted when the cluster stops;
	// errors contain its last lines.
	LogFile string
}

// Cluster is a running local cluster.
type Cluster struct {
	// Kubeconfig is the path of a kubeconfig for an administrator.
	Kubeconfig string

	options Options
	dir     string
	process *Process
	config  *rest.Config
}

// Start builds localcluster if necessary, starts it, and returns when it is ready. The context limits only the start;
// the cluster runs until Stop, or until this process ends. Errors contain the last lines of the log.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	binary, err := Localcluster(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "cluster-")
	if err != nil {
		return nil, fmt.Errorf("starting a local cluster: %w", err)
	}
	if o.LogFile == "" {
		o.LogFile = filepath.Join(dir, "log")
	}
	c := &Cluster{Kubeconfig: filepath.Join(dir, "kubeconfig"), options: o, dir: dir}
	if err := c.start(ctx, binary); err != nil {
		_ = c.Stop() // err contains the reason
		return nil, fmt.Errorf("starting a local cluster: %w", err)
	}
	return c, nil
}

// Kill kills the control plane of a Restartable cluster and returns when it has ended.
func (c *Cluster) Kill() {
	c.process.Kill()
	<-c.process.Done()
}

// Restart starts the control plane again after Kill, at the same address, and returns when it is ready. All credentials
// stay valid. The changes apply to the options before the start, such as those of an upgraded control plane.
func (c *Cluster) Restart(ctx context.Context, changes ...func(*Options)) error {
	for _, change := range changes {
		change(&c.options)
	}
	binary, err := Localcluster(ctx)
	if err == nil {
		err = c.start(ctx, binary)
	}
	if err != nil {
		return fmt.Errorf("starting a local cluster again: %w", err)
	}
	return nil
}

func (c *Cluster) start(ctx context.Context, binary string) error {
	ready, readyWriter, err := os.Pipe()
	if err != nil {
		return err
	}
	defer ready.Close()
	c.process, err = StartProcess(ProcessOptions{
		Path:   binary,
		Args:   append(c.options.args(c.Kubeconfig), c.place()...),
		Output: filepath.Join(c.dir, "stderr"),
		stdout: readyWriter,
		leash:  true,
	})
	if err = errors.Join(err, readyWriter.Close()); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.process.Signal(syscall.SIGTERM) })
	defer stop()
	_, err = bufio.NewReader(ready).ReadString('\n')
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil { // it ended without output
		_, exit := c.process.Wait()
		return exit
	}
	if c.config, err = clientcmd.BuildConfigFromFlags("", c.Kubeconfig); err != nil {
		return err
	}
	c.config.QPS = -1
	return nil
}

// place returns the arguments for the state directory and the address of a Restartable cluster, which are the same
// after a restart.
func (c *Cluster) place() []string {
	if !c.options.Restartable {
		return nil
	}
	args := []string{"--state-dir=" + filepath.Join(c.dir, "state")}
	if c.config != nil {
		args = append(args, "--port="+c.config.Host[strings.LastIndexByte(c.config.Host, ':')+1:])
	}
	return args
}

func (o Options) args(kubeconfig string) []string {
	args := []string{
		"--stop-on-stdin-close",
		"--kubeconfig=" + kubeconfig,
		"--log-file=" + o.LogFile,
		"--nodes=" + strconv.Itoa(o.Nodes),
		"--zones=" + strconv.Itoa(o.Zones),
		"--controller-manager=" + strconv.FormatBool(o.ControllerManager),
		"--kube-scheduler=" + strconv.FormatBool(o.KubeScheduler),
		"--no-kubelets=" + strconv.FormatBool(o.NoKubelets),
		"--workload-api=" + strconv.FormatBool(o.WorkloadAPI),
		"--feature-gates=" + strings.Join(o.FeatureGates, ","),
		"--unthrottled=" + strconv.FormatBool(o.Unthrottled),
		"--profiling=" + strconv.FormatBool(o.Profiling),
	}
	if o.AuditLog != "" {
		args = append(args, "--audit-log="+o.AuditLog)
	}
	for _, spec := range o.NodeSpecs {
		args = append(args, "--node="+spec)
	}
	if o.KubeletParallelism != 0 {
		args = append(args, "--kubelet-parallelism="+strconv.Itoa(o.KubeletParallelism))
	}
	if o.JobRunTime != 0 {
		args = append(args, "--job-run-time="+o.JobRunTime.String())
	}
	return args
}

// Localcluster returns the path of the localcluster binary that Start uses, and builds it if necessary.
func Localcluster(ctx context.Context) (string, error) {
	if binary := os.Getenv(BinaryVariable); binary != "" {
		return binary, nil
	}
	return Build(ctx, localclusterPackage, false)
}

// RESTConfig returns a configuration for clients of an administrator, without rate limit. The caller may modify it.
func (c *Cluster) RESTConfig() *rest.Config {
	return rest.CopyConfig(c.config)
}

// Done is closed when the cluster has ended, by Stop or by an error.
func (c *Cluster) Done() <-chan struct{} {
	return c.process.Done()
}

// PID returns the process ID of the control plane.
func (c *Cluster) PID() int {
	return c.process.PID()
}

// Stop stops the cluster and removes its files. It returns an error if the cluster had ended before or exited with an
// error. It may be called repeatedly.
func (c *Cluster) Stop() error {
	var err error
	if c.process != nil {
		err = c.process.Stop(stopTimeout)
	}
	return errors.Join(err, os.RemoveAll(c.dir))
}
