// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/batch-scheduler/batch-scheduler/pkg/client/clientset/versioned"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/metrics"
)

// clients of the API server; they share its connections.
type clients struct {
	kube  kubernetes.Interface
	batch versioned.Interface
	// dynamic is for PodGroups of other APIs.
	dynamic dynamic.Interface
	// lease is for leader election: its requests have no rate limit and time out before the renew deadline.
	lease kubernetes.Interface
	// server is the address of the API server.
	server string
}

// newClients does not connect: a wrong address or wrong credentials cause errors at the first use.
func newClients(opts *Options, m *metrics.Metrics) (*clients, error) {
	base, err := restConfig(opts)
	if err != nil {
		return nil, err
	}
	base.Wrap(func(next http.RoundTripper) http.RoundTripper { return newWriteCounter(next, m) })

	core := rest.CopyConfig(base)
	core.ContentType = runtime.ContentTypeProtobuf
	core.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	kube, err := kubernetes.NewForConfig(core)
	if err != nil {
		return nil, fmt.Errorf("creating a client of the API server: %w", err)
	}
	// Custom resources are served as JSON only.
	batch, err := versioned.NewForConfig(base)
	if err != nil {
		return nil, fmt.Errorf("creating a client of the API server: %w", err)
	}
	others, err := dynamic.NewForConfig(base)
	if err != nil {
		return nil, fmt.Errorf("creating a client of the API server: %w", err)
	}
	election := rest.CopyConfig(core)
	election.QPS, election.Burst = -1, 0
	election.Timeout = max(time.Second, opts.LeaderElection.RenewDeadline.Duration/2)
	lease, err := kubernetes.NewForConfig(election)
	if err != nil {
		return nil, fmt.Errorf("creating a client of the API server: %w", err)
	}
	return &clients{kube: kube, batch: batch, dynamic: others, lease: lease, server: base.Host}, nil
}

// restConfig returns the API server of the flags, else that of the service account of the pod.
func restConfig(opts *Options) (*rest.Config, error) {
	var config *rest.Config
	var err error
	if opts.Kubeconfig == "" && opts.Master == "" {
		config, err = rest.InClusterConfig()
		if errors.Is(err, rest.ErrNotInCluster) {
			return nil, errors.New("no API server is known: this process does not run in a pod; give --kubeconfig or --master")
		}
	} else {
		config, err = clientcmd.BuildConfigFromFlags(opts.Master, opts.Kubeconfig)
	}
	if err != nil {
		return nil, fmt.Errorf("finding the API server: %w", err)
	}
	config.UserAgent = userAgent()
	config.QPS, config.Burst = rateLimit(opts.KubeAPIQPS, opts.KubeAPIBurst)
	return config, nil
}

// rateLimit converts the flags for client-go, where 0 stands for its own low default and a negative rate for no limit.
func rateLimit(qps float32, burst int) (float32, int) {
	switch {
	case qps <= 0:
		return -1, 0
	case burst <= 0:
		return qps, max(1, int(qps))
	default:
		return qps, burst
	}
}

// writeCounter counts the requests that write.
type writeCounter struct {
	next     http.RoundTripper
	metrics  *metrics.Metrics
	resolver apirequest.RequestInfoFactory
}

func newWriteCounter(next http.RoundTripper, m *metrics.Metrics) *writeCounter {
	return &writeCounter{next: next, metrics: m, resolver: apirequest.RequestInfoFactory{
		APIPrefixes:          sets.NewString("api", "apis"),
		GrouplessAPIPrefixes: sets.NewString("api"),
	}}
}

// RoundTrip implements http.RoundTripper.
func (c *writeCounter) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := c.next.RoundTrip(req)
	if req.Method == http.MethodGet || req.Method == http.MethodHead {
		return resp, err
	}
	verb, resource := "other", "other"
	if info, infoErr := c.resolver.NewRequestInfo(req); infoErr == nil && info.IsResourceRequest {
		verb, resource = info.Verb, info.Resource
		if info.Subresource != "" {
			resource += "/" + info.Subresource
		}
	}
	code := 0
	if err == nil {
		code = resp.StatusCode
	}
	c.metrics.APIWrite(verb, resource, code)
	return resp, err
}

// WrappedRoundTripper gives client-go access to the transport.
func (c *writeCounter) WrappedRoundTripper() http.RoundTripper {
	return c.next
}
