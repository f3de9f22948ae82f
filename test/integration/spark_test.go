// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

const (
	sparkDrivers   = "spark-role=driver"
	sparkExecutors = "spark-role=executor"
)

// TestSparkOperator: with the controllers of the Spark operator and this scheduler alone, the driver of a SparkApplication
// starts, then its executors, and the application completes. With a PodGroup (IP1), the driver waits while the nodes have
// less than the application needs, and the executors start one by one. With the kind in grouping, they start together.
//
// There is no Spark here: spark-submit is the stand-in in test/operators/spark-operator, and this test does what the driver
// does, see runSparkDriver.
func TestSparkOperator(t *testing.T) {
	operator := operatorAt("spark-operator", "github.com/kubeflow/spark-operator/v2")
	submitter := operator
	submitter.name, submitter.program = "spark-submit", operator.program+"/spark-submit"
	binary, submit := operator.build(t), submitter.build(t)
	t.Parallel()
	for source, test := range map[string]struct {
		groups func(*harness) otherAPI
		group  string
		apply  func(*harness)
	}{
		"scheduler-plugins": {(*harness).schedulerPlugins, "pi-pg", func(h *harness) {
			h.applyDocumented("spark-operator.md", "sparkapplication.yaml")
		}},
		"volcano": {(*harness).volcano, "spark-pi-pg", func(h *harness) {
			h.applyYAML(strings.Replace(h.documentedObjects("spark-operator.md", "sparkapplication.yaml"), "batchScheduler: batch-scheduler", "batchScheduler: volcano", 1))
		}},
	} {
		t.Run(source, func(t *testing.T) {
			h := newHarness(t, noControllers)
			operator.installSchedulerPlugins(h)
			h.applyFiles("volcano.crd.yaml")
			h.grantSource(source)
			h.start(h.sourcePolicy("own", source))
			h.fillOneOf(3)
			h.startSparkOperator(operator, binary, submit, "--enable-batch-scheduler", "--kube-scheduler-names=batch-scheduler")
			test.apply(h)

			h.eventually(func() error {
				return h.waits(namespace, "pi-driver", "Unschedulable", "spec.minResources requests 4 cpu")
			})
			h.do(node("more", "1cpu"))
			h.eventually(func() error { return h.runTogether(sparkDrivers, 1) })
			h.runSparkDriver()
			running := func(count string) func() error {
				return func() error {
					return test.groups(h).status(namespace, test.group, map[string]string{"phase": "Running", "running": count})
				}
			}
			h.eventually(running("3"))
			h.freeNode()
			h.eventually(running("4"))
			test.groups(h).onlyStatus(namespace, test.group)
			h.endSparkApplication()
		})
	}
	t.Run("grouping", func(t *testing.T) {
		h := newHarness(t, noControllers)
		h.grantGrouping("sparkapplication")
		h.start(h.groupingPolicy("{kinds: [sparkapplication]}"))
		h.fillOneOf(4)
		h.startSparkOperator(operator, binary, submit)
		h.applyDocumented("spark-operator.md", "sparkapplication-grouping.yaml")

		h.eventually(func() error { return h.runTogether(sparkDrivers, 1) })
		h.runSparkDriver()
		h.eventually(func() error { return h.waitTogether(sparkExecutors, 3) })
		h.freeNode()
		h.eventually(func() error { return h.runTogether(sparkExecutors, 3) })
		h.endSparkApplication()
	})
}

// startSparkOperator installs the operator and starts it. It runs bin/spark-submit of $SPARK_HOME, which finds the cluster
// by $KUBECONFIG, as that of Spark does.
func (h *harness) startSparkOperator(o operator, binary, submit string, args ...string) {
	h.t.Helper()
	o.install(h, "config/crd/bases/sparkoperator.k8s.io_sparkapplications.yaml",
		"config/crd/bases/sparkoperator.k8s.io_scheduledsparkapplications.yaml", "config/crd/bases/sparkoperator.k8s.io_sparkconnects.yaml")
	h.must(os.Mkdir(filepath.Join(h.dir, "bin"), 0o755))
	h.must(os.Symlink(submit, filepath.Join(h.dir, "bin", "spark-submit")))
	server, err := url.Parse(h.cluster.RESTConfig().Host)
	h.must(err)
	o.env = []string{
		"SPARK_HOME=" + h.dir, "KUBECONFIG=" + h.cluster.Kubeconfig,
		"KUBERNETES_SERVICE_HOST=" + server.Hostname(), "KUBERNETES_SERVICE_PORT=" + server.Port(),
	}
	o.start(h, binary, append(args, "--kubeconfig="+h.cluster.Kubeconfig, "--health-probe-bind-address=0")...)
}

