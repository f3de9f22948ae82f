// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Command kuberay runs the controller of RayClusters of KubeRay, with a batch scheduler as the command of that project
// sets it up. It has no webhooks, which only validate, and listens on no port.
package main

import (
	"context"
	"flag"
	"log"

	config "github.com/ray-project/kuberay/ray-operator/apis/config/v1alpha1"
	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	"github.com/ray-project/kuberay/ray-operator/controllers/ray"
	"github.com/ray-project/kuberay/ray-operator/controllers/ray/batchscheduler"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2/textlogger"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func main() {
	scheduler := flag.String("batch-scheduler", "", "as the flag of KubeRay")
	flag.Parse() // controller-runtime adds --kubeconfig
	logger := textlogger.NewLogger(textlogger.NewConfig())
	ctrl.SetLogger(logger)
	settings := config.Configuration{BatchScheduler: *scheduler}
	err := config.ValidateBatchSchedulerConfig(logger, settings)
	if err == nil {
		err = run(ctrl.SetupSignalHandler(), settings)
	}
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, settings config.Configuration) error {
	types := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, rayv1.AddToScheme} {
		if err := add(types); err != nil {
			return err
		}
	}
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme: types, Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
	})
	if err != nil {
		return err
	}
	schedulers, err := batchscheduler.NewSchedulerManager(ctx, settings, manager.GetConfig(), manager.GetClient())
	if err != nil {
		return err
	}
	schedulers.AddToScheme(types)
	options := ray.RayClusterReconcilerOptions{BatchSchedulerManager: schedulers}
	if err := ray.NewReconciler(ctx, manager, options).SetupWithManager(manager, 1); err != nil {
		return err
	}
	return manager.Start(ctx)
}
