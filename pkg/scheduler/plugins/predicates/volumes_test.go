// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package predicates

import (
	"testing"
	"testing/synctest"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

func TestVolumes(t *testing.T) {
	both := func(message string) map[string]string { return map[string]string{"n1": message, "n2": message} }
	tests := map[string]struct {
		objects []runtime.Object
		running []*v1.Pod
		pod     *v1.Pod
		want    map[string]string
	}{
		"the claim does not exist": {
			pod: pod("p", claim("data")), want: both(`persistentvolumeclaim "data" not found`),
		},
		"the claim is bound to a volume of one zone": {
			objects: []runtime.Object{bound("data", "disk"), disk("disk", "a")},
			pod:     pod("p", claim("data")), want: map[string]string{"n1": fits, "n2": "node(s) didn't match PersistentVolume's node affinity"},
		},
		"the claim is bound to a volume that all nodes can access": {
			objects: []runtime.Object{bound("data", "disk"), disk("disk", "")},
			pod:     pod("p", claim("data")), want: both(fits),
		},
		"the volume of the claim does not exist": {
			objects: []runtime.Object{bound("data", "disk")},
			pod:     pod("p", claim("data")), want: both(`persistentvolume "disk" not found`),
		},
		"the claim has binding mode Immediate and is unbound": {
			objects: []runtime.Object{unbound("data", "now"), class("now", storagev1.VolumeBindingImmediate)},
			pod:     pod("p", claim("data")), want: both("pod has unbound immediate PersistentVolumeClaims"),
		},
		"the claim waits for its first consumer": {
			objects: []runtime.Object{unbound("data", "later"), class("later", storagev1.VolumeBindingWaitForFirstConsumer)},
			pod:     pod("p", claim("data")), want: both(fits),
		},
		"the volume of the waiting claim can be provisioned in one zone": {
			objects: []runtime.Object{unbound("data", "later"), allowedZone("a", class("later", storagev1.VolumeBindingWaitForFirstConsumer))},
			pod:     pod("p", claim("data")), want: map[string]string{"n1": fits, "n2": "node(s) didn't find available persistent volumes to bind"},
		},
		"a volume for the waiting claim exists in one zone": {
			objects: []runtime.Object{unbound("data", "local"), local("disk", "b"), noProvisioner(class("local", storagev1.VolumeBindingWaitForFirstConsumer))},
			pod:     pod("p", claim("data")), want: map[string]string{"n1": "node(s) didn't find available persistent volumes to bind", "n2": fits},
		},
		"a node is already selected for the waiting claim": {
			objects: []runtime.Object{selected("n2", unbound("data", "later")), class("later", storagev1.VolumeBindingWaitForFirstConsumer)},
			pod:     pod("p", claim("data")), want: map[string]string{"n1": "node(s) didn't find available persistent volumes to bind", "n2": fits},
		},
		"one node has storage capacity for the waiting claim": {
			objects: []runtime.Object{
				unbound("data", "later"), class("later", storagev1.VolumeBindingWaitForFirstConsumer), tracksCapacity("driver"), storageCapacity("a", "5Gi"), storageCapacity("b", "1Mi"),
			},
			pod: pod("p", claim("data")), want: map[string]string{"n1": fits, "n2": "node(s) did not have enough free storage"},
		},
		"the claim of an ephemeral volume waits for its first consumer": {
			objects: []runtime.Object{unbound("p-scratch", "later"), class("later", storagev1.VolumeBindingWaitForFirstConsumer)},
			pod: pod("p", func(p *v1.Pod) {
				p.Spec.Volumes = []v1.Volume{{Name: "scratch", VolumeSource: v1.VolumeSource{Ephemeral: &v1.EphemeralVolumeSource{}}}}
			}),
			want: both(fits),
		},
		"the claim has access mode ReadWriteOncePod and is in use": {
			objects: []runtime.Object{exclusively(bound("data", "disk")), disk("disk", "")},
			running: []*v1.Pod{pod("r", on("n2"), claim("data"))},
			pod:     pod("p", claim("data")), want: both("node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"),
		},
		"an inline volume is in use on a node": {
			running: []*v1.Pod{pod("r", on("n1"), image("pool/image"))},
			pod:     pod("p", image("pool/image")), want: map[string]string{"n1": "node(s) had no available disk", "n2": fits},
		},
		"the attach limit of a node is reached": {
			objects: []runtime.Object{
				bound("data", "disk"), disk("disk", ""), bound("other", "full"), disk("full", ""), attachLimit("n1", 1), attachLimit("n2", 1),
			},
			running: []*v1.Pod{pod("r", on("n1"), claim("other"))},
			pod:     pod("p", claim("data")), want: map[string]string{"n1": "node(s) exceed max volume count", "n2": fits},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				factory := informers.NewSharedInformerFactory(fake.NewClientset(tt.objects...), 0)
				g := given{
					nodes:  []*v1.Node{node("n1", zone("a")), node("n2", zone("b"))},
					pods:   append(tt.running, tt.pod),
					handle: framework.Handle{Informers: factory},
				}
				profile := g.profile(t)
				factory.Start(t.Context().Done())
				synctest.Wait() // until the informers have delivered all objects
				ssn, _ := g.openWith(t, profile)
				expect(t, tt.want, verdicts(ssn, "p", api.Now))
			})
		})
	}
}

