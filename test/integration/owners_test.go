// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/test/cluster"
)

// ownerResources are the resources of kinds in testdata/owners.
var ownerResources = map[string]schema.GroupVersionResource{
	"JobSet":           {Group: "jobset.x-k8s.io", Version: "v1alpha2", Resource: "jobsets"},
	"LeaderWorkerSet":  {Group: "leaderworkerset.x-k8s.io", Version: "v1", Resource: "leaderworkersets"},
	"RayCluster":       {Group: "ray.io", Version: "v1", Resource: "rayclusters"},
	"MPIJob":           {Group: "kubeflow.org", Version: "v2beta1", Resource: "mpijobs"},
	"PyTorchJob":       {Group: "kubeflow.org", Version: "v1", Resource: "pytorchjobs"},
	"SparkApplication": {Group: "sparkoperator.k8s.io", Version: "v1beta2", Resource: "sparkapplications"},
}

// serveOwners installs the definitions of kinds.
func (h *harness) serveOwners(kinds ...string) {
	h.t.Helper()
	for _, kind := range kinds {
		text, err := os.ReadFile(filepath.Join("testdata", "owners", strings.ToLower(kind)+".crd.yaml"))
		h.must(err)
		h.must(cluster.ApplyObjects(h.ctx, h.cluster.RESTConfig(), []*unstructured.Unstructured{parseObject(h, string(text))}))
	}
}

// grantGrouping installs what the scheduler needs for kinds of grouping.
func (h *harness) grantGrouping(kinds ...string) {
	h.t.Helper()
	for _, kind := range kinds {
		h.must(h.cluster.Apply(h.ctx, filepath.Join("..", "..", "config", "grouping", kind)))
	}
}

// groupingPolicy returns the flag of a policy with kinds of grouping.
func (h *harness) groupingPolicy(grouping string) string {
	return "--scheduler-conf=" + h.file("policy.yaml", groupingOf(grouping))
}

func groupingOf(grouping string) string { return "grouping: " + grouping + "\n" + conf.DefaultYAML() }

// owner is an object that makes gangs of its pods.
type owner struct {
	h       *harness
	kind    string
	objects dynamic.ResourceInterface
	object  *unstructured.Unstructured
}

// owner creates an object. The spec is YAML.
func (h *harness) owner(kind, name, spec string) *owner {
	h.t.Helper()
	client, err := dynamic.NewForConfig(h.cluster.RESTConfig())
	h.must(err)
	resource := ownerResources[kind]
	o := &owner{h: h, kind: kind, objects: client.Resource(resource).Namespace(namespace)}
	object := parseObject(h, fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: %s}, spec: %s}", resource.GroupVersion(), kind, name, spec))
	h.eventually(func() error { // a kind that has just been defined
		created, createErr := o.objects.Create(h.ctx, object, metav1.CreateOptions{})
		if createErr == nil {
			o.object = created
		}
		return createErr
	})
	return o
}

// set changes the spec.
func (o *owner) set(spec string) {
	o.h.t.Helper()
	_, err := o.objects.Patch(o.h.ctx, o.object.GetName(), types.MergePatchType, []byte(`{"spec":`+spec+`}`), metav1.PatchOptions{})
	o.h.must(err)
}

// controls makes the object the controller of a pod.
func (o *owner) controls(p *corev1.Pod) {
	p.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: o.object.GetAPIVersion(), Kind: o.kind, Name: o.object.GetName(), UID: o.object.GetUID(), Controller: new(true), BlockOwnerDeletion: new(true),
	}}
}

// controlledBy makes another object the controller of a pod.
func controlledBy(apiVersion, kind, name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID("uid-" + name), Controller: new(true)}}
	}
}

// ofJobSet makes a pod that of a Job of a JobSet.
func (o *owner) ofJobSet(replicatedJob, attempt string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		controlledBy("batch/v1", "Job", o.object.GetName()+"-"+replicatedJob+"-0")(p)
		withLabels(map[string]string{
			"jobset.sigs.k8s.io/jobset-name": o.object.GetName(), "jobset.sigs.k8s.io/jobset-uid": string(o.object.GetUID()),
			"jobset.sigs.k8s.io/replicatedjob-name": replicatedJob, "jobset.sigs.k8s.io/restart-attempt": attempt,
		})(p)
	}
}

