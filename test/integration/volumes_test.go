// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"
)

// TestVolumes: claims that wait for their first consumer go where their pods go, all of a gang or none.
func TestVolumes(t *testing.T) {
	host := corev1.LabelHostname
	zone := corev1.LabelTopologyZone
	var healthy, awake atomic.Bool
	play(t, map[string]scenario{
		"A19: a claim whose class has volumes in one zone brings its pod there": {
			given: rows(
				node("n1", "8cpu", inZone("zone-a")), node("n2", "4cpu", inZone("zone-b")),
				storageClass("zoned", driver, "zone-b"), claims("zoned", "a-0", "a-1"), provisioner(nil),
				gang("a", 2, pods(2, "1cpu", claiming("a")))),
			step: step{want: `a: Running Scheduled; 2 running (zone-b 2)`, by: zone},
		},
		"A19: a claim that is bound in another zone is a reason": {
			given: rows(
				node("n1", "1cpu", inZone("zone-a")), node("n2", "4cpu", inZone("zone-b")),
				storageClass("zoned", driver), claims("zoned", "a-0"), disk("disk", "zoned", zone, "zone-a"), bound("a-0", "disk"),
				gang("a", 1, pods(1, "2cpu", claiming("a")))),
			step: step{
				want:   `a: Pending NotEnoughResources; 1 waiting Unschedulable`,
				prints: map[string]string{"a": "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match PersistentVolume's node affinity"},
			},
			then: []step{{
				do:   rows(node("n3", "4cpu", inZone("zone-a"))),
				want: `a: Running Scheduled; 1 running (zone-a 1)`, by: zone,
			}},
		},
		"A19: a gang shares out the local volumes of two nodes": {
			given: rows(
				nodes("n", 3, "8cpu"), storageClass("local", storagehelpers.NotSupportedProvisioner), claims("local", "a-0", "a-1", "a-2"),
				disk("v1", "local", host, "n1"), disk("v2", "local", host, "n2"), disk("v3", "local", host, "n2"), provisioner(nil),
				gang("a", 3, pods(3, "1cpu", claiming("a")))),
			step: step{want: `a: Running Scheduled; 3 running (n1 1, n2 2)`, by: host},
		},
		"a gang with one claim more than there are local volumes takes none": {
			given: rows(
				nodes("n", 2, "8cpu"), storageClass("local", storagehelpers.NotSupportedProvisioner), claims("local", "a-0", "a-1", "b-0"),
				disk("v1", "local", host, "n1"), provisioner(nil),
				gang("a", 2, pods(2, "1cpu", claiming("a")))),
			step: step{
				want:   `a: Pending NotEnoughResources; 2 waiting Unschedulable`,
				prints: map[string]string{"a": "node(s) didn't find available persistent volumes to bind"},
			},
			then: []step{{
				do: rows(gang("b", 1, pods(1, "1cpu", claiming("b")))),
				want: `
					a: Pending Unschedulable; 2 waiting Unschedulable
					b: Running Scheduled; 1 running`,
			}},
		},
		"A19: if the volume of one pod cannot be made, no pod of its gang is bound": {
			given: rows(
				nodes("n", 3, "8cpu", inZone("zone-a")), storageClass("zoned", driver), claims("zoned", "a-0", "a-1", "a-2"),
				provisioner(func(claim string) answer {
					if claim == "a-1" && !healthy.Load() {
						return fails
					}
					return makes
				}),
				gang("a", 3, pods(3, "1cpu", claiming("a")))),
			step: step{
				want:   `a: Pending ClaimsNotReady; 3 waiting ClaimsNotReady`,
				prints: map[string]string{"a": "claim a-1 of pod a-1 on node n"},
			},
			then: []step{{
				do:   rows(func(*harness) { healthy.Store(true) }),
				want: `a: Running Scheduled; 3 running`,
			}},
		},
		"while volumes are made it says so": {
			given: rows(
				nodes("n", 2, "8cpu", inZone("zone-a")), storageClass("zoned", driver), claims("zoned", "a-0", "a-1"),
				provisioner(func(string) answer {
					if awake.Load() {
						return makes
					}
					return sleeps
				}),
				gang("a", 2, pods(2, "1cpu", claiming("a")))),
			step: step{
				want:   `a: Pending ClaimsNotReady; 2 waiting`,
				prints: map[string]string{"a": "all required pods have nodes; waiting for their claims to be bound"},
			},
			then: []step{{
				do:   rows(func(*harness) { awake.Store(true) }),
				want: `a: Running Scheduled; 2 running`,
			}},
		},
		"a gang shares a claim over several nodes": {
			given: rows(
				nodes("n", 2, "1cpu", inZone("zone-a")), storageClass("zoned", driver), claims("zoned", "shared"), provisioner(nil),
				gang("a", 2, pods(2, "1cpu", sharing("shared")))),
			step: step{want: `a: Running Scheduled; 2 running (n1 1, n2 1)`, by: host},
		},
		"a node takes as many volumes as its driver says": {
			given: rows(
				node("n1", "8cpu"), node("n2", "8cpu"),
				storageClass("zoned", driver), claims("zoned", "a-0", "a-1", "a-2", "b-0"), provisioner(nil),
				csiNode("n1", 2), csiNode("n2", 1),
				gang("a", 3, pods(3, "1cpu", claiming("a")))),
			step: step{want: `a: Running Scheduled; 3 running (n1 2, n2 1)`, by: host},
			then: []step{{
				do: rows(gang("b", 1, pods(1, "1cpu", claiming("b")))),
				want: `
					a: Running Scheduled; 3 running
					b: Pending Unschedulable; 1 waiting Unschedulable`,
				prints: map[string]string{"b": "2 node(s) exceed max volume count"},
			}},
		},
	})
}

