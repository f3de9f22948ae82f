// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/batch-scheduler/batch-scheduler/test/cluster"
)

// TestTrainingOperator: with the controller of training-operator v1 and this scheduler alone, a PyTorchJob starts whole or
// not at all, and completes (IP1). With PodGroups of Volcano, the controller creates pods only when the group is Inqueue,
// which it becomes while the nodes are full (IV1, IV4).
func TestTrainingOperator(t *testing.T) {
	operator := operatorAt("training-operator", "github.com/kubeflow/training-operator")
	binary := operator.build(t)
	t.Parallel()
	const pods = "training.kubeflow.org/job-name=train"
	jobs := schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: "pytorchjobs"}
	for source, test := range map[string]struct {
		install       func(*harness)
		schedulerName string
		groups        func(*harness) otherAPI
		waiting       string // phase of the group while its pods wait
	}{
		"scheduler-plugins": {operator.installSchedulerPlugins, "batch-scheduler", (*harness).schedulerPlugins, "Scheduling"},
		"volcano":           {func(h *harness) { h.applyFiles("volcano.crd.yaml") }, "volcano", (*harness).volcano, "Inqueue"},
	} {
		t.Run(source, func(t *testing.T) {
			h := newHarness(t, noControllers)
			operator.install(h, "manifests/base/crds/kubeflow.org_pytorchjobs.yaml")
			test.install(h)
			h.grantSource(source)
			h.start("--scheduler-name=batch-scheduler,volcano", h.sourcePolicy("own", source))
			h.fillOneOf(4)
			operator.start(h, binary, "--kubeconfig="+h.cluster.Kubeconfig, "--gang-scheduler-name="+test.schedulerName)
			h.applyDocumented("training-operator.md", "pytorchjob.yaml")

			h.eventually(func() error {
				return errors.Join(h.waitTogether(pods, 4), test.groups(h).status(namespace, "train", map[string]string{"phase": test.waiting}))
			})
			h.freeNode()
			h.eventually(func() error { return h.runTogether(pods, 4) })
			h.eventually(func() error {
				return test.groups(h).status(namespace, "train", map[string]string{"phase": "Running", "running": "4"})
			})
			test.groups(h).onlyStatus(namespace, "train")
			h.end(pods)
			h.eventually(func() error { return h.hasCondition(jobs, "train", "Succeeded") })
		})
	}
}

// TestMPIOperator: with the controller of mpi-operator v2 and this scheduler alone, an MPIJob starts with its launcher or
// not at all, and completes (IP1).
func TestMPIOperator(t *testing.T) {
	operator := operatorAt("mpi-operator", "github.com/kubeflow/mpi-operator")
	binary := operator.build(t)
	h := newHarness(t, controllers)
	operator.install(h, "manifests/base/kubeflow.org_mpijobs.yaml")
	operator.installSchedulerPlugins(h)
	h.grantSource("scheduler-plugins")
	h.start(h.sourcePolicy("own", "scheduler-plugins"))
	h.fillOneOf(3)
	operator.start(h, binary, "--kubeConfig="+h.cluster.Kubeconfig, "--gang-scheduling=batch-scheduler")
	h.applyDocumented("mpi-operator.md", "mpijob.yaml")

	const pods = "training.kubeflow.org/job-name=pi"
	h.eventually(func() error { return h.waitTogether(pods, 3) })
	h.freeNode()
	h.eventually(func() error {
		return h.schedulerPlugins().status(namespace, "pi", map[string]string{"phase": "Running", "running": "3"})
	})
	h.schedulerPlugins().onlyStatus(namespace, "pi")
	h.eventually(func() error {
		return h.hasCondition(schema.GroupVersionResource{Group: "kubeflow.org", Version: "v2beta1", Resource: "mpijobs"}, "pi", "Succeeded")
	})
}

// TestKubeRay: with the controller of KubeRay and this scheduler alone, a RayCluster starts whole or not at all, and
// becomes ready (IP1).
func TestKubeRay(t *testing.T) {
	operator := operatorAt("kuberay", "github.com/ray-project/kuberay/ray-operator")
	binary := operator.build(t)
	t.Parallel()
	const pods = "ray.io/cluster=tune"
	for source, test := range map[string]struct {
		install func(*harness)
		groups  func(*harness) otherAPI
		group   string
	}{
		"scheduler-plugins": {operator.installSchedulerPlugins, (*harness).schedulerPlugins, "tune"},
		"volcano":           {func(h *harness) { h.applyFiles("volcano.crd.yaml") }, (*harness).volcano, "ray-tune-pg"},
	} {
		t.Run(source, func(t *testing.T) {
			h := newHarness(t, noControllers)
			operator.install(h, "config/crd/bases/ray.io_rayclusters.yaml")
			test.install(h)
			h.grantSource(source)
			h.start("--scheduler-name=batch-scheduler,scheduler-plugins-scheduler,volcano", h.sourcePolicy("own", source))
			h.fillOneOf(3)
			operator.start(h, binary, "--kubeconfig="+h.cluster.Kubeconfig, "--batch-scheduler="+source)
			h.applyDocumented("kuberay.md", "raycluster.yaml")

			h.eventually(func() error { return h.waitTogether(pods, 3) })
			h.freeNode()
			h.eventually(func() error {
				return test.groups(h).status(namespace, test.group, map[string]string{"phase": "Running", "running": "3"})
			})
			test.groups(h).onlyStatus(namespace, test.group)
			h.eventually(func() error {
				return h.hasCondition(schema.GroupVersionResource{Group: "ray.io", Version: "v1", Resource: "rayclusters"}, "tune", "RayClusterProvisioned")
			})
		})
	}
}

