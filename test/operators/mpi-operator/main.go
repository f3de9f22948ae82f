// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Command mpi-operator runs the controller of mpi-operator v2 as the command of that project does, but without leader
// election and without its health check, which listens on port 8080 of all addresses.
package main

import (
	"context"
	"flag"
	"log"
	"os/signal"
	"syscall"

	"github.com/kubeflow/mpi-operator/cmd/mpi-operator/app/options"
	"github.com/kubeflow/mpi-operator/pkg/client/clientset/versioned"
	"github.com/kubeflow/mpi-operator/pkg/client/clientset/versioned/scheme"
	"github.com/kubeflow/mpi-operator/pkg/client/informers/externalversions"
	"github.com/kubeflow/mpi-operator/pkg/controller"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	schedulerplugins "sigs.k8s.io/scheduler-plugins/pkg/generated/clientset/versioned"
	volcano "volcano.sh/apis/pkg/client/clientset/versioned"
)

func main() {
	options := options.NewServerOption()
	options.AddFlags(flag.CommandLine)
	flag.Parse()
	config, err := clientcmd.BuildConfigFromFlags("", options.Kubeconfig)
	if err == nil {
		err = run(config, options)
	}
	if err != nil {
		log.Fatal(err)
	}
}

func run(config *rest.Config, options *options.ServerOption) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := scheme.AddToScheme(kubescheme.Scheme); err != nil { // for its events
		return err
	}
	core := kubernetes.NewForConfigOrDie(config)
	jobs := versioned.NewForConfigOrDie(config)
	coreInformers := informers.NewSharedInformerFactory(core, 0)
	jobInformers := externalversions.NewSharedInformerFactory(jobs, 0)
	c, err := controller.NewMPIJobController(ctx, core, jobs,
		volcano.NewForConfigOrDie(config), schedulerplugins.NewForConfigOrDie(config),
		coreInformers.Core().V1().ConfigMaps(), coreInformers.Core().V1().Secrets(), coreInformers.Core().V1().Services(),
		coreInformers.Batch().V1().Jobs(), coreInformers.Core().V1().Pods(), coreInformers.Scheduling().V1().PriorityClasses(),
		jobInformers.Kubeflow().V2beta1().MPIJobs(), options)
	if err != nil {
		return err
	}
	coreInformers.Start(ctx.Done())
	jobInformers.Start(ctx.Done())
	if c.PodGroupCtrl != nil {
		c.PodGroupCtrl.StartInformerFactory(ctx.Done())
	}
	return c.Run(options.Threadiness, ctx.Done())
}
