// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/cmd/localcluster/annotation"
	"github.com/batch-scheduler/batch-scheduler/test/cluster"
)

// TestCluster checks one cluster with controllers for everything that other tests depend on.
func TestCluster(t *testing.T) {
	c, client := start(t, cluster.Options{
		Nodes:             2,
		NodeSpecs:         []string{"cpu=4,memory=8Gi", "name=gpu,count=1,cpu=8,nvidia.com/gpu=2,pods=3"},
		Zones:             2,
		ControllerManager: true,
		JobRunTime:        100 * time.Millisecond,
	})
	for name, test := range map[string]func(*testing.T, *cluster.Cluster, kubernetes.Interface){
		"the API server reports its version":                     testVersion,
		"the nodes match the options":                            testNodes,
		"missing credentials and a wrong CA are rejected":        testCredentials,
		"a service account has the permissions of its roles":     testServiceAccount,
		"pods end according to their annotations and owners":     testPodLives,
		"pods that do not fit their node are rejected":           testAdmission,
		"resources are free after a pod has ended or is deleted": testResourcesAreFreed,
		"a pod that is deleted while it starts ends once":        testEndsOnce,
		"a node created through the API gets a kubelet":          testForeignNode,
		"a kustomization is applied, definitions first":          testApply,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, c, client)
		})
	}
}

func testVersion(t *testing.T, _ *cluster.Cluster, client kubernetes.Interface) {
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if version.Major != "1" || !strings.HasPrefix(version.GitVersion, "v1."+version.Minor+".") {
		t.Errorf("got version %+v", version)
	}
}

func testNodes(t *testing.T, _ *cluster.Cluster, client kubernetes.Interface) {
	type node struct{ Zone, CPU, Memory, Pods, GPU, Ready string }
	list, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{LabelSelector: corev1.LabelTopologyZone})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]node{}
	for _, n := range list.Items {
		if n.Labels[corev1.LabelHostname] != n.Name || len(n.Spec.Taints) > 0 {
			t.Errorf("node %s has labels %v, taints %v", n.Name, n.Labels, n.Spec.Taints)
		}
		quantity := func(name corev1.ResourceName) string {
			q, ok := n.Status.Allocatable[name]
			if !ok {
				return ""
			}
			return q.String()
		}
		got[n.Name] = node{
			Zone: n.Labels[corev1.LabelTopologyZone],
			CPU:  quantity("cpu"), Memory: quantity("memory"), Pods: quantity("pods"), GPU: quantity("nvidia.com/gpu"),
			Ready: string(n.Status.Conditions[len(n.Status.Conditions)-1].Status),
		}
	}
	want := map[string]node{
		"node-0": {"zone-a", "4", "8Gi", "110", "", "True"},
		"node-1": {"zone-b", "4", "8Gi", "110", "", "True"},
		"gpu-0":  {"zone-a", "8", "256Gi", "3", "2", "True"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
}

func testCredentials(t *testing.T, c *cluster.Cluster, _ kubernetes.Interface) {
	anonymous := rest.AnonymousClientConfig(c.RESTConfig())
	wrongCA := c.RESTConfig()
	wrongCA.CAData = nil // only the system's roots
	invalidToken := rest.AnonymousClientConfig(c.RESTConfig())
	invalidToken.BearerToken = "no-token-of-this-cluster"
	for name, test := range map[string]struct {
		given *rest.Config
		want  string
	}{
		"no credentials":    {anonymous, "Unauthorized"},
		"another authority": {wrongCA, "certificate signed by unknown authority"},
		"an invalid token":  {invalidToken, "Unauthorized"},
	} {
		t.Run(name, func(t *testing.T) {
			client, err := kubernetes.NewForConfig(test.given)
			if err != nil {
				t.Fatal(err)
			}
			_, err = client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want %q", err, test.want)
			}
		})
	}
}