// endSparkApplication removes the executors and ends the driver with success, as Spark does.
func (h *harness) endSparkApplication() {
	h.t.Helper()
	h.eventually(func() error { return h.sparkState("RUNNING") })
	h.must(h.client.CoreV1().Pods(namespace).DeleteCollection(h.ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: sparkExecutors}))
	h.end(sparkDrivers)
	h.eventually(func() error { return h.sparkState("COMPLETED") })
}

// runSparkDriver creates the executors that the driver of Spark 4.0 creates when it runs: the template from its ConfigMap,
// with names, labels, annotations, scheduler name and requests from its properties. Each has two owners: the application by
// the template, and the driver as its controller. They are fewer than Spark creates at once.
func (h *harness) runSparkDriver() {
	h.t.Helper()
	drivers, err := h.podsWith(sparkDrivers)
	h.must(err)
	driver := drivers[0]
	var properties map[string]string
	template := &corev1.Pod{}
	h.eventually(func() error { // spark-submit creates them after the driver
		files, listErr := h.client.CoreV1().ConfigMaps(namespace).List(h.ctx, metav1.ListOptions{LabelSelector: "spark-app-selector=" + driver.Labels["spark-app-selector"]})
		if listErr != nil {
			return listErr
		}
		if len(files.Items) != 2 {
			return fmt.Errorf("the driver has %d ConfigMaps, want 2", len(files.Items))
		}
		for i := range files.Items {
			if text, found := files.Items[i].Data["spark.properties"]; found {
				properties = keyValues(text)
			}
			if text, found := files.Items[i].Data["podspec-configmap-key"]; found {
				h.must(yaml.Unmarshal([]byte(text), template))
			}
		}
		return nil
	})
	count, err := strconv.Atoi(properties["spark.executor.instances"])
	h.must(err)
	h.each(count, func(i int) error {
		pod := template.DeepCopy()
		pod.Name = fmt.Sprintf("%s-exec-%d", properties["spark.kubernetes.executor.podNamePrefix"], i+1)
		pod.Labels = map[string]string{
			"spark-app-name": properties["spark.app.name"], "spark-app-selector": properties["spark.app.id"],
			"spark-exec-id": strconv.Itoa(i + 1), "spark-exec-resourceprofile-id": "0", "spark-role": "executor", "spark-version": "4.0.0",
		}
		for key, value := range properties {
			if name, found := strings.CutPrefix(key, "spark.kubernetes.executor.label."); found {
				pod.Labels[name] = value
			}
			if name, found := strings.CutPrefix(key, "spark.kubernetes.executor.annotation."); found {
				metav1.SetMetaDataAnnotation(&pod.ObjectMeta, name, value)
			}
		}
		pod.OwnerReferences = append(pod.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: driver.Name, UID: driver.UID, Controller: new(true)})
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
		pod.Spec.SchedulerName = properties["spark.kubernetes.scheduler.name"]
		pod.Spec.Containers[0].Image = properties["spark.kubernetes.executor.container.image"]
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(properties["spark.executor.cores"])}
		_, createErr := h.client.CoreV1().Pods(namespace).Create(h.ctx, pod, metav1.CreateOptions{})
		return createErr
	})
}

// keyValues reads lines key=value.
func keyValues(text string) map[string]string {
	found := map[string]string{}
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		found[key] = value
	}
	return found
}

// sparkState returns an error unless the application pi has a state.
func (h *harness) sparkState(want string) error {
	client, err := dynamic.NewForConfig(h.cluster.RESTConfig())
	if err != nil {
		return err
	}
	object, err := client.Resource(ownerResources["SparkApplication"]).Namespace(namespace).Get(h.ctx, "pi", metav1.GetOptions{})
	if err != nil {
		return err
	}
	state, _, err := unstructured.NestedString(object.Object, "status", "applicationState", "state")
	if state != want {
		err = errors.Join(err, fmt.Errorf("the application is %s, want %s: %v", state, want, object.Object["status"]))
	}
	return err
}
