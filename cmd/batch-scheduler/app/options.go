// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	componentbaseconfig "k8s.io/component-base/config"
	componentbaseoptions "k8s.io/component-base/config/options"
	logsapi "k8s.io/component-base/logs/api/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/cache"
)

// maxBindWorkers is the upper bound of --bind-workers. More than some hundred only slow the API server down.
const maxBindWorkers = 4096

// Options are the flags of the scheduler.
type Options struct {
	// Kubeconfig is the path of a kubeconfig file; empty: the service account of the pod.
	Kubeconfig string
	// Master overrides the address of the API server.
	Master string

	// SchedulerNames are the values of spec.schedulerName of the pods to place. Events name the first one.
	SchedulerNames []string
	// SchedulerConf is the path of the policy file; empty: the built-in default.
	SchedulerConf string
	// SchedulePeriod is the longest time between the starts of two cycles.
	SchedulePeriod time.Duration
	// DefaultQueue is the queue of PodGroups without a queue.
	DefaultQueue string
	// BindWorkers is the number of bindings in flight at the same time.
	BindWorkers int
	// GangGrace is how long a gang may run with fewer pods than its minMember; 0: no limit.
	GangGrace time.Duration

	// KubeAPIQPS is the number of requests per second to the API server; 0 or less: no limit.
	KubeAPIQPS float32
	// KubeAPIBurst is how many requests may exceed KubeAPIQPS for a moment; 0 or less: those of one second.
	KubeAPIBurst int

	// BindAddress is the IP address to serve on.
	BindAddress string
	// SecurePort is the port to serve on; 0: serve nothing.
	SecurePort int
	// TLSCertFile and TLSPrivateKeyFile are paths of PEM files; both empty: a self-signed certificate.
	TLSCertFile       string
	TLSPrivateKeyFile string
	// Profiling serves profiles of the process.
	Profiling bool

	LeaderElection componentbaseconfig.LeaderElectionConfiguration
	Logging        *logsapi.LoggingConfiguration
}

// NewOptions returns the default options.
func NewOptions() *Options {
	return &Options{
		SchedulerNames: []string{"batch-scheduler"},
		SchedulePeriod: time.Second,
		DefaultQueue:   "default",
		BindWorkers:    cache.DefaultBindWorkers,
		GangGrace:      time.Minute,
		BindAddress:    "0.0.0.0",
		SecurePort:     10259,
		LeaderElection: componentbaseconfig.LeaderElectionConfiguration{
			LeaderElect:       true,
			LeaseDuration:     metav1.Duration{Duration: 15 * time.Second},
			RenewDeadline:     metav1.Duration{Duration: 10 * time.Second},
			RetryPeriod:       metav1.Duration{Duration: 2 * time.Second},
			ResourceLock:      resourcelock.LeasesResourceLock,
			ResourceName:      "batch-scheduler",
			ResourceNamespace: "batch-scheduler-system",
		},
		Logging: logsapi.NewLoggingConfiguration(),
	}
}

// AddFlags adds the flags that set the options.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig,
		"Path of a kubeconfig file with the address of the API server and the credentials. If empty, the service account of the pod is used.")
	fs.StringVar(&o.Master, "master", o.Master,
		"Address of the API server, such as https://10.0.0.1:6443. Overrides the one of --kubeconfig.")
	fs.StringSliceVar(&o.SchedulerNames, "scheduler-name", o.SchedulerNames,
		"Place the pods whose spec.schedulerName is one of these, and no others. Events name the first as their controller. No other scheduler may use these names.")
	fs.StringVar(&o.SchedulerConf, "scheduler-conf", o.SchedulerConf,
		`Path of the policy file: actions, tiers and plugins. Changes are reloaded without a restart. If empty, the policy that "batch-scheduler config print-default" prints.`)
	fs.DurationVar(&o.SchedulePeriod, "schedule-period", o.SchedulePeriod,
		"Longest time from the start of one scheduling cycle to the next. A cycle also starts immediately after a change that may allow placements.")
	fs.StringVar(&o.DefaultQueue, "default-queue", o.DefaultQueue,
		"Queue of PodGroups, and of pods without a PodGroup, that do not name a queue.")
	fs.IntVar(&o.BindWorkers, "bind-workers", o.BindWorkers,
		fmt.Sprintf("Number of bindings in flight at the same time, from 1 to %d.", maxBindWorkers))
	fs.DurationVar(&o.GangGrace, "gang-grace", o.GangGrace,
		"How long a gang may run with fewer pods than its minMember before it is degraded. The scheduler evicts a degraded gang if that allows another gang to start, or itself in another topology domain, provided that the policy has the action preempt or reclaim. If 0, gangs are never degraded.")
	fs.Float32Var(&o.KubeAPIQPS, "kube-api-qps", o.KubeAPIQPS,
		"Maximum number of requests per second to the API server. If 0 or negative, only the limits of the API server apply (API Priority and Fairness).")
	fs.IntVar(&o.KubeAPIBurst, "kube-api-burst", o.KubeAPIBurst,
		"Number of requests that may exceed --kube-api-qps for a moment. If 0 or negative, as many as it allows in one second.")
	fs.StringVar(&o.BindAddress, "bind-address", o.BindAddress,
		"IP address on which health and metrics are served. 0.0.0.0 or :: stands for all addresses.")
	fs.IntVar(&o.SecurePort, "secure-port", o.SecurePort,
		"HTTPS port of /healthz, /livez, /readyz and /metrics; /metrics requires authorization by the API server. If 0, nothing is served.")
	fs.StringVar(&o.TLSCertFile, "tls-cert-file", o.TLSCertFile,
		"PEM file with the serving certificate, followed by those of its issuers if any. Changes are reloaded. If empty, a self-signed certificate is generated at the start.")
	fs.StringVar(&o.TLSPrivateKeyFile, "tls-private-key-file", o.TLSPrivateKeyFile,
		"PEM file with the private key of --tls-cert-file.")
	fs.BoolVar(&o.Profiling, "profiling", o.Profiling,
		"Also serve profiles of CPU and memory on /debug/pprof/, which requires authorization by the API server.")
	componentbaseoptions.BindLeaderElectionFlags(&o.LeaderElection, fs)
	logsapi.AddFlags(o.Logging, fs)
	// These need a feature gate that the scheduler does not have.
	for _, name := range []string{"log-text-split-stream", "log-text-info-buffer-size", "log-json-split-stream", "log-json-info-buffer-size"} {
		utilruntime.Must(fs.MarkHidden(name))
	}
}

