// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/internal/jobfailure"
	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// Object is what is to be deleted, and nothing else that has taken its name since.
type Object struct {
	Name string
	UID  types.UID
}

// Owners are what a gang is made of besides its PodGroup.
type Owners struct {
	Jobs []Object // which own members, or the PodGroup
	Pods []Object // members without owner
}

// OwnersOf returns what must be deleted to delete the PodGroup with its pods. It is an error if an owner of members
// is not a Job, because that owner would create them again.
func OwnersOf(group *v1alpha1.PodGroup, pods []corev1.Pod) (Owners, error) {
	var o Owners
	for i := range pods {
		p := &pods[i]
		switch owner := metav1.GetControllerOf(p); {
		case owner == nil:
			o.Pods = append(o.Pods, Object{p.Name, p.UID})
		case jobfailure.Owns(owner):
			o.Jobs = append(o.Jobs, Object{owner.Name, owner.UID})
		default:
			return Owners{}, fmt.Errorf("pod %s of PodGroup %s belongs to %s %s, which cancel does not delete; delete that object first", p.Name, group.Name, owner.Kind, owner.Name)
		}
	}
	for i := range group.OwnerReferences {
		if owner := &group.OwnerReferences[i]; jobfailure.Owns(owner) {
			o.Jobs = append(o.Jobs, Object{owner.Name, owner.UID})
		}
	}
	slices.SortFunc(o.Jobs, func(a, b Object) int { return strings.Compare(a.Name+string(a.UID), b.Name+string(b.UID)) })
	o.Jobs = slices.Compact(o.Jobs)
	return o, nil
}
