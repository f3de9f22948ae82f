// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package nodeorder

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

func prefersNodes(q *scoreState) bool {
	return q.signature.Preferred != nil && q.signature.PreferredWeight > 0
}

// nodeAffinity returns the weight of the preferred node affinity terms that the node matches, as a fraction of the
// weight of all terms.
func nodeAffinity(q *scoreState, n *api.NodeInfo) api.Score {
	return api.ScoreOf(q.signature.Preferred.Score(n.Node), q.signature.PreferredWeight)
}

// softTaints scores 1/(1+taints): 1 for a node without taints of effect PreferNoSchedule that the task does not
// tolerate, 1/2 for a node with one of them, and so on.
func softTaints(comparison bool) func(*scoreState, *api.NodeInfo) api.Score {
	log := klog.Background()
	return func(q *scoreState, n *api.NodeInfo) api.Score {
		if !n.SoftTaints() {
			return api.OneScore
		}
		count := api.Score(0)
		for i := range n.Node.Spec.Taints {
			taint := &n.Node.Spec.Taints[i]
			if taint.Effect == v1.TaintEffectPreferNoSchedule &&
				!corev1helpers.TolerationsTolerateTaint(log, q.signature.Exemplar.Tolerations, taint, comparison) {
				count++
			}
		}
		return api.OneScore / (1 + count)
	}
}

// The image sizes between which the score grows, with kube-scheduler's values: below the first the download costs
// almost nothing, above the second (per container) the score does not grow.
const (
	smallImages   = 23 << 20   // bytes, all images of the pod together
	largeOneImage = 1000 << 20 // bytes
)

// imageLocality returns the size of the pod's images that the node has, scaled between the two limits. Unlike
// kube-scheduler it ignores how many other nodes have the image.
func imageLocality(q *scoreState, n *api.NodeInfo) api.Score {
	var size, containers int64
	for _, list := range [][]v1.Container{q.signature.Exemplar.InitContainers, q.signature.Exemplar.Containers} {
		for i := range list {
			size += imageSize(n.Node, list[i].Image)
			containers++
		}
	}
	if containers == 0 {
		return 0
	}
	return api.ScoreOf(size-smallImages, largeOneImage*containers-smallImages)
}

// imageSize returns the bytes of an image on a node, zero if the node does not have it. A name without a tag stands
// for the tag latest, which is how nodes list it.
func imageSize(node *v1.Node, name string) int64 {
	latest := strings.LastIndex(name, ":") <= strings.LastIndex(name, "/")
	for i := range node.Status.Images {
		for _, has := range node.Status.Images[i].Names {
			if has == name || latest && strings.TrimSuffix(has, ":latest") == name && has != name {
				return node.Status.Images[i].SizeBytes
			}
		}
	}
	return 0
}