// Validate returns all invalid options, each with its flag, as an error of one line.
func (o *Options) Validate() error {
	var errs flagErrors
	if len(o.SchedulerNames) == 0 {
		errs.add("scheduler-name", "must not be empty")
	}
	for i, name := range o.SchedulerNames {
		switch {
		case name == "":
			errs.add("scheduler-name", "a name must not be empty")
		case name == corev1.DefaultSchedulerName:
			errs.add("scheduler-name", "%s is the name of the scheduler of Kubernetes itself; choose another", name)
		case slices.Contains(o.SchedulerNames[:i], name):
			errs.add("scheduler-name", "%s is listed twice", name)
		}
	}
	if o.SchedulePeriod <= 0 {
		errs.add("schedule-period", "must be more than 0, such as 1s, not %v", o.SchedulePeriod)
	}
	if problems := validation.IsDNS1123Subdomain(o.DefaultQueue); len(problems) > 0 {
		errs.add("default-queue", "%q cannot be the name of a queue: %s", o.DefaultQueue, problems[0])
	}
	if o.BindWorkers < 1 || o.BindWorkers > maxBindWorkers {
		errs.add("bind-workers", "must be from 1 to %d, not %d", maxBindWorkers, o.BindWorkers)
	}
	if o.GangGrace < 0 {
		errs.add("gang-grace", "must be 0 or more, such as 60s, not %v", o.GangGrace)
	}
	if o.KubeAPIQPS != o.KubeAPIQPS {
		errs.add("kube-api-qps", "must be a number")
	}
	o.validateServing(&errs)
	o.validateLeaderElection(&errs)
	for _, err := range logsapi.Validate(o.Logging, nil, nil) {
		errs = append(errs, errors.New("logging: "+err.Error()))
	}
	return errs.joined()
}

func (o *Options) validateServing(errs *flagErrors) {
	if net.ParseIP(o.BindAddress) == nil {
		errs.add("bind-address", "must be an IP address, such as 0.0.0.0 or 127.0.0.1, not %q", o.BindAddress)
	}
	if o.SecurePort < 0 || o.SecurePort > 65535 {
		errs.add("secure-port", "must be from 1 to 65535, or 0 to serve nothing, not %d", o.SecurePort)
	}
	if o.TLSCertFile != "" && o.TLSPrivateKeyFile == "" {
		errs.add("tls-private-key-file", "must be given together with --tls-cert-file")
	}
	if o.TLSCertFile == "" && o.TLSPrivateKeyFile != "" {
		errs.add("tls-cert-file", "must be given together with --tls-private-key-file")
	}
}

// validateLeaderElection checks the requirements of client-go; its errors name the flags.
func (o *Options) validateLeaderElection(errs *flagErrors) {
	le := o.LeaderElection
	if !le.LeaderElect {
		return
	}
	lease, renew, retry := le.LeaseDuration.Duration, le.RenewDeadline.Duration, le.RetryPeriod.Duration
	if lease < time.Second {
		errs.add("leader-elect-lease-duration", "must be 1s or more, not %v", lease)
	}
	if renew <= 0 || renew >= lease {
		errs.add("leader-elect-renew-deadline", "must be more than 0 and less than the lease duration of %v, not %v", lease, renew)
	}
	if retry <= 0 || float64(retry)*leaderelection.JitterFactor >= float64(renew) {
		errs.add("leader-elect-retry-period", "must be more than 0, and %v times it less than the renew deadline of %v, not %v",
			leaderelection.JitterFactor, renew, retry)
	}
	if le.ResourceLock != resourcelock.LeasesResourceLock {
		errs.add("leader-elect-resource-lock", "must be %s, not %q", resourcelock.LeasesResourceLock, le.ResourceLock)
	}
	if problems := validation.IsDNS1123Subdomain(le.ResourceName); len(problems) > 0 {
		errs.add("leader-elect-resource-name", "%q cannot be the name of a lease: %s", le.ResourceName, problems[0])
	}
	if problems := validation.IsDNS1123Label(le.ResourceNamespace); len(problems) > 0 {
		errs.add("leader-elect-resource-namespace", "%q cannot be a namespace: %s", le.ResourceNamespace, problems[0])
	}
}

// flagErrors are the errors of invalid options.
type flagErrors []error

func (e *flagErrors) add(flag, format string, args ...any) {
	*e = append(*e, fmt.Errorf("--%s: %s", flag, fmt.Sprintf(format, args...)))
}

// joined returns all errors as one error of one line, or nil if there is none.
func (e flagErrors) joined() error {
	if len(e) == 0 {
		return nil
	}
	texts := make([]string, 0, len(e))
	for _, err := range e {
		texts = append(texts, err.Error())
	}
	return errors.New(strings.Join(texts, "; "))
}