// claim adds a persistent volume claim of its namespace to a pod.
func claim(name string) change[v1.Pod] {
	return func(p *v1.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: name, VolumeSource: v1.VolumeSource{
			PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: name},
		}})
	}
}

// image adds a block device of a storage cluster to a pod, writable.
func image(name string) change[v1.Pod] {
	return func(p *v1.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: "image", VolumeSource: v1.VolumeSource{
			RBD: &v1.RBDVolumeSource{CephMonitors: []string{"monitor"}, RBDImage: name},
		}})
	}
}

func unbound(name, class string) *v1.PersistentVolumeClaim {
	return &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: uid("claim-" + name), OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "Pod", Name: "p", UID: uid("p"), Controller: ptr.To(true)},
		}},
		Spec: v1.PersistentVolumeClaimSpec{
			StorageClassName: &class,
			AccessModes:      []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
			Resources:        v1.VolumeResourceRequirements{Requests: v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
}

func bound(name, volume string) *v1.PersistentVolumeClaim {
	claim := unbound(name, "")
	claim.Annotations = map[string]string{storagehelpers.AnnBindCompleted: "yes"}
	claim.Spec.VolumeName, claim.Status.Phase = volume, v1.ClaimBound
	return claim
}

// selected sets the node on which the volume of a claim is provisioned.
func selected(node string, claim *v1.PersistentVolumeClaim) *v1.PersistentVolumeClaim {
	claim.Annotations = map[string]string{storagehelpers.AnnSelectedNode: node}
	return claim
}

func exclusively(claim *v1.PersistentVolumeClaim) *v1.PersistentVolumeClaim {
	claim.Spec.AccessModes = []v1.PersistentVolumeAccessMode{v1.ReadWriteOncePod}
	return claim
}

// disk is a volume of a zone, or of all zones if the zone is empty.
func disk(name, zone string) *v1.PersistentVolume {
	volume := &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1.PersistentVolumeSpec{
			Capacity:               v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")},
			PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: "driver", VolumeHandle: name}},
		},
	}
	if zone != "" {
		volume.Spec.NodeAffinity = &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{
			labelTerm(v1.LabelTopologyZone, v1.NodeSelectorOpIn, zone),
		}}}
	}
	return volume
}

// local is a volume of the class local for a claim that waits for its first consumer.
func local(name, zone string) *v1.PersistentVolume {
	volume := disk(name, zone)
	volume.Spec.StorageClassName, volume.Status.Phase = "local", v1.VolumeAvailable
	volume.Spec.AccessModes = []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}
	return volume
}

// noProvisioner makes a class of volumes without dynamic provisioning.
func noProvisioner(class *storagev1.StorageClass) *storagev1.StorageClass {
	class.Provisioner = storagehelpers.NotSupportedProvisioner
	return class
}

// allowedZone restricts the volumes of a class to one zone.
func allowedZone(zone string, class *storagev1.StorageClass) *storagev1.StorageClass {
	class.AllowedTopologies = []v1.TopologySelectorTerm{{
		MatchLabelExpressions: []v1.TopologySelectorLabelRequirement{{Key: v1.LabelTopologyZone, Values: []string{zone}}},
	}}
	return class
}

// tracksCapacity is a driver that publishes its storage capacity.
func tracksCapacity(name string) *storagev1.CSIDriver {
	return &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.CSIDriverSpec{StorageCapacity: ptr.To(true)}}
}

// storageCapacity is the capacity of a zone for the class later.
func storageCapacity(zone, capacity string) *storagev1.CSIStorageCapacity {
	return &storagev1.CSIStorageCapacity{
		ObjectMeta:       metav1.ObjectMeta{Namespace: "default", Name: "in-" + zone},
		StorageClassName: "later", Capacity: ptr.To(resource.MustParse(capacity)),
		NodeTopology: &metav1.LabelSelector{MatchLabels: map[string]string{v1.LabelTopologyZone: zone}},
	}
}

func class(name string, mode storagev1.VolumeBindingMode) *storagev1.StorageClass {
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: "driver", VolumeBindingMode: &mode}
}

// attachLimit sets the number of volumes that can be attached to a node.
func attachLimit(node string, volumes int32) *storagev1.CSINode {
	return &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
		{Name: "driver", NodeID: node, Allocatable: &storagev1.VolumeNodeResources{Count: &volumes}},
	}}}
}