func testServiceAccount(t *testing.T, c *cluster.Cluster, client kubernetes.Interface) {
	namespace := newNamespace(t, client, "accounts")
	_, err := client.CoreV1().ServiceAccounts(namespace).Create(t.Context(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "reader"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err = c.ServiceAccountKubeconfig(t.Context(), namespace, "reader", path); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	reader, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	list := func() error {
		_, err := reader.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
		return err
	}
	if err := list(); !apierrors.IsForbidden(err) {
		t.Fatalf("without a role: got %v, want forbidden", err)
	}
	grantView(t, client, namespace, "reader")
	eventually(t, "listing is allowed", func(context.Context) (bool, error) { return list() == nil, nil })
}

func testPodLives(t *testing.T, _ *cluster.Cluster, client kubernetes.Interface) {
	namespace := newNamespace(t, client, "lives")
	type end struct {
		Phase    corev1.PodPhase
		ExitCode int32
	}
	for name, test := range map[string]struct {
		given map[string]string // annotations
		want  end
	}{
		"keeps running":       {nil, end{corev1.PodRunning, 0}},
		"succeeds":            {map[string]string{annotation.RunFor: "50ms"}, end{corev1.PodSucceeded, 0}},
		"fails":               {map[string]string{annotation.RunFor: "50ms", annotation.ExitCode: "3"}, end{corev1.PodFailed, 3}},
		"invalid duration":    {map[string]string{annotation.RunFor: "a while"}, end{corev1.PodFailed, 0}},
		"exit code too large": {map[string]string{annotation.ExitCode: "256"}, end{corev1.PodFailed, 0}},
		"negative duration":   {map[string]string{annotation.TerminateAfter: "-1s"}, end{corev1.PodFailed, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			pod := newPod(strings.ReplaceAll(name, " ", "-"), "node-1", nil)
			pod.Annotations = test.given
			create(t, client, namespace, pod)
			eventually(t, fmt.Sprintf("pod is %s", test.want.Phase), func(ctx context.Context) (bool, error) {
				pod, err := client.CoreV1().Pods(namespace).Get(ctx, pod.Name, metav1.GetOptions{})
				if err != nil {
					return false, err
				}
				got := end{Phase: pod.Status.Phase}
				if len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].State.Terminated != nil {
					got.ExitCode = pod.Status.ContainerStatuses[0].State.Terminated.ExitCode
				}
				return got == test.want, nil
			})
		})
	}
	t.Run("a Job completes", func(t *testing.T) { runJob(t, client, namespace) })
	t.Run("a pod terminates after its annotation", func(t *testing.T) {
		const takes = 1500 * time.Millisecond
		pod := newPod("slow", "node-1", nil)
		pod.Annotations = map[string]string{annotation.TerminateAfter: takes.String()}
		create(t, client, namespace, pod)
		waitForPhase(t, client, namespace, pod.Name, corev1.PodRunning)
		begin := time.Now()
		remove(t, client, namespace, pod.Name)
		if took := time.Since(begin); took < takes {
			t.Errorf("deleted after %s, want at least %s", took, takes)
		}
	})
	t.Run("a pod without annotation is deleted at once, whatever its grace period", func(t *testing.T) {
		pod := newPod("quick", "node-1", nil)
		pod.Spec.TerminationGracePeriodSeconds = ptr.To[int64](3600)
		create(t, client, namespace, pod)
		waitForPhase(t, client, namespace, pod.Name, corev1.PodRunning)
		remove(t, client, namespace, pod.Name)
	})
}

func runJob(t *testing.T, client kubernetes.Interface, namespace string) {
	t.Helper()
	template := newPod("", "node-1", nil)
	template.Spec.RestartPolicy = corev1.RestartPolicyNever
	_, err := client.BatchV1().Jobs(namespace).Create(t.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "job"},
		Spec: batchv1.JobSpec{
			Completions: ptr.To[int32](4), Parallelism: ptr.To[int32](2),
			Template: corev1.PodTemplateSpec{Spec: template.Spec},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the job is complete", func(ctx context.Context) (bool, error) {
		job, err := client.BatchV1().Jobs(namespace).Get(ctx, "job", metav1.GetOptions{})
		return err == nil && job.Status.CompletionTime != nil && job.Status.Succeeded == 4, err
	})
}

func testAdmission(t *testing.T, _ *cluster.Cluster, client kubernetes.Interface) {
	namespace := newNamespace(t, client, "admission")
	makeNode(t, client, "full", "4", "10")
	makeNode(t, client, "one-pod", "4", "1")
	create(t, client, namespace, newPod("only", "one-pod", nil))
	waitForPhase(t, client, namespace, "only", corev1.PodRunning)
	first := newPod("first", "full", corev1.ResourceList{"cpu": resource.MustParse("3")})
	first.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 8080}}
	create(t, client, namespace, first)
	waitForPhase(t, client, namespace, "first", corev1.PodRunning)

	for name, test := range map[string]struct {
		given func(*corev1.Pod)
		want  string
	}{
		"more cpu than available":     {func(p *corev1.Pod) { setRequest(p, "cpu", "2") }, "OutOfcpu"},
		"more gpus than the capacity": {func(p *corev1.Pod) { p.Spec.NodeName = "gpu-0"; setRequest(p, "nvidia.com/gpu", "3") }, "OutOfnvidia.com/gpu"},
		"one pod too many":            {func(p *corev1.Pod) { p.Spec.NodeName = "one-pod" }, "OutOfpods"},
		"a host port that is taken": {func(p *corev1.Pod) {
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 8080}}
		}, "NodePorts"},
		"the label of another node":       {func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "ssd"} }, "NodeAffinity"},
		"exactly the available resources": {func(p *corev1.Pod) { setRequest(p, "cpu", "1") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			pod := newPod(strings.ReplaceAll(name, " ", "-"), "full", nil)
			test.given(pod)
			create(t, client, namespace, pod)
			phase := corev1.PodFailed
			if test.want == "" {
				phase = corev1.PodRunning
			}
			got := waitForPhase(t, client, namespace, pod.Name, phase)
			if got.Status.Reason != test.want {
				t.Errorf("got reason %q (%s), want %q", got.Status.Reason, got.Status.Message, test.want)
			}
		})
	}
}

