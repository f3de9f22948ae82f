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
		"the claim is bound to a volume that is anywhere": {
			objects: []runtime.Object{bound("data", "disk"), disk("disk", "")},
			pod:     pod("p", claim("data")), want: both(fits),
		},
		"the volume of the claim is gone": {
			objects: []runtime.Object{bound("data", "disk")},
			pod:     pod("p", claim("data")), want: both(`persistentvolume "disk" not found`),
		},
		"the claim is going to be bound without the pod": {
			objects: []runtime.Object{unbound("data", "now"), class("now", storagev1.VolumeBindingImmediate)},
			pod:     pod("p", claim("data")), want: both("pod has unbound immediate PersistentVolumeClaims"),
		},
		"the claim waits for the pod": {
			objects: []runtime.Object{unbound("data", "later"), class("later", storagev1.VolumeBindingWaitForFirstConsumer)},
			pod:     pod("p", claim("data")), want: both(fits),
		},
		"the claim waits for the pod, and its volume can be made in one zone": {
			objects: []runtime.Object{unbound("data", "later"), allowedIn("a", class("later", storagev1.VolumeBindingWaitForFirstConsumer))},
			pod:     pod("p", claim("data")), want: map[string]string{"n1": fits, "n2": "node(s) didn't find available persistent volumes to bind"},
		},
		"the claim waits for the pod, and there is a volume in one zone": {
			objects: []runtime.Object{unbound("data", "local"), local("disk", "b"), unprovisioned(class("local", storagev1.VolumeBindingWaitForFirstConsumer))},
			pod:     pod("p", claim("data")), want: map[string]string{"n1": "node(s) didn't find available persistent volumes to bind", "n2": fits},
		},
		"the claim waits for the pod, and its volume is made on the node that was chosen before": {
			objects: []runtime.Object{selected("n2", unbound("data", "later")), class("later", storagev1.VolumeBindingWaitForFirstConsumer)},
			pod:     pod("p", claim("data")), want: map[string]string{"n1": "node(s) didn't find available persistent volumes to bind", "n2": fits},
		},
		"the claim waits for the pod, and one node has storage for it": {
			objects: []runtime.Object{
				unbound("data", "later"), class("later", storagev1.VolumeBindingWaitForFirstConsumer), counting("driver"), storage("a", "5Gi"), storage("b", "1Mi"),
			},
			pod: pod("p", claim("data")), want: map[string]string{"n1": fits, "n2": "node(s) did not have enough free storage"},
		},
		"the claim of an ephemeral volume waits for the pod": {
			objects: []runtime.Object{unbound("p-scratch", "later"), class("later", storagev1.VolumeBindingWaitForFirstConsumer)},
			pod: pod("p", func(p *v1.Pod) {
				p.Spec.Volumes = []v1.Volume{{Name: "scratch", VolumeSource: v1.VolumeSource{Ephemeral: &v1.EphemeralVolumeSource{}}}}
			}),
			want: both(fits),
		},
		"the claim is for one pod only, and that pod runs": {
			objects: []runtime.Object{exclusively(bound("data", "disk")), disk("disk", "")},
			running: []*v1.Pod{pod("r", on("n2"), claim("data"))},
			pod:     pod("p", claim("data")), want: both("node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"),
		},
		"a disk is in use on a node": {
			running: []*v1.Pod{pod("r", on("n1"), image("pool/image"))},
			pod:     pod("p", image("pool/image")), want: map[string]string{"n1": "node(s) had no available disk", "n2": fits},
		},
		"no more volumes can be attached to a node": {
			objects: []runtime.Object{
				bound("data", "disk"), disk("disk", ""), bound("other", "full"), disk("full", ""), attachable("n1", 1), attachable("n2", 1),
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
				synctest.Wait() // until the informers have handed over all there is
				ssn, _ := g.openWith(t, profile)
				expect(t, tt.want, verdicts(ssn, "p", api.Now))
			})
		})
	}
}

// claim lets a pod use a claim of its namespace.
func claim(name string) change[v1.Pod] {
	return func(p *v1.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: name, VolumeSource: v1.VolumeSource{
			PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: name},
		}})
	}
}

// image lets a pod write to a block device of a storage cluster.
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

// selected says on which node the volume of a claim is to be made.
func selected(node string, claim *v1.PersistentVolumeClaim) *v1.PersistentVolumeClaim {
	claim.Annotations = map[string]string{storagehelpers.AnnSelectedNode: node}
	return claim
}

func exclusively(claim *v1.PersistentVolumeClaim) *v1.PersistentVolumeClaim {
	claim.Spec.AccessModes = []v1.PersistentVolumeAccessMode{v1.ReadWriteOncePod}
	return claim
}

// disk is a volume of a zone, or of all zones when that is empty.
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

// local is a volume of the class local that waits for a claim.
func local(name, zone string) *v1.PersistentVolume {
	volume := disk(name, zone)
	volume.Spec.StorageClassName, volume.Status.Phase = "local", v1.VolumeAvailable
	volume.Spec.AccessModes = []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}
	return volume
}

// unprovisioned makes a class of volumes that people make.
func unprovisioned(class *storagev1.StorageClass) *storagev1.StorageClass {
	class.Provisioner = storagehelpers.NotSupportedProvisioner
	return class
}

// allowedIn has volumes of a class made in one zone only.
func allowedIn(zone string, class *storagev1.StorageClass) *storagev1.StorageClass {
	class.AllowedTopologies = []v1.TopologySelectorTerm{{
		MatchLabelExpressions: []v1.TopologySelectorLabelRequirement{{Key: v1.LabelTopologyZone, Values: []string{zone}}},
	}}
	return class
}

// counting is a driver that says how much it can still store.
func counting(name string) *storagev1.CSIDriver {
	return &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.CSIDriverSpec{StorageCapacity: ptr.To(true)}}
}

// storage is what can still be stored in a zone for the class later.
func storage(zone, capacity string) *storagev1.CSIStorageCapacity {
	return &storagev1.CSIStorageCapacity{
		ObjectMeta:       metav1.ObjectMeta{Namespace: "default", Name: "in-" + zone},
		StorageClassName: "later", Capacity: ptr.To(resource.MustParse(capacity)),
		NodeTopology: &metav1.LabelSelector{MatchLabels: map[string]string{v1.LabelTopologyZone: zone}},
	}
}

func class(name string, mode storagev1.VolumeBindingMode) *storagev1.StorageClass {
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: "driver", VolumeBindingMode: &mode}
}

// attachable says how many volumes a node takes.
func attachable(node string, volumes int32) *storagev1.CSINode {
	return &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
		{Name: "driver", NodeID: node, Allocatable: &storagev1.VolumeNodeResources{Count: &volumes}},
	}}}
}
