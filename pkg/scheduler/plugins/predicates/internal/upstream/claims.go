package upstream

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/component-helpers/storage/ephemeral"
)

// claims looks up what pods claim.
type claims struct {
	claims corelisters.PersistentVolumeClaimLister
}

func newClaims(factory informers.SharedInformerFactory) *claims {
	return &claims{factory.Core().V1().PersistentVolumeClaims().Lister()}
}

// unbound returns the names of the pod's claims that exist and are not bound, in the pod's order.
func (c *claims) unbound(pod *v1.Pod) []string {
	var names []string
	for i := range pod.Spec.Volumes {
		name := claimName(pod, &pod.Spec.Volumes[i])
		if name == "" {
			continue
		}
		claim, err := c.claims.PersistentVolumeClaims(pod.Namespace).Get(name)
		if err == nil && claim.Status.Phase != v1.ClaimBound {
			names = append(names, name)
		}
	}
	return names
}

// claimName returns the name of the claim behind a volume, empty for volumes without claim.
func claimName(pod *v1.Pod, volume *v1.Volume) string {
	switch {
	case volume.PersistentVolumeClaim != nil:
		return volume.PersistentVolumeClaim.ClaimName
	case volume.Ephemeral != nil:
		return ephemeral.VolumeClaimName(pod, volume)
	}
	return ""
}