// TestLeaderWorkerSets: with the controller of LWS and this scheduler alone, each replica of a LeaderWorkerSet starts whole
// or not at all, and independently of the other.
func TestLeaderWorkerSets(t *testing.T) {
	operator := operator{name: "lws", dir: "../operators/lws", program: "sigs.k8s.io/lws/cmd", module: "sigs.k8s.io/lws"}
	binary := operator.build(t)
	h := newHarness(t, controllers)
	operator.install(h, "config/crd/bases/leaderworkerset.x-k8s.io_leaderworkersets.yaml", "config/crd/bases/disaggregatedset.x-k8s.io_disaggregatedsets.yaml")
	h.applyFiles("volcano.crd.yaml")
	h.grantSource("volcano")
	h.start(h.sourcePolicy("own", "volcano"))
	h.fillOneOf(6)
	port := operator.webhooks(h, "config", "webhook")
	operator.start(h, binary, "--kubeconfig="+h.cluster.Kubeconfig, "--config="+h.file("lws.yaml", fmt.Sprintf(lwsConfiguration, port, h.dir)))
	h.applyDocumented("lws.md", "leaderworkerset.yaml")

	const first, second = "leaderworkerset.sigs.k8s.io/group-index=0", "leaderworkerset.sigs.k8s.io/group-index=1"
	h.eventually(func() error { // one replica of three pods fits beside the pod, and no pod of the other one starts
		one := errors.Join(h.runTogether(first, 3), h.waitTogether(second, 3))
		other := errors.Join(h.runTogether(second, 3), h.waitTogether(first, 3))
		if one == nil || other == nil {
			return nil
		}
		return errors.Join(one, other)
	})
	h.freeNode()
	h.eventually(func() error { return errors.Join(h.runTogether(first, 3), h.runTogether(second, 3)) })
	h.eventually(func() error {
		return h.hasCondition(schema.GroupVersionResource{Group: "leaderworkerset.x-k8s.io", Version: "v1", Resource: "leaderworkersets"}, "serve", "Available")
	})
}

const lwsConfiguration = `apiVersion: config.lws.x-k8s.io/v1alpha1
kind: Configuration
webhook: {host: 127.0.0.1, port: %d, certDir: %q}
metrics: {bindAddress: "0"}
health: {healthProbeBindAddress: "0"}
leaderElection: {leaderElect: false}
internalCertManagement: {enable: false}
gangSchedulingManagement: {schedulerProvider: volcano}
`

// TestTrainer: with the controllers of Kubeflow Trainer v2 and JobSet, and this scheduler alone, a TrainJob starts whole or
// not at all, and completes.
func TestTrainer(t *testing.T) {
	operator := operatorAt("trainer", "github.com/kubeflow/trainer/v2")
	binary, jobSets := operator.build(t), jobSet.build(t)
	h := newHarness(t, cluster.Options{ControllerManager: true, JobRunTime: time.Second})
	for _, kind := range []string{"clustertrainingruntimes", "trainingruntimes", "trainjobs"} {
		operator.install(h, "manifests/base/crds/trainer.kubeflow.org_"+kind+".yaml")
	}
	operator.installSchedulerPlugins(h)
	h.grantSource("scheduler-plugins")
	h.start(h.sourcePolicy("own", "scheduler-plugins"))
	h.fillOneOf(3)
	h.startJobSet(jobSets)
	operator.start(h, binary, "--kubeconfig="+h.cluster.Kubeconfig)
	h.applyDocumented("trainer.md", "runtime.yaml")

	const pods = "jobset.sigs.k8s.io/jobset-name=finetune"
	h.eventually(func() error { return h.waitTogether(pods, 3) })
	h.freeNode()
	h.eventually(func() error {
		return h.hasCondition(schema.GroupVersionResource{Group: "trainer.kubeflow.org", Version: "v1alpha1", Resource: "trainjobs"}, "finetune", "Complete")
	})
	h.eventually(func() error {
		return h.schedulerPlugins().status(namespace, "finetune", map[string]string{"phase": "Finished", "succeeded": "3"})
	})
	h.schedulerPlugins().onlyStatus(namespace, "finetune")
}
