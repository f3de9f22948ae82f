// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	apiapp "k8s.io/kubernetes/cmd/kube-apiserver/app"
	apioptions "k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

const (
	apiServerTimeout  = 60 * time.Second
	apiServerInterval = 20 * time.Millisecond
)

// startAPIServer starts kube-apiserver and returns when it is ready. It uses the options directly, because the cobra
// command would install its own signal handlers.
func (p *ControlPlane) startAPIServer() error {
	options := apioptions.NewServerRunOptions()
	audit, err := auditArgs(p.config)
	if err != nil {
		return err
	}
	flags := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	for _, set := range options.Flags().FlagSets {
		flags.AddFlagSet(set)
	}
	if err = flags.Parse(append(p.apiServerArgs(), audit...)); err != nil {
		return fmt.Errorf("flags of kube-apiserver: %w", err)
	}
	options.SecureServing.Listener = p.config.Listener
	if err = options.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return fmt.Errorf("feature gates of kube-apiserver: %w", err)
	}
	completed, err := options.Complete(context.Background())
	if err != nil {
		return fmt.Errorf("options of kube-apiserver: %w", err)
	}
	if errs := completed.Validate(); len(errs) > 0 {
		return fmt.Errorf("options of kube-apiserver: %w", utilerrors.NewAggregate(errs))
	}
	p.run("kube-apiserver", func(ctx context.Context) error { return apiapp.Run(ctx, completed) })

	client, err := p.Client()
	if err != nil {
		return err
	}
	return p.poll("kube-apiserver", apiServerInterval, apiServerTimeout, func(ctx context.Context) error {
		body, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").Param("verbose", "").DoRaw(ctx)
		if err != nil && len(body) > 0 {
			return errors.Join(err, errors.New(string(body)))
		}
		return err
	})
}

func (p *ControlPlane) apiServerArgs() []string {
	dir := p.config.Dir
	_, port, _ := net.SplitHostPort(p.config.Listener.Addr().String()) // a valid address
	args := []string{
		"--etcd-servers=unix://" + dir.Join(etcdSocket),
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--secure-port=" + port,
		"--endpoint-reconciler-type=none",
		"--tls-cert-file=" + dir.Join(servingFile),
		"--tls-private-key-file=" + dir.Join(servingKeyFile),
		"--client-ca-file=" + dir.Join(caFile),
		"--anonymous-auth=false",
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + dir.Join(accountKeyFile),
		"--service-account-signing-key-file=" + dir.Join(accountKeyFile),
		"--service-cluster-ip-range=" + serviceCIDR,
		"--profiling=" + strconv.FormatBool(p.config.Profiling),
		// Without these two a stop waits a minute for clients with watches.
		"--shutdown-send-retry-after=true",
		"--shutdown-watch-termination-grace-period=1s",
		"--disable-admission-plugins=" + p.disabledAdmission(),
	}
	args = append(args, p.config.Features.apiServerArgs()...)
	if p.config.Unthrottled {
		args = append(args,
			"--enable-priority-and-fairness=false",
			"--max-requests-inflight=0",
			"--max-mutating-requests-inflight=0",
		)
	}
	return args
}

// disabledAdmission returns the admission plugins that depend on a controller that does not run: the node lifecycle
// controller removes the taint of a new node, and the controller manager creates service accounts.
func (p *ControlPlane) disabledAdmission() string {
	if p.config.ControllerManager {
		return "TaintNodesByCondition"
	}
	return "TaintNodesByCondition,ServiceAccount"
}
