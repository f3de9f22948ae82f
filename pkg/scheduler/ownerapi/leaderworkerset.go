// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package ownerapi

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// Labels of the pods of a LeaderWorkerSet.
const (
	lwsName        = "leaderworkerset.sigs.k8s.io/name"
	lwsGroup       = "leaderworkerset.sigs.k8s.io/group-index"
	lwsRevision    = "leaderworkerset.sigs.k8s.io/template-revision-hash"
	lwsWorkerIndex = "leaderworkerset.sigs.k8s.io/worker-index"
)

// leaderWorkerSetSpec are the fields of a LeaderWorkerSet that decide about gangs.
type leaderWorkerSetSpec struct {
	Template struct {
		Size *int32 `json:"size"`
	} `json:"leaderWorkerTemplate"`
	StartupPolicy string `json:"startupPolicy"`
}

// leaderWorkerSet makes a gang of each replica, which is a leader and its workers. A new revision of the template makes
// gangs of its own. With the startup policy LeaderReady the workers are created when the leader is ready: the leader starts
// alone, and the workers are a gang.
func leaderWorkerSet() *API {
	return &API{
		Name:      "leaderworkerset",
		Kind:      "LeaderWorkerSet",
		Resources: []schema.GroupVersionResource{resource("leaderworkerset.x-k8s.io", "v1", "leaderworkersets")},
		needed:    listed(api.KindLeaderWorkerSet),
		ownerOf: func(pod *v1.Pod, controller *metav1.OwnerReference) (string, types.UID) {
			if !isKind(controller, "apps", "StatefulSet") {
				return "", ""
			}
			return pod.Labels[lwsName], ""
		},
		gangs: func(u *unstructured.Unstructured) ([]api.OwnerGang, error) {
			spec, err := decode[leaderWorkerSetSpec](u)
			if err != nil {
				return nil, err
			}
			size := atLeastZero(spec.Template.Size, 1)
			gang := api.OwnerGang{KeyLabels: []string{lwsGroup, lwsRevision}, MinMember: size}
			if spec.StartupPolicy != "LeaderReady" {
				return []api.OwnerGang{gang}, nil
			}
			leader, workers := gang, gang
			leader.Stage, leader.Label, leader.Values, leader.MinMember = "leader", lwsWorkerIndex, []string{"0"}, 1
			workers.Stage, workers.MinMember = "workers", size-1
			return []api.OwnerGang{leader, workers}, nil
		},
	}
}
