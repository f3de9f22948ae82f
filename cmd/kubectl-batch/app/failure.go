// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// advised adds to an error of the API server what to do about it.
func advised(err error, namespace string) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err
	}
	details := status.Status().Details
	switch {
	case details == nil:
		return err
	case details.Group == v1alpha1.GroupName && details.Kind == "topologies" && strings.Contains(status.Status().Message, unserved):
		return fmt.Errorf("the CustomResourceDefinition of Topology is not installed; install it: kubectl apply -k config/crd (%w)", err)
	case details.Group == v1alpha1.GroupName && strings.Contains(status.Status().Message, unserved):
		return fmt.Errorf("the CustomResourceDefinitions of PodGroup and Queue are not installed; install them: kubectl apply -k config/crd (%w)", err)
	case apierrors.IsNotFound(err) && namespace != "":
		return fmt.Errorf("%s %q not found in namespace %s; \"%s -A\" lists all namespaces", kind(details.Kind), details.Name, namespace, listing(details))
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%s %q not found; \"%s\" lists all", kind(details.Kind), details.Name, listing(details))
	case apierrors.IsForbidden(err) && (details.Kind == "queues" || details.Kind == "topologies"):
		return fmt.Errorf("%w; %s have no namespace: access requires a ClusterRoleBinding to the role batch-scheduler-view", err, details.Kind)
	case apierrors.IsForbidden(err) && namespace == "":
		return fmt.Errorf("%w; reading all namespaces requires a ClusterRoleBinding to the role view; -n NAMESPACE reads one", err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w; reading requires the role view, submit and cancel require the role edit, in that namespace", err)
	}
	return err
}

// unserved is what the API server says of a path that it does not serve at all.
const unserved = "could not find the requested resource"

// listing returns the command that lists the objects of the resource that an error is about.
func listing(about *metav1.StatusDetails) string {
	if about.Group != v1alpha1.GroupName && about.Kind != "podgroups" || about.Kind == "topologies" {
		return "kubectl get " + about.Kind
	}
	return "kubectl batch get " + about.Kind
}

func kind(resource string) string {
	switch resource {
	case "podgroups":
		return "PodGroup"
	case "queues":
		return "Queue"
	case "topologies":
		return "Topology"
	}
	return strings.TrimSuffix(resource, "s")
}
