// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package ownerapi_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/ownerapi"
)

const allKinds api.OwnerKinds = 1<<9 - 1

var everything = api.Grouping{Kinds: allKinds, IndexedJobs: true}

// pod is a pod with a controller, "apiVersion/Kind/name", and labels "key=value".
func pod(controller string, labels ...string) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", Labels: map[string]string{}}}
	if fields := strings.Split(controller, "/"); len(fields) > 1 {
		name, kind := fields[len(fields)-1], fields[len(fields)-2]
		p.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: strings.Join(fields[:len(fields)-2], "/"), Kind: kind, Name: name, UID: types.UID("uid-" + name), Controller: new(true),
		}}
	}
	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		p.Labels[key] = value
	}
	return p
}

func TestOwnerOf(t *testing.T) {
	const job, set = "batch/v1/Job/j", "jobset.sigs.k8s.io/jobset-name=s"
	spark := []string{"spark-role=executor", "sparkoperator.k8s.io/app-name=a"}
	mpi := []string{"training.kubeflow.org/operator-name=mpi-operator", "training.kubeflow.org/job-name=m"}
	for name, c := range map[string]struct {
		pod   *v1.Pod
		kinds api.OwnerKinds
		want  string // kind, name and UID; empty if no rule applies
	}{
		"JobSet":                           {pod(job, set, "jobset.sigs.k8s.io/jobset-uid=u"), allKinds, "JobSet s u"},
		"JobSet of a version without UID":  {pod(job, set), allKinds, "JobSet s "},
		"JobSet, by a TrainJob":            {pod(job, set), api.KindTrainJob, "JobSet s "},
		"JobSet, not listed":               {pod(job, set), allKinds &^ (api.KindJobSet | api.KindTrainJob), "Job j uid-j"},
		"a copy of a pod of a JobSet":      {pod("", set), allKinds, ""},
		"LeaderWorkerSet":                  {pod("apps/v1/StatefulSet/l-0", "leaderworkerset.sigs.k8s.io/name=l"), allKinds, "LeaderWorkerSet l "},
		"StatefulSet":                      {pod("apps/v1/StatefulSet/l"), allKinds, ""},
		"RayCluster":                       {pod("ray.io/v1/RayCluster/r"), allKinds, "RayCluster r uid-r"},
		"cleanup Job of a RayCluster":      {pod("batch/v1/Job/r", "ray.io/cluster=r"), api.KindRayCluster, ""},
		"a kind of another API":            {pod("array.io/v1/RayCluster/r"), allKinds, ""},
		"worker of an MPIJob":              {pod("kubeflow.org/v2beta1/MPIJob/m"), allKinds, "MPIJob m uid-m"},
		"launcher of an MPIJob":            {pod("batch/v1/Job/m-launcher", mpi...), allKinds, "MPIJob m "},
		"PyTorchJob":                       {pod("kubeflow.org/v1/PyTorchJob/t"), allKinds, "PyTorchJob t uid-t"},
		"PyTorchJob, not listed":           {pod("kubeflow.org/v1/PyTorchJob/t"), api.KindMPIJob, ""},
		"executor of a SparkApplication":   {pod("v1/Pod/driver", spark...), allKinds, "SparkApplication a "},
		"driver of a SparkApplication":     {pod("sparkoperator.k8s.io/v1beta2/SparkApplication/a", "spark-role=driver", spark[1]), allKinds, ""},
		"executor of spark-submit":         {pod("v1/Pod/driver", "spark-role=executor"), allKinds, ""},
		"Job":                              {pod(job), allKinds, "Job j uid-j"},
		"Job of another scheduler's group": {pod("batch.volcano.sh/v1alpha1/Job/j"), allKinds, ""},
		"Deployment":                       {pod("apps/v1/ReplicaSet/d-1"), allKinds, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if ref, found := ownerapi.RulesOf(api.Grouping{Kinds: c.kinds, IndexedJobs: true}).OwnerOf(c.pod); found {
				got = fmt.Sprintf("%s %s %s", ref.Kind, ref.Name, ref.UID)
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestNoRules: a policy that makes no gangs by owners reads no kind.
func TestNoRules(t *testing.T) {
	for name, grouping := range map[string]api.Grouping{
		"nothing": {}, "basic Jobs": {Kinds: api.KindJob}, "Kueue": {Kinds: api.KindKueue},
	} {
		if rules := ownerapi.RulesOf(grouping); rules != nil {
			t.Errorf("%s: %d rules", name, len(rules.APIs()))
		}
	}
}

func TestOneRulePerKind(t *testing.T) {
	names, kinds := map[string]bool{}, map[string]bool{}
	for _, a := range ownerapi.All() {
		if names[a.Name] {
			t.Errorf("two rules with the name %s", a.Name)
		}
		names[a.Name] = true
	}
	for _, a := range ownerapi.RulesOf(everything).APIs() {
		if kinds[a.Kind] {
			t.Errorf("two rules about %s", a.Kind)
		}
		kinds[a.Kind] = true
	}
}

// read reads an object; the text is YAML without the kind.
func read(t *testing.T, rule, text string) *api.Owner {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	u.SetName("o")
	for _, a := range ownerapi.All() {
		if a.Name == rule {
			return a.Read(u)
		}
	}
	t.Fatalf("no rule %s", rule)
	return nil
}

// TestGangs compares the gangs that objects make, "stage: minMember of label=values by keys".
func TestGangs(t *testing.T) {
	const jobSet, keys = " by jobset.sigs.k8s.io/restart-attempt", " of jobset.sigs.k8s.io/replicatedjob-name="
	const replica, executors = " by leaderworkerset.sigs.k8s.io/group-index,leaderworkerset.sigs.k8s.io/template-revision-hash", " by spark-app-selector"
	for name, c := range map[string]struct{ rule, object, want string }{
		"JobSet": {"jobset", `
spec:
  replicatedJobs:
  - {name: driver, template: {spec: {}}}
  - {name: workers, replicas: 2, template: {spec: {parallelism: 4, completions: 4}}}`,
			": 9" + keys + "driver,workers" + jobSet},
		"JobSet with fewer completions than parallelism": {"jobset", `
spec: {replicatedJobs: [{name: w, replicas: 3, template: {spec: {parallelism: 4, completions: 2}}}]}`,
			": 6" + keys + "w" + jobSet},
		"JobSet in stages": {"jobset", `
spec:
  replicatedJobs:
  - {name: data, template: {spec: {}}}
  - {name: model, template: {spec: {}}}
  - {name: node, template: {spec: {parallelism: 4}}, dependsOn: [{name: data, status: Complete}, {name: model, status: Complete}]}
  - {name: eval, template: {spec: {}}, dependsOn: [{name: model, status: Complete}, {name: data, status: Complete}]}
  - {name: last, template: {spec: {}}, dependsOn: [{name: node, status: Ready}]}`,
			": 2" + keys + "data,model" + jobSet + "\ndata=Complete,model=Complete: 5" + keys + "node,eval" + jobSet + "\nnode=Ready: 1" + keys + "last" + jobSet},
		"JobSet in order": {"jobset", `
spec:
  startupPolicy: {startupPolicyOrder: InOrder}
  replicatedJobs:
  - {name: driver, template: {spec: {}}}
  - {name: workers, template: {spec: {parallelism: 3}}}`,
			"driver: 1" + keys + "driver" + jobSet + "\nworkers: 3" + keys + "workers" + jobSet},
		"JobSet in any order": {"jobset", `
spec:
  startupPolicy: {startupPolicyOrder: AnyOrder}
  replicatedJobs: [{name: a, template: {spec: {}}}, {name: b, template: {spec: {}}}]`,
			": 2" + keys + "a,b" + jobSet},
		"JobSet of a TrainJob": {"trainjob", `
metadata: {ownerReferences: [{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, name: t, uid: u, controller: true}]}
spec: {replicatedJobs: [{name: node, template: {spec: {parallelism: 2}}}]}`,
			": 2" + keys + "node" + jobSet},
		"JobSet without TrainJob":  {"trainjob", "spec: {replicatedJobs: [{name: node, template: {spec: {parallelism: 2}}}]}", ""},
		"JobSet that is malformed": {"jobset", "spec: {replicatedJobs: 1}", "problem"},

		"LeaderWorkerSet":            {"leaderworkerset", "spec: {replicas: 2, startupPolicy: LeaderCreated, leaderWorkerTemplate: {size: 3}}", ": 3" + replica},
		"LeaderWorkerSet of leaders": {"leaderworkerset", "spec: {leaderWorkerTemplate: {}}", ": 1" + replica},
		"LeaderWorkerSet, LeaderReady": {"leaderworkerset", "spec: {startupPolicy: LeaderReady, leaderWorkerTemplate: {size: 3}}",
			"leader: 1 of leaderworkerset.sigs.k8s.io/worker-index=0" + replica + "\nworkers: 2" + replica},

		"RayCluster":                         {"raycluster", "spec: {workerGroupSpecs: [{replicas: 3, minReplicas: 1, maxReplicas: 5}, {replicas: 2, numOfHosts: 4}]}", ": 12"},
		"RayCluster with autoscaling":        {"raycluster", "spec: {enableInTreeAutoscaling: true, workerGroupSpecs: [{replicas: 3, minReplicas: 2, maxReplicas: 5}]}", ": 3"},
		"RayCluster beyond its limits":       {"raycluster", "spec: {workerGroupSpecs: [{replicas: 9, minReplicas: 1, maxReplicas: 5}, {replicas: 0, minReplicas: 2, maxReplicas: 3}]}", ": 8"},
		"RayCluster, a group suspended":      {"raycluster", "spec: {workerGroupSpecs: [{replicas: 3, suspend: true}, {replicas: 2}]}", ": 3"},
		"RayCluster with an annotation":      {"raycluster", "metadata: {annotations: {scheduling.batch-scheduler.dev/min-member: \"3\"}}\nspec: {workerGroupSpecs: [{replicas: 4}]}", ": 3"},
		"RayCluster with another annotation": {"raycluster", "metadata: {annotations: {scheduling.batch-scheduler.dev/min-member: \"0\"}}\nspec: {workerGroupSpecs: [{replicas: 4}]}", ": 5"},
		"LeaderReady with an annotation": {"leaderworkerset", "metadata: {annotations: {scheduling.batch-scheduler.dev/min-member: \"2\"}}\nspec: {startupPolicy: LeaderReady, leaderWorkerTemplate: {size: 4}}",
			"leader: 1 of leaderworkerset.sigs.k8s.io/worker-index=0" + replica + "\nworkers: 3" + replica},
		"RayCluster without workers":     {"raycluster", "spec: {headGroupSpec: {}}", ": 1"},
		"MPIJob":                         {"mpijob", "spec: {mpiReplicaSpecs: {Launcher: {replicas: 1}, Worker: {replicas: 4}}}", ": 5"},
		"MPIJob with minAvailable":       {"mpijob", "spec: {runPolicy: {schedulingPolicy: {minAvailable: 3}}, mpiReplicaSpecs: {Launcher: {}, Worker: {replicas: 4}}}", ": 3"},
		"MPIJob without workers":         {"mpijob", "spec: {mpiReplicaSpecs: {Launcher: {}}}", ": 1"},
		"MPIJob, launcher later":         {"mpijob", "spec: {launcherCreationPolicy: WaitForWorkersReady, mpiReplicaSpecs: {Launcher: {}, Worker: {replicas: 4}}}", ": 4 of training.kubeflow.org/job-role=worker"},
		"MPIJob, launcher later, of all": {"mpijob", "spec: {launcherCreationPolicy: WaitForWorkersReady, runPolicy: {schedulingPolicy: {minAvailable: 5}}, mpiReplicaSpecs: {Worker: {replicas: 4}}}", ": 4 of training.kubeflow.org/job-role=worker"},

		"PyTorchJob":                   {"pytorchjobs", "spec: {pytorchReplicaSpecs: {Master: {}, Worker: {replicas: 3}}}", ": 4"},
		"PyTorchJob that is elastic":   {"pytorchjobs", "spec: {elasticPolicy: {minReplicas: 2}, pytorchReplicaSpecs: {Master: {replicas: 1}, Worker: {replicas: 6}}}", ": 3"},
		"PyTorchJob with minAvailable": {"pytorchjobs", "spec: {runPolicy: {schedulingPolicy: {minAvailable: 2}}, pytorchReplicaSpecs: {Worker: {replicas: 3}}}", ": 2"},
		"TFJob":                        {"tfjobs", "spec: {tfReplicaSpecs: {PS: {replicas: 2}, Worker: {replicas: 3}, Chief: {replicas: 1}}}", ": 6"},
		"XGBoostJob":                   {"xgboostjobs", "spec: {xgbReplicaSpecs: {Master: {replicas: 1}, Worker: {replicas: 1}}}", ": 2"},
		"JAXJob":                       {"jaxjobs", "spec: {jaxReplicaSpecs: {Worker: {replicas: 3}}}", ": 3"},

		"SparkApplication":                         {"sparkapplication", "spec: {executor: {instances: 3}}", ": 3" + executors},
		"SparkApplication with batches":            {"sparkapplication", "spec: {executor: {instances: 8}}", ": 5" + executors},
		"SparkApplication with one batch":          {"sparkapplication", `spec: {executor: {instances: 8}, sparkConf: {spark.kubernetes.allocation.batch.size: "20"}}`, ": 8" + executors},
		"SparkApplication, dynamic":                {"sparkapplication", "spec: {executor: {instances: 3}, dynamicAllocation: {enabled: true, minExecutors: 2}}", ": 2" + executors},
		"SparkApplication, instances by conf":      {"sparkapplication", `spec: {executor: {}, sparkConf: {spark.executor.instances: "4"}}`, ": 4" + executors},
		"SparkApplication, instances by both":      {"sparkapplication", `spec: {executor: {instances: 3}, sparkConf: {spark.executor.instances: "4"}}`, ": 3" + executors},
		"SparkApplication, dynamic, least by conf": {"sparkapplication", `spec: {dynamicAllocation: {enabled: true}, sparkConf: {spark.dynamicAllocation.minExecutors: "2"}}`, ": 2" + executors},
		"SparkApplication, dynamic by conf":        {"sparkapplication", `spec: {executor: {instances: 3}, sparkConf: {spark.dynamicAllocation.enabled: "true", spark.dynamicAllocation.minExecutors: "2"}}`, ": 2" + executors},
		"SparkApplication, dynamic by conf from 0": {"sparkapplication", `spec: {executor: {instances: 3}, sparkConf: {spark.dynamicAllocation.enabled: "true"}}`, ": 1" + executors},
		"SparkApplication, dynamic from 0":         {"sparkapplication", "spec: {dynamicAllocation: {enabled: true, minExecutors: 0}}", ": 1" + executors},

		"Job, indexed":                    {"job", "spec: {completionMode: Indexed, completions: 4, parallelism: 4}", ": 4"},
		"Job, indexed, of one":            {"job", "spec: {completionMode: Indexed, completions: 1, parallelism: 1}", ""},
		"Job, indexed, more than at once": {"job", "spec: {completionMode: Indexed, completions: 8, parallelism: 4}", ""},
		"Job, not indexed":                {"job", "spec: {completionMode: NonIndexed, completions: 4, parallelism: 4}", ""},
		"Job, a queue of work":            {"job", "spec: {completionMode: Indexed, parallelism: 4}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := read(t, c.rule, c.object)
			var lines []string
			for _, g := range o.Gangs {
				line := fmt.Sprintf("%s: %d", g.Stage, g.MinMember)
				if g.Label != "" {
					line += " of " + g.Label + "=" + strings.Join(g.Values, ",")
				}
				if len(g.KeyLabels) > 0 {
					line += " by " + strings.Join(g.KeyLabels, ",")
				}
				lines = append(lines, line)
			}
			if o.Problem != "" {
				lines = append(lines, "problem")
			}
			if diff := cmp.Diff(c.want, strings.Join(lines, "\n")); diff != "" {
				t.Error(diff)
			}
		})
	}
}
