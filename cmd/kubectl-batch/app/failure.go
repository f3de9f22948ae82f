package app

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

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
	case details.Group == v1alpha1.GroupName && strings.Contains(status.Status().Message, unserved):
		return fmt.Errorf("this cluster does not know PodGroups and Queues: install them with kubectl apply -k config/crd (%w)", err)
	case apierrors.IsNotFound(err) && namespace != "":
		return fmt.Errorf("there is no %s %q in namespace %s; it may be in another: %s -A lists all", kind(details.Kind), details.Name, namespace, listing(details.Kind))
	case apierrors.IsNotFound(err):
		return fmt.Errorf("there is no %s %q; %s lists all", kind(details.Kind), details.Name, listing(details.Kind))
	case apierrors.IsForbidden(err) && details.Kind == "queues":
		return fmt.Errorf("%w; queues have no namespace: ask for the role batch-scheduler-view by a ClusterRoleBinding", err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w; ask for the role view to read and edit to submit and cancel, in that namespace", err)
	}
	return err
}

// unserved is what the API server says of a path that it does not serve at all.
const unserved = "could not find the requested resource"

// listing is the command that lists a resource.
func listing(resource string) string {
	if resource == "pods" {
		return "kubectl get pods"
	}
	return "kubectl batch get " + kind(resource) + "s"
}

func kind(resource string) string {
	switch resource {
	case "podgroups":
		return "group"
	case "queues":
		return "queue"
	}
	return strings.TrimSuffix(resource, "s")
}
