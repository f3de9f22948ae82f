package upstream

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/component-helpers/storage/ephemeral"
	storagehelpers "k8s.io/component-helpers/storage/volume"
)

// claims looks for volumes that would have to be bound together with the pod, the one thing that
// the volume plugins could do and we do not ask for yet.
type claims struct {
	claims  corelisters.PersistentVolumeClaimLister
	classes storagelisters.StorageClassLister
}

func newClaims(factory informers.SharedInformerFactory) *claims {
	return &claims{
		claims:  factory.Core().V1().PersistentVolumeClaims().Lister(),
		classes: factory.Storage().V1().StorageClasses().Lister(),
	}
}

// delayed returns the name of the first claim of the pod that is bound only once the pod has a
// node; empty if there is none. Claims and classes that do not exist are left to the plugins.
func (c *claims) delayed(pod *v1.Pod) string {
	for i := range pod.Spec.Volumes {
		name := claimName(pod, &pod.Spec.Volumes[i])
		if name == "" {
			continue
		}
		claim, err := c.claims.PersistentVolumeClaims(pod.Namespace).Get(name)
		if err != nil || claim.Spec.VolumeName != "" {
			continue
		}
		if waits, err := storagehelpers.IsDelayBindingMode(claim, c.classes); err == nil && waits {
			return name
		}
	}
	return ""
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
