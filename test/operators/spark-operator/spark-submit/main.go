// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Command spark-submit stands in for the program of that name, which needs a Java runtime and a Spark distribution. Like
// Spark 4.0 in cluster mode, it creates the driver pod, and objects that this pod owns: the ConfigMaps with the properties
// and with the template of the executors, and the headless service. It sets what an operator and a scheduler read: names,
// labels, annotations, owners, scheduler name, node selector, service account, image and requests of cpu and memory.
// Volumes, environment variables and all other properties are ignored.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	if err := submit(context.Background(), os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func submit(ctx context.Context, args []string) error {
	p, err := parse(args)
	if err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	template, err := os.ReadFile(p["spark.kubernetes.executor.podTemplateFile"])
	if err != nil {
		return err
	}
	id := strings.ReplaceAll(string(uuid.NewUUID()), "-", "")
	prefix := p["spark.app.name"] + "-" + id[:16]
	p["spark.app.id"] = "spark-" + id
	p["spark.kubernetes.executor.podNamePrefix"] = prefix
	p["spark.kubernetes.executor.podTemplateFile"] = "/opt/spark/pod-template/pod-spec-template.yml"

	pod, err := p.driver()
	if err != nil {
		return err
	}
	core, namespace := client.CoreV1(), p["spark.kubernetes.namespace"]
	pod, err = core.Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	owned := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Name: name, Labels: map[string]string{"spark-app-selector": p["spark.app.id"]},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID, Controller: new(true)}},
		}
	}
	for _, files := range []*corev1.ConfigMap{
		{ObjectMeta: owned(prefix + "-driver-podspec-conf-map"), Data: map[string]string{"podspec-configmap-key": string(template)}},
		{ObjectMeta: owned("spark-drv-" + id[16:] + "-conf-map"), Data: map[string]string{"spark.properties": p.text()}},
	} {
		if _, err := core.ConfigMaps(namespace).Create(ctx, files, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	service := &corev1.Service{ObjectMeta: owned(prefix + "-driver-svc"), Spec: corev1.ServiceSpec{
		ClusterIP: corev1.ClusterIPNone, Selector: pod.Labels,
		Ports: []corev1.ServicePort{{Name: "driver-rpc-port", Port: 7078}, {Name: "blockmanager", Port: 7079}, {Name: "spark-ui", Port: 4040}},
	}}
	_, err = core.Services(namespace).Create(ctx, service, metav1.CreateOptions{})
	return err
}

// parse reads the options, each of which has a value. Behind them are the file of the application and its arguments.
func parse(args []string) (properties, error) {
	p := properties{}
	for len(args) > 1 && strings.HasPrefix(args[0], "--") {
		option, value := args[0], args[1]
		args = args[2:]
		switch option {
		case "--conf":
			key, setting, _ := strings.Cut(value, "=")
			p[key] = setting
		case "--name":
			p["spark.app.name"] = value
		case "--class", "--master":
			p["spark."+option[2:]] = value
		case "--deploy-mode":
			if value != "cluster" {
				return nil, fmt.Errorf("--deploy-mode=%s is not supported", value)
			}
		default:
			return nil, fmt.Errorf("the option %s is not supported", option)
		}
	}
	return p, nil
}