// testResourcesAreFreed fills a node repeatedly, each time right after it became empty: a kubelet with an outdated
// view of its node would reject a pod.
func testResourcesAreFreed(t *testing.T, _ *cluster.Cluster, client kubernetes.Interface) {
	namespace := newNamespace(t, client, "resources")
	makeNode(t, client, "narrow", "4", "10")
	for i := range 20 {
		pod := newPod(fmt.Sprintf("deleted-%d", i), "narrow", corev1.ResourceList{"cpu": resource.MustParse("4")})
		create(t, client, namespace, pod)
		waitForPhase(t, client, namespace, pod.Name, corev1.PodRunning)
		remove(t, client, namespace, pod.Name)

		pod = newPod(fmt.Sprintf("ended-%d", i), "narrow", corev1.ResourceList{"cpu": resource.MustParse("4")})
		pod.Annotations = map[string]string{annotation.RunFor: "0s"}
		create(t, client, namespace, pod)
		waitForPhase(t, client, namespace, pod.Name, corev1.PodSucceeded)
	}
}

func testForeignNode(t *testing.T, _ *cluster.Cluster, client kubernetes.Interface) {
	namespace := newNamespace(t, client, "foreign")
	create(t, client, namespace, newPod("early", "foreign", nil)) // bound before its node exists
	makeNode(t, client, "foreign", "4", "10")
	create(t, client, namespace, newPod("late", "foreign", nil))
	waitForPhase(t, client, namespace, "early", corev1.PodRunning)
	waitForPhase(t, client, namespace, "late", corev1.PodRunning)
}

func testApply(t *testing.T, c *cluster.Cluster, client kubernetes.Interface) {
	for range 2 { // the second time changes nothing
		if err := c.Apply(t.Context(), "testdata/kustomization", "Deployment"); err != nil {
			t.Fatal(err)
		}
	}
	body, err := client.Discovery().RESTClient().Get().
		AbsPath("/apis/example.com/v1/namespaces/applied/widgets/one").DoRaw(t.Context())
	if err != nil || !strings.Contains(string(body), `"size":3`) {
		t.Errorf("got widget %s, error %v", body, err)
	}
	_, err = client.AppsV1().Deployments("applied").Get(t.Context(), "skipped", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("the deployment to skip: got error %v, want not found", err)
	}
}

// The cluster stops while a client watches, and in much less than the minute that an API server grants clients by
// default.
func TestStopRemovesState(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	c, client := start(t, cluster.Options{})
	watch, err := client.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	if entries := list(t, temporary); len(entries) == 0 {
		t.Fatal("the cluster has its state in another directory")
	}
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	if entries := list(t, temporary); len(entries) > 0 {
		t.Errorf("left behind: %v", entries)
	}
	if _, err := os.Stat(c.Kubeconfig); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the kubeconfig still exists: %v", err)
	}
}

func TestStartErrors(t *testing.T) {
	skipInShort(t)
	for name, test := range map[string]struct {
		given cluster.Options
		want  string
	}{
		"a misspelt resource": {cluster.Options{NodeSpecs: []string{"gpu=1"}}, `"gpu" is not a resource`},
		"too many zones":      {cluster.Options{Zones: 27}, "--zones: 27 is not in 0 to 26"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := cluster.Start(t.Context(), test.given)
			if err == nil {
				t.Fatal("started", c.Stop())
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %q, want %q", err, test.want)
			}
		})
	}
}

func TestPortInUse(t *testing.T) {
	skipInShort(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	binary, err := cluster.Localcluster(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	output := filepath.Join(t.TempDir(), "output")
	process, err := cluster.StartProcess(cluster.ProcessOptions{Path: binary, Args: []string{"--port=" + port}, Output: output})
	if err != nil {
		t.Fatal(err)
	}
	code, _ := process.Wait()
	said, err := os.ReadFile(output)
	if err != nil {
		t.Fatal(err)
	}
	want := "localcluster: port " + port + " is in use: set another one with --port, or 0 for a free one\n"
	if diff := cmp.Diff(want, string(said)); diff != "" || code != 1 {
		t.Errorf("exit code %d, want 1; output (-want +got):\n%s", code, diff)
	}
}
