// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"
)

// properties are properties of Spark.
type properties map[string]string

// text returns the file that the driver reads.
func (p properties) text() string {
	var lines strings.Builder
	for _, key := range slices.Sorted(maps.Keys(p)) {
		fmt.Fprintf(&lines, "%s=%s\n", key, p[key])
	}
	return lines.String()
}

// under returns the properties whose keys begin with a prefix, without it.
func (p properties) under(prefix string) map[string]string {
	found := map[string]string{}
	for key, value := range p {
		if rest, ok := strings.CutPrefix(key, prefix); ok {
			found[rest] = value
		}
	}
	return found
}

// driver returns the driver pod: its template with what the properties set.
func (p properties) driver() (*corev1.Pod, error) {
	text, err := os.ReadFile(p["spark.kubernetes.driver.podTemplateFile"])
	if err != nil {
		return nil, err
	}
	pod := &corev1.Pod{}
	if err := yaml.Unmarshal(text, pod); err != nil {
		return nil, fmt.Errorf("the template of the driver: %w", err)
	}
	at := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool {
		return c.Name == p["spark.kubernetes.driver.podTemplateContainerName"]
	})
	if at < 0 {
		return nil, fmt.Errorf("the template of the driver has no container %s", p["spark.kubernetes.driver.podTemplateContainerName"])
	}
	requests, err := p.driverRequests()
	if err != nil {
		return nil, err
	}
	container := &pod.Spec.Containers[at]
	container.Image = cmp.Or(p["spark.kubernetes.driver.container.image"], p["spark.kubernetes.container.image"])
	container.Args = []string{"driver", "--properties-file", "/opt/spark/conf/spark.properties"}
	container.Resources = corev1.ResourceRequirements{
		Requests: requests, Limits: corev1.ResourceList{corev1.ResourceMemory: requests[corev1.ResourceMemory]},
	}
	pod.Name = cmp.Or(p["spark.kubernetes.driver.pod.name"], p["spark.kubernetes.executor.podNamePrefix"]+"-driver")
	pod.Labels = merged(pod.Labels, p.under("spark.kubernetes.driver.label."), map[string]string{
		"spark-app-name": p["spark.app.name"], "spark-app-selector": p["spark.app.id"], "spark-role": "driver", "spark-version": "4.0.0",
	})
	pod.Annotations = merged(pod.Annotations, p.under("spark.kubernetes.driver.annotation."))
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	pod.Spec.NodeSelector = merged(pod.Spec.NodeSelector, p.under("spark.kubernetes.node.selector."), p.under("spark.kubernetes.driver.node.selector."))
	pod.Spec.SchedulerName = cmp.Or(p["spark.kubernetes.driver.scheduler.name"], p["spark.kubernetes.scheduler.name"], pod.Spec.SchedulerName)
	pod.Spec.ServiceAccountName = cmp.Or(p["spark.kubernetes.authenticate.driver.serviceAccountName"], pod.Spec.ServiceAccountName)
	return pod, nil
}

// driverRequests returns the cores, and the memory with its overhead: a tenth, but at least 384 MiB.
func (p properties) driverRequests() (corev1.ResourceList, error) {
	cpu, err := resource.ParseQuantity(cmp.Or(p["spark.kubernetes.driver.request.cores"], p["spark.driver.cores"], "1"))
	if err != nil {
		return nil, fmt.Errorf("cores of the driver: %w", err)
	}
	memory := cmp.Or(p["spark.driver.memory"], "1g")
	unit := map[byte]int64{'m': 1, 'g': 1024}[memory[len(memory)-1]]
	number, err := strconv.ParseInt(memory[:len(memory)-1], 10, 32)
	if err != nil || unit == 0 {
		return nil, fmt.Errorf("memory of the driver: %q is not supported", memory)
	}
	mebibytes := number*unit + max(number*unit/10, 384)
	return corev1.ResourceList{corev1.ResourceCPU: cpu, corev1.ResourceMemory: *resource.NewQuantity(mebibytes<<20, resource.BinarySI)}, nil
}

func merged(sets ...map[string]string) map[string]string {
	all := map[string]string{}
	for _, set := range sets {
		maps.Copy(all, set)
	}
	return all
}
