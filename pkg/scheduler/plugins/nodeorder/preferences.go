package nodeorder

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

func prefersNodes(s *api.Signature) bool { return s.Preferred != nil && s.PreferredWeight > 0 }

// nodeAffinity is the weight of the preferred node affinity terms that the node matches, as a
// share of the weight of all.
func nodeAffinity(q *question, n *api.NodeInfo) api.Score {
	return share(q.shape.Preferred.Score(n.Node), q.shape.PreferredWeight)
}

// softTaints scores 1/(1+taints): one for a node without taints of effect PreferNoSchedule that
// the task does not tolerate, a half with one of them, and so on.
func softTaints(comparison bool) func(*question, *api.NodeInfo) api.Score {
	log := klog.Background()
	return func(q *question, n *api.NodeInfo) api.Score {
		if !n.SoftTaints() {
			return api.OneScore
		}
		count := api.Score(0)
		for i := range n.Node.Spec.Taints {
			taint := &n.Node.Spec.Taints[i]
			if taint.Effect == v1.TaintEffectPreferNoSchedule &&
				!corev1helpers.TolerationsTolerateTaint(log, q.shape.Exemplar.Tolerations, taint, comparison) {
				count++
			}
		}
		return api.OneScore / (1 + count)
	}
}

// The sizes between which images matter, as kube-scheduler has them: below the first their
// download costs next to nothing, above the second, per container, more makes no difference.
const (
	smallImages   = 23 << 20   // bytes, all images of the pod together
	largeOneImage = 1000 << 20 // bytes
)

// imageLocality is the size of the pod's images that the node has, scaled between the two
// limits. Unlike kube-scheduler it does not ask how many other nodes have the image too.
func imageLocality(q *question, n *api.NodeInfo) api.Score {
	var size, containers int64
	for _, list := range [][]v1.Container{q.shape.Exemplar.InitContainers, q.shape.Exemplar.Containers} {
		for i := range list {
			size += imageSize(n.Node, list[i].Image)
			containers++
		}
	}
	if containers == 0 {
		return 0
	}
	return share(size-smallImages, largeOneImage*containers-smallImages)
}

// imageSize returns the bytes of an image on a node, zero if the node does not have it. Names
// without tag mean the tag latest, which is how nodes list them.
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
