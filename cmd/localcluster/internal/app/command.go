// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package app is the command line of localcluster: its flags, and the order in which a cluster starts and stops.
package app

import (
	"context"
	"fmt"
	"io"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/batch-scheduler/batch-scheduler/cmd/localcluster/annotation"
	"github.com/batch-scheduler/batch-scheduler/cmd/localcluster/internal/controlplane"
	"github.com/batch-scheduler/batch-scheduler/cmd/localcluster/internal/nodes"
)

// Streams are the standard streams of the command.
type Streams struct {
	// In is read until its end if --stop-on-stdin-close is set.
	In io.Reader

	// Out receives one line when the cluster is ready.
	Out io.Writer
}

const long = `localcluster runs a Kubernetes control plane with simulated nodes in one process.

It starts etcd and kube-apiserver, with RBAC, certificates of its own, and nothing
listening but on loopback; creates nodes; and simulates their kubelets. It prints one
line when all is ready, and runs until it gets SIGINT or SIGTERM (or, with
--stop-on-stdin-close, until its standard input ends). Then it removes its state,
unless --state-dir says where to keep it.

A kubelet rejects a pod that does not fit its node, exactly as a real one does; all
others run at once. Nodes that are created through the API get a kubelet too. What
the containers of a pod do is said by annotations of the pod:

  ` + annotation.RunFor + `: 30s
        They end after this time. Without it they run until the pod is deleted,
        except that pods of a Job run for --job-run-time.
  ` + annotation.ExitCode + `: "1"
        They end with this code, default 0. Nothing is ever restarted: a pod that
        ends with 0 has Succeeded, with anything else it has Failed.
  ` + annotation.TerminateAfter + `: 3s
        They take this time to stop when the pod is deleted or evicted. Without it
        the pod is gone at once: terminationGracePeriodSeconds delays nothing. The
        pod has Failed before it is removed.

The kubelets send no heartbeats. Conditions and taints of a node stay as they are set.`

const example = `  # Three nodes, kubeconfig in the state directory
  localcluster

  # 100 nodes in three zones with GPUs, and the controllers for Jobs and Deployments
  localcluster --nodes 100 --node cpu=32,memory=256Gi,nvidia.com/gpu=8,pods=110 \
    --zones 3 --controller-manager --kubeconfig ./kubeconfig

  # A cluster that can be stopped, or killed, and started again as it was
  localcluster --state-dir ./state --port 6443 --kubeconfig ./kubeconfig

  # Two pools: cpu-0 to cpu-19, and gpu-0 to gpu-3
  localcluster --node name=cpu,count=20,cpu=64 --node name=gpu,count=4,nvidia.com/gpu=8`

// NewCommand returns the command. The caller prints errors.
func NewCommand(streams Streams) *cobra.Command {
	options := newOptions()
	command := &cobra.Command{
		Use:           "localcluster",
		Short:         "Run a Kubernetes control plane with simulated nodes in one process",
		Long:          long,
		Example:       example,
		Version:       version(),
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(command *cobra.Command, _ []string) error {
			plan, err := options.validate()
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(command.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			context.AfterFunc(ctx, stop) // a second signal ends the process at once
			return run(ctx, options, plan, streams)
		},
	}
	command.SetContext(context.Background())
	command.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return fmt.Errorf("%w (see localcluster --help)", err)
	})
	command.SetVersionTemplate("{{.Version}}\n")
	command.CompletionOptions.DisableDefaultCmd = true
	options.addFlags(command)
	return command
}

