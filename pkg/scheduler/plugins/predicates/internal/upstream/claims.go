// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"fmt"
	"sync"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/component-helpers/storage/ephemeral"
	storagehelpers "k8s.io/component-helpers/storage/volume"
)

// claims looks up the volume claims of pods and tracks which of them reservations are about to bind.
//
// If several pods share a claim whose volume is not provisioned yet, kube-scheduler lets the first pod select the
// node for it and delays the others until it is bound. Members of a gang cannot wait for each other. Therefore the
// other members are placed as if the claim did not restrict nodes. After the claim is bound, Commit checks that each
// member is on a node that can access the volume; if one is not, the gang is scheduled again, and the location of the
// volume is known by then.
type claims struct {
	claims  corelisters.PersistentVolumeClaimLister
	volumes corelisters.PersistentVolumeLister
	classes storagelisters.StorageClassLister

	mu      sync.Mutex
	holders map[string]*reservation // by namespace/name of claims that the reservation has provisioned
}

func newClaims(factory informers.SharedInformerFactory) *claims {
	return &claims{
		claims:  factory.Core().V1().PersistentVolumeClaims().Lister(),
		volumes: factory.Core().V1().PersistentVolumes().Lister(),
		classes: factory.Storage().V1().StorageClasses().Lister(),
		holders: map[string]*reservation{},
	}
}

// hold records the claims of a pod for which the reservation causes provisioning. Claims that bind to an existing
// volume are not recorded: the plugin knows where they can be used.
func (c *claims) hold(pod *v1.Pod, r *reservation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range c.unbound(pod) {
		claim, err := c.claims.PersistentVolumeClaims(pod.Namespace).Get(name)
		if err != nil {
			continue
		}
		class, err := c.classes.Get(storagehelpers.GetPersistentVolumeClaimClass(claim))
		if err == nil && class.Provisioner != storagehelpers.NotSupportedProvisioner {
			c.holders[pod.Namespace+"/"+name] = r
		}
	}
}

// release reverts hold.
func (c *claims) release(r *reservation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, holder := range c.holders {
		if holder == r {
			delete(c.holders, key)
		}
	}
}

// withoutHeld returns the pod without the volumes whose claims reservations hold, and the names of those claims.
func (c *claims) withoutHeld(pod *v1.Pod) (rest *v1.Pod, shared []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.holders) == 0 {
		return pod, nil
	}
	var volumes []v1.Volume
	for i := range pod.Spec.Volumes {
		name := claimName(pod, &pod.Spec.Volumes[i])
		if name != "" && c.holders[pod.Namespace+"/"+name] != nil {
			shared = append(shared, name)
		} else {
			volumes = append(volumes, pod.Spec.Volumes[i])
		}
	}
	if len(shared) == 0 {
		return pod, nil
	}
	other := *pod
	other.Spec.Volumes = volumes
	return &other, shared
}

// boundFor reports whether shared claims are bound. It fails if no reservation binds them any more, or if one is
// bound to a volume that the node cannot access.
func (c *claims) boundFor(pod *v1.Pod, node *v1.Node, shared []string) (bool, error) {
	for _, name := range shared {
		held := c.held(pod.Namespace + "/" + name) // read before the claim: release follows the binding
		claim, err := c.claims.PersistentVolumeClaims(pod.Namespace).Get(name)
		if err != nil {
			return false, err
		}
		if claim.Spec.VolumeName == "" || !metav1.HasAnnotation(claim.ObjectMeta, storagehelpers.AnnBindCompleted) {
			if !held {
				return false, fmt.Errorf("claim %s is not going to be bound for the pod that shares it", name)
			}
			return false, nil
		}
		volume, err := c.volumes.Get(claim.Spec.VolumeName)
		if err != nil {
			return false, err
		}
		if err := storagehelpers.CheckNodeAffinity(volume, node.Labels); err != nil {
			return false, fmt.Errorf("shared claim %s is bound to volume %s, which the node cannot use: %w", name, volume.Name, err)
		}
	}
	return true, nil
}

func (c *claims) held(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.holders[key] != nil
}

// unbound returns the names of the pod's existing claims that are not bound, in the pod's order.
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

// claimName returns the name of the claim of a volume, empty for volumes without a claim.
func claimName(pod *v1.Pod, volume *v1.Volume) string {
	switch {
	case volume.PersistentVolumeClaim != nil:
		return volume.PersistentVolumeClaim.ClaimName
	case volume.Ephemeral != nil:
		return ephemeral.VolumeClaimName(pod, volume)
	}
	return ""
}