func withLabels(set map[string]string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		for key, value := range set {
			label(key, value)(p)
		}
	}
}

// members creates pods name-0, name-1 and so on, which run on a node only.
func (h *harness) members(name string, count int, node string, edits ...func(*corev1.Pod)) {
	h.t.Helper()
	for i := range count {
		p := newPod(fmt.Sprintf("%s-%d", name, i), "1cpu", edits...)
		p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
		_, err := h.client.CoreV1().Pods(namespace).Create(h.ctx, p, metav1.CreateOptions{})
		h.must(err)
	}
}

// boundOf compares how many pods have a node whose names begin with a prefix.
func (h *harness) boundOf(prefix string, want int) error {
	list, err := h.client.CoreV1().Pods(namespace).List(h.ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	got := 0
	for i := range list.Items {
		if strings.HasPrefix(list.Items[i].Name, prefix) && list.Items[i].Spec.NodeName != "" {
			got++
		}
	}
	if got != want {
		return fmt.Errorf("%d pods %s* are bound, want %d", got, prefix, want)
	}
	return nil
}

// resize sets the cpu of a node.
func (h *harness) resize(node, cpu string) {
	h.t.Helper()
	_, err := h.client.CoreV1().Nodes().Patch(h.ctx, node, types.MergePatchType,
		[]byte(`{"status":{"capacity":{"cpu":"`+cpu+`"},"allocatable":{"cpu":"`+cpu+`"}}}`), metav1.PatchOptions{}, "status")
	h.must(err)
}

// TestGangsOfOwners: the pods that operators create start in gangs, by what their objects say. Each object has a node of its
// own.
func TestGangsOfOwners(t *testing.T) {
	h := newHarness(t, noControllers)
	h.serveOwners("JobSet", "LeaderWorkerSet", "RayCluster", "MPIJob")
	h.grantGrouping("jobset", "leaderworkerset", "raycluster", "mpijob", "job")
	for name, cpu := range map[string]string{"jobset": "8cpu", "ray": "3cpu", "mpi": "4cpu", "lws": "4cpu", "ready": "2cpu"} {
		h.do(node(name, cpu))
	}
	h.start(h.groupingPolicy("{kinds: [jobset, leaderworkerset, raycluster, mpijob, job], job: basic}"))
	for name, test := range map[string]func(*harness){
		"JobSet": jobSetIsAGang, "RayCluster": rayClusterIsAGang, "MPIJob": workersBeforeLauncher,
		"LeaderWorkerSet": replicasAreGangs, "LeaderReady": leaderBeforeWorkers,
	} {
		t.Run(name, func(t *testing.T) {
			inner := *h
			inner.t = t
			test(&inner)
		})
	}
}

// IG1: a driver and two Jobs of four workers; there is cpu for eight pods, then for nine.
func jobSetIsAGang(h *harness) {
	set := h.owner("JobSet", "train", `{replicatedJobs: [
		{name: driver, replicas: 1, template: {spec: {parallelism: 1, completions: 1}}},
		{name: workers, replicas: 2, template: {spec: {parallelism: 4, completions: 4}}}]}`)
	h.members("train-driver", 1, "jobset", set.ofJobSet("driver", "0"))
	h.eventually(func() error { return h.waits(namespace, "train-driver-0", "NotEnoughPods", "1 of 9 pods") })
	h.members("train-workers", 8, "jobset", set.ofJobSet("workers", "0"))
	h.eventually(func() error { return h.waits(namespace, "train-driver-0", "Unschedulable", "9 more pods") })
	h.must(h.boundOf("train-", 0))
	h.resize("jobset", "9")
	h.eventually(func() error { return h.boundOf("train-", 9) })
}

// IG3: a RayCluster with autoscaling between two and six workers; there is cpu for three pods, then for five.
func rayClusterIsAGang(h *harness) {
	ray := h.owner("RayCluster", "ray", `{enableInTreeAutoscaling: true, headGroupSpec: {},
		workerGroupSpecs: [{groupName: cpu, replicas: 2, minReplicas: 2, maxReplicas: 6, numOfHosts: 1}]}`)
	of := func(role string) func(*corev1.Pod) {
		return withLabels(map[string]string{"ray.io/cluster": "ray", "ray.io/node-type": role})
	}
	h.members("ray-head", 1, "ray", ray.controls, of("head"))
	h.members("ray-worker", 1, "ray", ray.controls, of("worker"))
	h.eventually(func() error { return h.waits(namespace, "ray-head-0", "NotEnoughPods", "2 of 3 pods") })
	h.members("ray-second", 1, "ray", ray.controls, of("worker"))
	h.eventually(func() error { return h.boundOf("ray-", 3) })

	ray.set(`{"workerGroupSpecs":[{"groupName":"cpu","replicas":5,"minReplicas":2,"maxReplicas":6,"numOfHosts":1}]}`)
	h.resize("ray", "5")
	h.members("ray-more", 3, "ray", ray.controls, of("worker"))
	h.eventually(func() error { return h.boundOf("ray-", 5) })
	h.members("ray-cleanup", 1, "ray", controlledBy("batch/v1", "Job", "ray-redis-cleanup"), withLabels(map[string]string{"ray.io/cluster": "ray"}))

	ray.set(`{"workerGroupSpecs":[{"groupName":"cpu","replicas":6,"minReplicas":6,"maxReplicas":6,"numOfHosts":1}]}`)
	h.resize("ray", "6") // for the pod of the Job, and not for the gang that lacks two pods
	h.eventually(func() error { return h.boundOf("ray-cleanup", 1) })
	h.must(h.boundOf("ray-", 6))
}

// IG4: the launcher of an MPIJob is created when its four workers are ready; there is cpu for four pods, then for five.
func workersBeforeLauncher(h *harness) {
	mpi := h.owner("MPIJob", "mpi", `{launcherCreationPolicy: WaitForWorkersReady, mpiReplicaSpecs: {Launcher: {replicas: 1}, Worker: {replicas: 4}}}`)
	of := func(role string) func(*corev1.Pod) {
		return withLabels(map[string]string{
			"training.kubeflow.org/job-name": "mpi", "training.kubeflow.org/job-role": role, "training.kubeflow.org/operator-name": "mpi-operator",
		})
	}
	h.members("mpi-worker", 3, "mpi", mpi.controls, of("worker"))
	h.eventually(func() error { return h.waits(namespace, "mpi-worker-0", "NotEnoughPods", "3 of 4 pods") })
	h.members("mpi-last", 1, "mpi", mpi.controls, of("worker"))
	h.eventually(func() error { return h.boundOf("mpi-", 4) })
	h.members("mpi-launcher", 1, "mpi", controlledBy("batch/v1", "Job", "mpi-launcher"), of("launcher"))
	h.eventually(func() error { return h.waits(namespace, "mpi-launcher-0", "Unschedulable", "") })
	h.resize("mpi", "5")
	h.eventually(func() error { return h.boundOf("mpi-", 5) })

	h.owner("MPIJob", "late", `{mpiReplicaSpecs: {Launcher: {replicas: 1}, Worker: {replicas: 1}}}`)
	h.members("late-launcher", 1, "mpi", controlledBy("batch/v1", "Job", "late-launcher"), of("launcher"), label("training.kubeflow.org/job-name", "late"))
	h.eventually(func() error { return h.waits(namespace, "late-launcher-0", "NotEnoughPods", "1 of 2 pods") })
}

// ofReplica makes a pod that of a replica of a LeaderWorkerSet.
func ofReplica(set, replica, worker string) func(*corev1.Pod) {
	statefulSet := set
	if worker != "0" {
		statefulSet += "-" + replica
	}
	return func(p *corev1.Pod) {
		controlledBy("apps/v1", "StatefulSet", statefulSet)(p)
		withLabels(map[string]string{
			"leaderworkerset.sigs.k8s.io/name": set, "leaderworkerset.sigs.k8s.io/group-index": replica,
			"leaderworkerset.sigs.k8s.io/worker-index": worker, "leaderworkerset.sigs.k8s.io/template-revision-hash": "a1",
		})(p)
	}
}

// IG5: two replicas of three pods; there is cpu for four pods.
func replicasAreGangs(h *harness) {
	h.owner("LeaderWorkerSet", "serve", `{replicas: 2, leaderWorkerTemplate: {size: 3}, startupPolicy: LeaderCreated}`)
	for _, replica := range []string{"0", "1"} {
		for _, worker := range []string{"0", "1", "2"} {
			h.members("serve-"+replica+"-"+worker, 1, "lws", ofReplica("serve", replica, worker))
		}
	}
	h.eventually(func() error { return h.boundOf("serve-", 3) })
	whole := func() error {
		if h.boundOf("serve-0-", 3) == nil {
			return h.waits(namespace, "serve-1-0-0", "Unschedulable", "3 more pods")
		}
		return h.waits(namespace, "serve-0-0-0", "Unschedulable", "3 more pods")
	}
	h.eventually(whole)
	h.must(h.boundOf("serve-", 3))
}

// With LeaderReady, the leader starts alone, and its two workers together; there is cpu for two pods, then for three.
func leaderBeforeWorkers(h *harness) {
	h.owner("LeaderWorkerSet", "ready", `{replicas: 1, leaderWorkerTemplate: {size: 3}, startupPolicy: LeaderReady}`)
	h.members("ready-0", 1, "ready", ofReplica("ready", "0", "0"))
	h.eventually(func() error { return h.boundOf("ready-", 1) })
	for _, worker := range []string{"1", "2"} {
		h.members("ready-0-"+worker, 1, "ready", ofReplica("ready", "0", worker))
	}
	h.eventually(func() error { return h.waits(namespace, "ready-0-1-0", "Unschedulable", "2 more pods") })
	h.must(h.boundOf("ready-", 1))
	h.resize("ready", "3")
	h.eventually(func() error { return h.boundOf("ready-", 3) })
}

// TestUnreadableOwners: the pods of a JobSet wait that the scheduler must not read, with one line in the log. They start when
// the role is granted, without a restart (IG6). Pods of a JobSet that does not exist start one by one.
func TestUnreadableOwners(t *testing.T) {
	h := newHarness(t, noControllers)
	h.restarted = true // the log has the refusals
	h.serveOwners("JobSet")
	h.do(node("n", "8cpu"))
	metrics, args := h.newScraper()
	h.start(append(args, h.groupingPolicy("{kinds: [jobset]}"))...)
	set := h.owner("JobSet", "train", `{replicatedJobs: [{name: workers, replicas: 1, template: {spec: {parallelism: 2}}}]}`)
	h.members("train-workers", 2, "n", set.ofJobSet("workers", "0"))
	h.members("plain", 1, "n", controlledBy("batch/v1", "Job", "plain"))
	h.eventually(func() error {
		return h.waits(namespace, "train-workers-0", "OwnerUnknown", `it is not known how many pods JobSet "train" starts together`)
	})
	h.eventually(func() error { return h.bound(namespace, "plain-0") })
	h.eventually(func() error { return h.watchFailed(metrics, "jobsets.jobset.x-k8s.io") })
	h.grantGrouping("jobset")
	h.eventually(func() error { return h.bound(namespace, "plain-0", "train-workers-0", "train-workers-1") })
	if n := strings.Count(h.read(h.scheduler.Log), "config/grouping"); n != 1 {
		t.Errorf("the log names the missing role %d times, want once", n)
	}

	h.must(set.objects.Delete(h.ctx, "train", metav1.DeleteOptions{}))
	h.eventually(func() error {
		_, getErr := set.objects.Get(h.ctx, "train", metav1.GetOptions{})
		if apierrors.IsNotFound(getErr) {
			return nil
		}
		return fmt.Errorf("the JobSet exists: %w", getErr)
	})
	h.members("orphan", 1, "n", set.ofJobSet("workers", "0"))
	h.eventually(func() error { return h.boundOf("orphan-", 1) })
}

// TestGroupingWithoutRestart: a kind is enabled by a reload of the policy, and its pods are a gang from then on. Other kinds
// start as before: with "job: basic" the pods of a Job one by one (IG8), and those of basic native groups too.
func TestGroupingWithoutRestart(t *testing.T) {
	h := newHarness(t, controllers)
	h.serveOwners("PyTorchJob", "SparkApplication")
	h.grantGrouping("kubeflow", "sparkapplication", "job")
	for _, name := range []string{"torch", "spark", "kueue", "jobs", "indexed"} {
		h.do(node(name, "2cpu"))
	}
	metrics, args := h.newScraper()
	h.start(append(args, h.groupingPolicy("{kinds: [job], job: basic}"))...)
	torch := h.owner("PyTorchJob", "torch", `{pytorchReplicaSpecs: {Master: {replicas: 1}, Worker: {replicas: 2}}}`)
	h.members("torch-worker", 1, "torch", torch.controls)
	h.eventually(func() error { return h.boundOf("torch-", 1) })
	onNode := func(name string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: name} }
	}
	h.do(batchJob("plain", 3, "1cpu", onNode("jobs")))
	h.eventually(func() error { return h.boundOf("plain-", 2) })

	h.replace("policy.yaml", groupingOf("{kinds: [kubeflow, sparkapplication, kueue, job], job: indexed}"))
	h.eventually(func() error { return h.reloads(metrics, "success", 1) })
	h.must(h.boundOf("torch-", 1)) // it runs on
	h.members("torch-more", 2, "torch", torch.controls)
	h.eventually(func() error { return h.waits(namespace, "torch-more-0", "Unschedulable", "2 more pods") })
	h.must(h.boundOf("torch-", 1))
	h.resize("torch", "3")
	h.eventually(func() error { return h.boundOf("torch-", 3) })

	h.owner("SparkApplication", "pi", `{executor: {instances: 3}}`)
	executor := withLabels(map[string]string{"spark-role": "executor", "spark-app-selector": "spark-1", "sparkoperator.k8s.io/app-name": "pi"})
	h.do(node("driver", "1cpu"))
	h.members("pi-driver", 1, "driver", label("spark-role", "driver"))
	h.eventually(func() error { return h.boundOf("pi-driver-", 1) })
	driver, err := h.client.CoreV1().Pods(namespace).Get(h.ctx, "pi-driver-0", metav1.GetOptions{})
	h.must(err)
	h.members("pi-exec", 3, "spark", controlledBy("v1", "Pod", driver.Name), func(p *corev1.Pod) { p.OwnerReferences[0].UID = driver.UID }, executor)
	h.eventually(func() error { return h.waits(namespace, "pi-exec-0", "Unschedulable", "3 more pods") })
	h.members("group", 3, "kueue", label("kueue.x-k8s.io/pod-group-name", "g"), annotated("kueue.x-k8s.io/pod-group-total-count", "3"))
	h.eventually(func() error { return h.waits(namespace, "group-0", "Unschedulable", "3 more pods") })
	h.do(indexedJob("index", 4, "1.5cpu")) // three nodes have cpu for such a pod
	h.eventually(func() error { return h.allWait("index-", 4, "Unschedulable", "4 more pods") })
	h.must(h.boundOf("index-", 0))
	h.do(node("more", "2cpu"))
	h.eventually(func() error { return h.boundOf("index-", 4) })
	h.must(h.boundOf("pi-exec-", 0))
	h.must(h.boundOf("group-", 0))
	h.resize("spark", "5")
	h.resize("kueue", "5")
	h.eventually(func() error { return h.boundOf("pi-exec-", 3) })
	h.eventually(func() error { return h.boundOf("group-", 3) })
}
