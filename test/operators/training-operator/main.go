// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Command training-operator runs the controller of PyTorchJobs of training-operator v1, with gang scheduling as the
// command of that project sets it up. It has no webhooks, which only validate, and listens on no port.
package main

import (
	"flag"
	"log"

	kubeflow "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/kubeflow/training-operator/pkg/config"
	"github.com/kubeflow/training-operator/pkg/controller.v1/common"
	"github.com/kubeflow/training-operator/pkg/controller.v1/pytorch"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2/textlogger"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	schedulerplugins "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
	volcanoclient "volcano.sh/apis/pkg/client/clientset/versioned"
)

func main() {
	gangScheduler := flag.String("gang-scheduler-name", "", "as the flag of training-operator")
	flag.Parse() // controller-runtime adds --kubeconfig
	ctrl.SetLogger(textlogger.NewLogger(textlogger.NewConfig()))
	config.Config.PyTorchInitContainerImage = config.PyTorchInitContainerImageDefault
	config.Config.PyTorchInitContainerTemplateFile = config.PyTorchInitContainerTemplateFileDefault
	config.Config.PyTorchInitContainerMaxTries = config.PyTorchInitContainerMaxTriesDefault
	if err := run(*gangScheduler); err != nil {
		log.Fatal(err)
	}
}

func run(gangScheduler string) error {
	types := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		scheme.AddToScheme, kubeflow.AddToScheme, schedulerplugins.AddToScheme, volcano.AddToScheme,
	} {
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
	setup := common.GenSchedulerPluginsSetupFunc(manager.GetClient(), gangScheduler)
	if gangScheduler == string(common.GangSchedulerVolcano) {
		setup = common.GenVolcanoSetupFunc(volcanoclient.NewForConfigOrDie(manager.GetConfig()))
	}
	if err := pytorch.NewReconciler(manager, setup).SetupWithManager(manager, 1); err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}