// driver makes volumes, see provisioner.
const driver = "test.driver"

// storageClass has claims wait for their first consumer; zones are where volumes can be made, none means all.
func storageClass(name, provisioner string, zones ...string) row {
	return func(h *harness) {
		mode := storagev1.VolumeBindingWaitForFirstConsumer
		c := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner, VolumeBindingMode: &mode}
		if len(zones) > 0 {
			c.AllowedTopologies = []corev1.TopologySelectorTerm{{
				MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: corev1.LabelTopologyZone, Values: zones}},
			}}
		}
		_, err := h.client.StorageV1().StorageClasses().Create(h.ctx, c, metav1.CreateOptions{})
		h.must(err)
	}
}

// claims are claims of a class for one gibibyte each.
func claims(class string, names ...string) row {
	return func(h *harness) {
		for _, name := range names {
			c := &corev1.PersistentVolumeClaim{
				ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec: corev1.PersistentVolumeClaimSpec{
					StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources: corev1.VolumeResourceRequirements{Requests: gibibyte()},
				},
			}
			_, err := h.client.CoreV1().PersistentVolumeClaims(namespace).Create(h.ctx, c, metav1.CreateOptions{})
			h.must(err)
		}
	}
}

func gibibyte() corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
}

// claiming gives each pod of a gang the claim that has the name of the pod.
func claiming(gang string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: gang + "-" + p.Name},
		}})
	}
}

// sharing gives all pods the same claim.
func sharing(claim string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		claiming("")(p)
		p.Spec.Volumes[len(p.Spec.Volumes)-1].PersistentVolumeClaim.ClaimName = claim
	}
}

// disk is a volume that exists on the nodes with a label.
func disk(name, class, label, value string) row {
	return func(h *harness) { h.must(h.makeVolume(name, class, label, value, nil)) }
}

// makeVolume makes a volume, for anybody or for one claim.
func (h *harness) makeVolume(name, class, label, value string, c *corev1.PersistentVolumeClaim) error {
	v := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName: class, Capacity: gibibyte(), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: name}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: label, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}},
			}}}},
		},
	}
	if c != nil {
		v.Spec.ClaimRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: c.Namespace, Name: c.Name, UID: c.UID}
	}
	created, err := h.client.CoreV1().PersistentVolumes().Create(h.ctx, v, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	created.Status.Phase = corev1.VolumeAvailable
	_, err = h.client.CoreV1().PersistentVolumes().UpdateStatus(h.ctx, created, metav1.UpdateOptions{})
	return err
}

