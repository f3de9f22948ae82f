// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cmapp "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	cmoptions "k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	schedapp "k8s.io/kubernetes/cmd/kube-scheduler/app"
	schedoptions "k8s.io/kubernetes/cmd/kube-scheduler/app/options"
)

const (
	controllersTimeout  = 30 * time.Second
	controllersInterval = 20 * time.Millisecond
)

// startControllerManager starts kube-controller-manager and returns when the namespace default has its service
// account: before that, pods without another service account are rejected.
func (p *ControlPlane) startControllerManager() error {
	options, err := cmoptions.NewKubeControllerManagerOptions()
	if err != nil {
		return fmt.Errorf("options of kube-controller-manager: %w", err)
	}
	kubeconfig, err := p.credentials.writeKubeconfig("system:kube-controller-manager")
	if err != nil {
		return err
	}
	known, disabled, aliases := cmapp.KnownControllers(), cmapp.ControllersDisabledByDefault(), cmapp.ControllerAliases()
	flags := pflag.NewFlagSet("kube-controller-manager", pflag.ContinueOnError)
	sets := options.Flags(known, disabled, aliases)
	for _, set := range sets.FlagSets {
		flags.AddFlagSet(set)
	}
	options.ParsedFlags = &sets
	if err = flags.Parse(p.controllerManagerArgs(kubeconfig)); err != nil {
		return fmt.Errorf("flags of kube-controller-manager: %w", err)
	}
	config, err := options.Config(context.Background(), known, disabled, aliases)
	if err != nil {
		return fmt.Errorf("options of kube-controller-manager: %w", err)
	}
	p.run("kube-controller-manager", func(ctx context.Context) error { return cmapp.Run(ctx, config.Complete()) })

	client, err := p.Client()
	if err != nil {
		return err
	}
	return p.poll("kube-controller-manager", controllersInterval, controllersTimeout, func(ctx context.Context) error {
		_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

func (p *ControlPlane) controllerManagerArgs(kubeconfig string) []string {
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--secure-port=0",
		"--leader-elect=false",
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + p.config.Dir.Join(accountKeyFile),
		"--root-ca-file=" + p.config.Dir.Join(caFile),
		"--controllers=" + strings.Join(controllers(), ","),
		"--kube-api-qps=1000",
		"--kube-api-burst=2000",
		"--concurrent-job-syncs=20",
		"--controller-start-interval=0s",
		"--controller-shutdown-timeout=3s",
	}
}

// controllers are the controllers that batch workloads need. The node lifecycle controller is excluded: the simulated
// kubelets send no heartbeats, and it would mark all nodes as unreachable.
func controllers() []string {
	return []string{
		"serviceaccount-controller",
		"root-ca-certificate-publisher-controller",
		"clusterrole-aggregation-controller", // fills the roles view, edit and admin
		"namespace-controller",
		"garbage-collector-controller",
		"job-controller",
		"ttl-after-finished-controller",
		"replicaset-controller",
		"deployment-controller",
		"statefulset-controller",
		"disruption-controller",
		"resourceclaim-controller",
		"pod-garbage-collector-controller",
		"podgroup-protection-controller", // only runs with the Workload API
	}
}

// startScheduler starts kube-scheduler and does not wait until it is ready.
func (p *ControlPlane) startScheduler() error {
	options := schedoptions.NewOptions()
	kubeconfig, err := p.credentials.writeKubeconfig("system:kube-scheduler")
	if err != nil {
		return err
	}
	flags := pflag.NewFlagSet("kube-scheduler", pflag.ContinueOnError)
	for _, set := range options.Flags.FlagSets {
		flags.AddFlagSet(set)
	}
	err = flags.Parse([]string{
		"--kubeconfig=" + kubeconfig,
		"--secure-port=0",
		"--leader-elect=false",
		"--kube-api-qps=5000",
		"--kube-api-burst=10000",
	})
	if err != nil {
		return fmt.Errorf("flags of kube-scheduler: %w", err)
	}
	p.run("kube-scheduler", func(ctx context.Context) error {
		config, scheduler, err := schedapp.Setup(ctx, options)
		if err != nil {
			return err
		}
		return schedapp.Run(ctx, config, scheduler)
	})
	return nil
}
