// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerframework "k8s.io/kubernetes/pkg/scheduler/framework"
	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/plugins/predicates"
)

// TestVolumeVerdictsEqualKubeScheduler is TestVerdictsEqualKubeScheduler for pods with claims, bound and unbound.
// Placements in between are reserved in both schedulers.
func TestVolumeVerdictsEqualKubeScheduler(t *testing.T) {
	counts := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		s := drawStorage(rt)
		difference := ""
		synctest.Test(t, func(t *testing.T) { difference = s.compareAll(t, counts) })
		if difference != "" {
			rt.Fatal(difference)
		}
	})
	t.Logf("pairs of pod and node: %v", counts)
	if testing.Short() {
		t.Log("coverage of the verdicts is not checked with -short: it makes too few cases")
		return
	}
	for _, verdict := range []string{
		"fits", "node(s) didn't match PersistentVolume's node affinity", "node(s) didn't find available persistent volumes to bind", "node(s) did not have enough free storage", "node(s) exceed max volume count",
		"node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod", "pod has unbound immediate PersistentVolumeClaims",
	} {
		if !t.Failed() && counts[verdict] < 10 {
			t.Errorf("only %d pairs end in %q: the generator does not cover it", counts[verdict], verdict)
		}
	}
}

// storage is a fixture of pods with claims, and the storage objects that kube-scheduler's plugins read.
type storage struct {
	fixture
	objects []runtime.Object
}

const (
	driver                                      = "driver"
	claimsIn                                    = "one"
	localClass, madeClass, zonedClass, nowClass = "local", "made", "zoned", "now"
)

func drawStorage(t *rapid.T) *storage {
	s := &storage{}
	s.namespaces = []*v1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: claimsIn}}}
	s.add(s.namespaces[0])
	for i := range rapid.IntRange(2, 5).Draw(t, "nodes") {
		s.addNode(t, fmt.Sprintf("n%d", i))
	}
	s.addClass(localClass, storagehelpers.NotSupportedProvisioner, storagev1.VolumeBindingWaitForFirstConsumer)
	s.addClass(madeClass, driver, storagev1.VolumeBindingWaitForFirstConsumer)
	s.addClass(zonedClass, driver, storagev1.VolumeBindingWaitForFirstConsumer, "a")
	s.addClass(nowClass, driver, storagev1.VolumeBindingImmediate)
	if rapid.Bool().Draw(t, "counts storage") {
		counts := true
		s.add(&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: driver}, Spec: storagev1.CSIDriverSpec{StorageCapacity: &counts}})
		for _, zone := range []string{"a", "b"} {
			capacity := resource.MustParse(one(t, "capacity", "1Gi", "3Gi", "100Gi"))
			s.add(&storagev1.CSIStorageCapacity{
				ObjectMeta: metav1.ObjectMeta{Namespace: claimsIn, Name: zone}, StorageClassName: madeClass, Capacity: &capacity,
				NodeTopology: &metav1.LabelSelector{MatchLabels: map[string]string{v1.LabelTopologyZone: zone}},
			})
		}
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "free volumes") {
		s.addVolume(t, fmt.Sprintf("free%d", i), one(t, "class", localClass, localClass, madeClass), i+1)
	}
	bound := rapid.IntRange(1, 3).Draw(t, "bound claims")
	for i := range bound {
		s.addBound(t, fmt.Sprintf("bound%d", i))
	}
	pod := func(name string) *v1.Pod {
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: claimsIn, Name: name, UID: types.UID(name)}}
		p.Spec.SchedulerName = schedulerName
		p.Spec.Containers = []v1.Container{{Name: "main", Image: "image"}}
		return p
	}
	aBound := func() string { return fmt.Sprintf("bound%d", rapid.IntRange(0, bound-1).Draw(t, "which")) }
	for i := range rapid.IntRange(0, 3).Draw(t, "running pods") {
		p := claiming(pod(fmt.Sprintf("r%d", i)), aBound())
		p.Spec.NodeName, p.Status.Phase = rapid.SampledFrom(s.nodes).Draw(t, "node").Name, v1.PodRunning
		s.running = append(s.running, p)
	}
	for i := range rapid.IntRange(2, 4).Draw(t, "waiting pods") {
		p := pod(fmt.Sprintf("w%d", i))
		for k := range rapid.IntRange(1, 2).Draw(t, "claims") {
			name := fmt.Sprintf("w%d-%d", i, k)
			switch {
			case seldom(t, "does not exist"):
			case rapid.Bool().Draw(t, "is bound"):
				name = aBound()
			default:
				s.addUnbound(t, name)
			}
			claiming(p, name)
		}
		s.waiting = append(s.waiting, p)
	}
	for _, p := range slices.Concat(s.running, s.waiting) {
		s.add(p)
	}
	return s
}

