// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/batch-scheduler/batch-scheduler/cmd/kubectl-batch/internal/othergroups"
	"github.com/batch-scheduler/batch-scheduler/pkg/client/clientset/versioned"
)

// cluster is what commands work on.
type cluster interface {
	// namespace is the one that is asked for: by flag, by the context of the kubeconfig, or default.
	namespace() (string, error)
	connect() (clients, error)
	// object reads an object of any kind that the API server serves. The kind is written as for kubectl: job, jobs,
	// jobs.batch.
	object(ctx context.Context, kind, namespace, name string) (*unstructured.Unstructured, error)
	now() time.Time
}

type clients struct {
	core  kubernetes.Interface
	batch versioned.Interface
	other othergroups.Reader
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
	other, err := dynamic.NewForConfig(config)
	if err != nil {
		return clients{}, fmt.Errorf("creating a client of the API server: %w", err)
	}
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return clients{}, fmt.Errorf("creating a client of the API server: %w", err)
	}
	return clients{core, batch, othergroups.Reader{Dynamic: other, Discovery: core.Discovery()}}, nil
}

// object looks the kind up in what the API server serves, as kubectl does. Discovery knows no context, so object returns
// before it does when ctx ends.
func (c *configured) object(ctx context.Context, kind, namespace, name string) (*unstructured.Unstructured, error) {
	type answer struct {
		found []*resource.Info
		err   error
	}
	read := make(chan answer, 1)
	go func() {
		found, err := resource.NewBuilder(c.flags).Unstructured().NamespaceParam(namespace).ResourceNames(kind, name).Do().Infos()
		read <- answer{found, err}
	}()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case a := <-read:
		if a.err != nil {
			return nil, a.err
		}
		if len(a.found) == 1 {
			if object, ok := a.found[0].Object.(*unstructured.Unstructured); ok {
				return object, nil
			}
		}
		return nil, fmt.Errorf("%s/%s: the API server returned %d objects", kind, name, len(a.found))
	}
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