// bound binds a claim to a volume.
func bound(claim, volume string) row {
	return func(h *harness) {
		c, err := h.client.CoreV1().PersistentVolumeClaims(namespace).Get(h.ctx, claim, metav1.GetOptions{})
		h.must(err)
		h.must(h.bindClaim(c, volume))
	}
}

func (h *harness) bindClaim(c *corev1.PersistentVolumeClaim, volume string) error {
	client := h.client.CoreV1().PersistentVolumeClaims(namespace)
	c.Spec.VolumeName = volume
	metav1.SetMetaDataAnnotation(&c.ObjectMeta, storagehelpers.AnnBindCompleted, "yes")
	c, err := client.Update(h.ctx, c, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	c.Status.Phase = corev1.ClaimBound
	_, err = client.UpdateStatus(h.ctx, c, metav1.UpdateOptions{})
	return err
}

// answer is what a provisioner does about a claim that has a node.
type answer int

const (
	makes  answer = iota // a volume where the node is
	fails                // and says so
	sleeps               // and says nothing
)

// provisioner stands for a CSI driver and the volume controller until the test ends: it answers claims that
// have a node, by default with a volume, and binds claims to the volumes that are made or chosen for them.
func provisioner(does func(claim string) answer) row {
	if does == nil {
		does = func(string) answer { return makes }
	}
	return func(h *harness) {
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			tick := time.NewTicker(50 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-h.ctx.Done():
					return
				case <-tick.C:
				}
				if err := h.provision(does); err != nil && !apierrors.IsConflict(err) && h.ctx.Err() == nil {
					h.t.Errorf("provisioning: %v", err)
					return
				}
			}
		}()
		h.t.Cleanup(func() { <-stopped })
	}
}

func (h *harness) provision(does func(claim string) answer) error {
	claims, err := h.client.CoreV1().PersistentVolumeClaims(namespace).List(h.ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	volumes, err := h.client.CoreV1().PersistentVolumes().List(h.ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range claims.Items {
		c := &claims.Items[i]
		node := c.Annotations[storagehelpers.AnnSelectedNode]
		chosen := slices.IndexFunc(volumes.Items, func(v corev1.PersistentVolume) bool {
			return v.Spec.ClaimRef != nil && v.Spec.ClaimRef.UID == c.UID
		})
		switch {
		case c.Spec.VolumeName != "":
		case chosen >= 0:
			err = h.bindClaim(c, volumes.Items[chosen].Name)
		case node == "", does(c.Name) == sleeps:
		case does(c.Name) == fails:
			delete(c.Annotations, storagehelpers.AnnSelectedNode)
			_, err = h.client.CoreV1().PersistentVolumeClaims(namespace).Update(h.ctx, c, metav1.UpdateOptions{})
		default:
			err = h.provisionFor(c, node)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (h *harness) provisionFor(c *corev1.PersistentVolumeClaim, node string) error {
	n, err := h.client.CoreV1().Nodes().Get(h.ctx, node, metav1.GetOptions{})
	if err != nil {
		return err
	}
	label := corev1.LabelTopologyZone
	if n.Labels[label] == "" {
		label = corev1.LabelHostname
	}
	name := "for-" + c.Name
	if err := h.makeVolume(name, *c.Spec.StorageClassName, label, n.Labels[label], c); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return h.bindClaim(c, name)
}

// csiNode says how many volumes of the driver a node takes.
func csiNode(name string, volumes int32) row {
	return func(h *harness) {
		n := &storagev1.CSINode{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
				{Name: driver, NodeID: name, Allocatable: &storagev1.VolumeNodeResources{Count: &volumes}},
			}},
		}
		_, err := h.client.StorageV1().CSINodes().Create(h.ctx, n, metav1.CreateOptions{})
		h.must(err)
	}
}