func (s *storage) add(object metav1.Object) {
	object.SetResourceVersion("1")
	s.objects = append(s.objects, object.(runtime.Object))
}

func (s *storage) addNode(t *rapid.T, name string) {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelHostname: name}}}
	if often(t, "has zone") {
		n.Labels[v1.LabelTopologyZone] = one(t, "zone", "a", "b")
	}
	n.Status.Allocatable = v1.ResourceList{v1.ResourcePods: resource.MustParse("110")}
	s.nodes = append(s.nodes, n)
	s.add(n)
	if often(t, "limits volumes") {
		limit := one[int32](t, "volumes", 1, 2, 30)
		s.add(&storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
			{Name: driver, NodeID: name, Allocatable: &storagev1.VolumeNodeResources{Count: &limit}},
		}}})
	}
}

func (s *storage) addClass(name, provisioner string, mode storagev1.VolumeBindingMode, zones ...string) {
	c := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner, VolumeBindingMode: &mode}
	if len(zones) > 0 {
		c.AllowedTopologies = []v1.TopologySelectorTerm{{
			MatchLabelExpressions: []v1.TopologySelectorLabelRequirement{{Key: v1.LabelTopologyZone, Values: zones}},
		}}
	}
	s.add(c)
}

// addVolume adds a volume. Free volumes have distinct sizes, because the choice between equal sizes is random.
func (s *storage) addVolume(t *rapid.T, name, class string, gibibytes int) *v1.PersistentVolume {
	v := &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1.PersistentVolumeSpec{
			StorageClassName:       class,
			AccessModes:            []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
			Capacity:               v1.ResourceList{v1.ResourceStorage: *resource.NewQuantity(int64(gibibytes)<<30, resource.BinarySI)},
			PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: name}},
		},
		Status: v1.PersistentVolumeStatus{Phase: v1.VolumeAvailable},
	}
	if often(t, "is somewhere") {
		label, value := v1.LabelTopologyZone, one(t, "zone", "a", "b")
		if rapid.Bool().Draw(t, "is on a node") {
			label, value = v1.LabelHostname, rapid.SampledFrom(s.nodes).Draw(t, "node").Name
		}
		v.Spec.NodeAffinity = &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
			MatchExpressions: []v1.NodeSelectorRequirement{{Key: label, Operator: v1.NodeSelectorOpIn, Values: []string{value}}},
		}}}}
	}
	s.add(v)
	return v
}

func (s *storage) addUnbound(t *rapid.T, name string) *v1.PersistentVolumeClaim {
	class := one(t, "class", localClass, localClass, madeClass, madeClass, zonedClass, nowClass)
	c := newClaim(t, name, class)
	if seldom(t, "has a node") {
		c.Annotations = map[string]string{storagehelpers.AnnSelectedNode: rapid.SampledFrom(s.nodes).Draw(t, "selected").Name}
	}
	s.add(c)
	return c
}

func (s *storage) addBound(t *rapid.T, name string) {
	c := newClaim(t, name, nowClass)
	c.Annotations = map[string]string{storagehelpers.AnnBindCompleted: "yes"}
	c.Spec.VolumeName, c.Status.Phase = "of-"+name, v1.ClaimBound
	if rapid.Bool().Draw(t, "for one pod only") {
		c.Spec.AccessModes = []v1.PersistentVolumeAccessMode{v1.ReadWriteOncePod}
	}
	s.add(c)
	if seldom(t, "volume is gone") {
		return
	}
	v := s.addVolume(t, c.Spec.VolumeName, nowClass, 1)
	v.Spec.ClaimRef = &v1.ObjectReference{Namespace: claimsIn, Name: name, UID: c.UID}
	v.Status.Phase = v1.VolumeBound
}

func newClaim(t *rapid.T, name, class string) *v1.PersistentVolumeClaim {
	return &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: claimsIn, Name: name, UID: types.UID("claim-" + name)},
		Spec: v1.PersistentVolumeClaimSpec{
			StorageClassName: &class,
			AccessModes:      []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
			Resources:        v1.VolumeResourceRequirements{Requests: v1.ResourceList{v1.ResourceStorage: resource.MustParse(one(t, "size", "1Gi", "2Gi", "3Gi"))}},
		},
		Status: v1.PersistentVolumeClaimStatus{Phase: v1.ClaimPending},
	}
}