func (o *options) addFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.SortFlags = false
	flags.StringVar(&o.kubeconfig, "kubeconfig", o.kubeconfig,
		"write a kubeconfig for an administrator to this `file` when all is ready, and remove it at the end (default: a file in the state directory)")
	flags.IntVar(&o.port, "port", o.port, "port of the API server on 127.0.0.1; 0 takes a free one")
	flags.StringVar(&o.stateDir, "state-dir", o.stateDir,
		"keep the state in this `directory`, and go on from there if a cluster has run in it before; with the same --port its kubeconfigs stay valid (default: a directory of its own, removed at the end)")
	flags.IntVar(&o.nodes, "nodes", o.nodes, "number of nodes in each --node that has no count of its own")
	flags.StringArrayVar(&o.pools, "node", o.pools,
		"capacity of the nodes, as `resource=quantity,...`; cpu, memory and pods default to "+nodes.DefaultSpec+
			"; name=NAME names the nodes NAME-0, NAME-1, ... and count=N makes N of them; repeat for several kinds")
	flags.IntVar(&o.zones, "zones", o.zones,
		fmt.Sprintf("distribute the nodes over this many zones (zone-a, zone-b, ...), at most %d; 0 labels none", nodes.MaxZones))
	flags.BoolVar(&o.controllerManager, "controller-manager", o.controllerManager,
		"run kube-controller-manager with the controllers for service accounts, namespaces, garbage, Jobs, ReplicaSets, Deployments, disruption budgets and resource claims")
	flags.BoolVar(&o.scheduler, "kube-scheduler", o.scheduler, "run the stock kube-scheduler as default-scheduler")
	flags.BoolVar(&o.noKubelets, "no-kubelets", o.noKubelets, "simulate no kubelets: bound pods stay Pending")
	flags.IntVar(&o.kubeletParallelism, "kubelet-parallelism", o.kubeletParallelism,
		"number of pods that change state at the same time over all nodes; more start faster, and take more of the API server's time")
	flags.DurationVar(&o.jobRunTime, "job-run-time", o.jobRunTime, "how long pods of Jobs run that have no annotation of their own")
	flags.BoolVar(&o.workloadAPI, "workload-api", o.workloadAPI,
		"serve the alpha API of Kubernetes for groups of pods: Workload and PodGroup of "+controlplane.WorkloadAPIVersion+", and spec.schedulingGroup of pods")
	flags.StringSliceVar(&o.featureGates, "feature-gates", o.featureGates,
		"feature gates of the Kubernetes parts, as `name=bool,...`; with --workload-api, WorkloadWithJob=true has the Job controller create groups for indexed Jobs")
	flags.BoolVar(&o.unthrottled, "unthrottled", o.unthrottled,
		"switch off the API server's flow control and its limits on requests in flight, for benchmarks")
	flags.BoolVar(&o.profiling, "profiling", o.profiling, "have the API server serve profiles of this whole process on /debug/pprof/, for authorized clients")
	flags.StringVar(&o.auditLog, "audit-log", o.auditLog, "write a line for each request to the API server to this `file`: who, what, when, and the response code")
	flags.BoolVar(&o.stopOnStdinClose, "stop-on-stdin-close", o.stopOnStdinClose,
		"stop when standard input ends, so that the cluster does not outlive the process that holds the other end")
	flags.StringVar(&o.logFile, "log-file", o.logFile, "write the logs of all parts to this `file` (default: a file in the state directory)")
	flags.IntVarP(&o.verbosity, "v", "v", o.verbosity, "verbosity of the logs of the Kubernetes parts, 0 to 10")
	flags.Bool("version", false, "print what was linked in and stop") // otherwise cobra uses the flag that Kubernetes registers
}

// version returns the versions of the linked components.
func version() string {
	parts := []string{"localcluster"}
	if info, ok := debug.ReadBuildInfo(); ok {
		parts = append(parts, info.Main.Version, info.GoVersion)
		for _, dependency := range info.Deps {
			switch dependency.Path {
			case "k8s.io/kubernetes", "go.etcd.io/etcd/server/v3", "sigs.k8s.io/kwok":
				parts = append(parts, dependency.Path+"@"+dependency.Version)
			}
		}
	}
	return strings.Join(parts, " ")
}
