// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/batch-scheduler/batch-scheduler/pkg/client/clientset/versioned"
)

// cluster is what commands work on.
type cluster interface {
	// namespace is the one that is asked for: by flag, by the context of the kubeconfig, or default.
	namespace() (string, error)
	connect() (clients, error)
	now() time.Time
}

type clients struct {
	core  kubernetes.Interface
	batch versioned.Interface
}

// configured is the cluster that flags and kubeconfig name.
type configured struct {
	flags *genericclioptions.ConfigFlags
}

func (c *configured) namespace() (string, error) {
	namespace, _, err := c.flags.ToRawKubeConfigLoader().Namespace()
	return namespace, err
}

func (c *configured) now() time.Time { return time.Now() }

// connect sends nothing yet.
func (c *configured) connect() (clients, error) {
	config, err := c.flags.ToRESTConfig()
	if err != nil {
		return clients{}, err
	}
	config = rest.CopyConfig(config)
	config.QPS = -1 // a person asks; the API server has limits of its own
	config.UserAgent = "kubectl-batch"
	batch, err := versioned.NewForConfig(config) // custom resources are served as JSON only
	if err != nil {
		return clients{}, fmt.Errorf("creating a client of the API server: %w", err)
	}
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return clients{}, fmt.Errorf("creating a client of the API server: %w", err)
	}
	return clients{core, batch}, nil
}

// open is what most commands begin with.
func open(c cluster) (clients, string, error) {
	namespace, err := c.namespace()
	if err != nil {
		return clients{}, "", err
	}
	connected, err := c.connect()
	return connected, namespace, err
}