func claiming(p *v1.Pod, name string) *v1.Pod {
	p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: fmt.Sprint("v", len(p.Spec.Volumes)), VolumeSource: v1.VolumeSource{
		PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: name},
	}})
	return p
}

// compareAll compares both schedulers for all pods and nodes, places pods, compares again, undoes the placements, and
// compares again. It returns the first difference, empty if there is none.
func (s *storage) compareAll(t *testing.T, counts map[string]int) string {
	ctx, cancel := context.WithCancel(t.Context())
	defer func() {
		cancel()
		time.Sleep(2 * time.Second) // until kube-scheduler has sent its metrics for the last time
	}()
	client := fake.NewClientset(s.objects...)
	factory := informers.NewSharedInformerFactory(client, 0)
	registry := framework.NewRegistry()
	if err := registry.AddPlugin(predicates.Name, predicates.Spec()); err != nil {
		t.Fatal(err)
	}
	m := newModelOf(t, &s.fixture, registry, conf.Plugin{Name: predicates.Name}, framework.Handle{Informers: factory, Kube: client})
	theirs := newPeerOf(ctx, t, client, factory)
	factory.Start(ctx.Done())
	synctest.Wait() // until the informers have delivered all objects
	defer m.ssn.Close()

	if difference := s.compare(t, m, theirs, counts); difference != "" {
		return difference
	}
	waited := slices.Clone(s.waiting)
	var undo []func()
	for i, pod := range waited {
		if !m.placeSomewhere(&s.fixture, i) {
			continue
		}
		undo = append(undo, theirs.reserve(t, pod, s.waiting[i].Spec.NodeName))
		if difference := s.compare(t, m, theirs, counts); difference != "" {
			return "after a placement, " + difference
		}
	}
	m.stmt.Discard()
	for _, f := range slices.Backward(undo) {
		f()
	}
	s.waiting = waited
	if difference := s.compare(t, m, theirs, counts); difference != "" {
		return "after all was undone, " + difference
	}
	return ""
}

func (s *storage) compare(t *testing.T, m *openSession, p *peer, counts map[string]int) string {
	p.show(t, &s.fixture, s.podsOnNodes(api.Now))
	for _, pod := range s.waiting {
		if pod.Spec.NodeName != "" {
			continue
		}
		for _, node := range s.nodes {
			_, ours := m.verdict(m.cluster.Tasks()[api.TaskID(pod.UID)], m.cluster.Node(node.Name), api.Now)
			_, status := p.filter(t, pod, node.Name)
			if ours == "" {
				counts["fits"]++
			} else {
				counts[ours]++
			}
			if (ours == "") != status.IsSuccess() {
				text := explain(&s.fixture, pod, node, api.Now, ours, status.Message())
				for _, o := range s.objects {
					text += "--- object\n" + asYAML(o)
				}
				return text
			}
		}
	}
	return ""
}

// filter runs kube-scheduler's filters for one node. An error is a rejection.
func (p *peer) filter(t *testing.T, pod *v1.Pod, node string) (fwk.CycleState, *fwk.Status) {
	t.Helper()
	state := schedulerframework.NewCycleState()
	n, err := p.snapshot.NodeInfos().Get(node)
	if err != nil {
		t.Fatal(err)
	}
	_, status, _ := p.framework.RunPreFilterPlugins(context.Background(), state, pod)
	if status.IsSuccess() {
		status = p.framework.RunFilterPlugins(context.Background(), state, pod, n)
	}
	return state, status
}

// reserve runs kube-scheduler's Reserve for the pod on a node and returns the function that reverts it.
func (p *peer) reserve(t *testing.T, pod *v1.Pod, node string) (undo func()) {
	t.Helper()
	ctx := context.Background()
	state, status := p.filter(t, pod, node)
	if status.IsSuccess() {
		status = p.framework.RunReservePluginsReserve(ctx, state, pod, node)
	}
	if !status.IsSuccess() {
		t.Fatalf("kube-scheduler cannot reserve a node that passed its filters: %v", status.AsError())
	}
	return func() { p.framework.RunReservePluginsUnreserve(ctx, state, pod, node) }
}
