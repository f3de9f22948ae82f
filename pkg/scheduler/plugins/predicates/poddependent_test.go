// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package predicates

import (
	"testing"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

func TestPodDependentFilters(t *testing.T) {
	const (
		taken      = "node(s) didn't have free ports for the requested pod ports"
		needs      = "node(s) didn't match pod affinity rules"
		avoided    = "node(s) didn't match pod anti-affinity rules"
		unwelcome  = "node(s) didn't satisfy existing pods anti-affinity rules"
		lopsided   = "node(s) didn't match pod topology spread constraints"
		noDomain   = "node(s) didn't match pod topology spread constraints (missing required label)"
		anotherApp = "b"
	)
	two := []*v1.Node{node("n1", zone("a")), node("n2", zone("b"))}
	zones := []*v1.Node{node("a1", zone("a")), node("a2", zone("a")), node("b1", zone("b")), node("c1")}
	tests := map[string]struct {
		given given
		when  api.When
		want  map[string]string
	}{
		"a host port in use": {
			given: given{nodes: two, pods: []*v1.Pod{pod("p", port(80, "", "")), pod("r", on("n1"), port(80, v1.ProtocolTCP, "10.0.0.1"))}},
			want:  map[string]string{"n1": taken, "n2": fits},
		},
		"the same port with another address or protocol": {
			given: given{nodes: two, pods: []*v1.Pod{
				pod("p", port(80, v1.ProtocolTCP, "10.0.0.2")),
				pod("r", on("n1"), port(80, v1.ProtocolTCP, "10.0.0.1")), pod("s", on("n1"), port(80, v1.ProtocolUDP, "")),
			}},
			want: map[string]string{"n1": fits, "n2": fits},
		},
		"a port in use by a terminating pod": {
			given: given{nodes: two, pods: []*v1.Pod{pod("p", port(80, "", "")), pod("r", on("n1"), port(80, "", ""), deleted)}},
			want:  map[string]string{"n1": taken, "n2": fits},
		},
		"the port of a terminating pod in the future": {
			given: given{nodes: two, pods: []*v1.Pod{pod("p", port(80, "", "")), pod("r", on("n1"), port(80, "", ""), deleted)}},
			when:  api.Future,
			want:  map[string]string{"n1": fits, "n2": fits},
		},
		"anti-affinity of a running pod of another scheduler": {
			given: given{nodes: zones, pods: []*v1.Pod{pod("p", app("a")), pod("r", on("a1"), avoids(apps("a"), v1.LabelTopologyZone))}},
			want:  map[string]string{"a1": unwelcome, "a2": unwelcome, "b1": fits, "c1": fits},
		},
		"anti-affinity ignores pods that it does not select": {
			given: given{nodes: zones, pods: []*v1.Pod{pod("p", app(anotherApp)), pod("r", on("a1"), avoids(apps("a"), v1.LabelTopologyZone))}},
			want:  map[string]string{"a1": fits, "a2": fits, "b1": fits, "c1": fits},
		},
		"anti-affinity ignores pods of other namespaces": {
			given: given{nodes: two, pods: []*v1.Pod{pod("other/p", app("a")), pod("r", on("n1"), avoids(apps("a"), v1.LabelHostname))}},
			want:  map[string]string{"n1": fits, "n2": fits},
		},
		"anti-affinity with a list of namespaces": {
			given: given{nodes: two, pods: []*v1.Pod{pod("other/p", app("a")), pod("r", on("n1"), avoids(apps("a"), v1.LabelHostname, "other"))}},
			want:  map[string]string{"n1": unwelcome, "n2": fits},
		},
		"anti-affinity with a namespace selector": {
			given: given{
				namespaces: map[string]map[string]string{"other": {"team": "x"}, "default": {"team": "y"}},
				nodes:      two,
				pods: []*v1.Pod{pod("other/p", app("a")), pod("r", on("n1"), avoids(apps("a"), v1.LabelHostname), func(p *v1.Pod) {
					p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].NamespaceSelector =
						&metav1.LabelSelector{MatchLabels: map[string]string{"team": "x"}}
				})},
			},
			want: map[string]string{"n1": unwelcome, "n2": fits},
		},
		"anti-affinity of a terminated pod is ignored": {
			given: given{nodes: two, pods: []*v1.Pod{pod("p", app("a")), pod("r", on("n1"), avoids(apps("a"), v1.LabelHostname), phase(v1.PodSucceeded))}},
			want:  map[string]string{"n1": fits, "n2": fits},
		},
		"anti-affinity of a terminating pod": {
			given: given{nodes: two, pods: []*v1.Pod{pod("p", app("a")), pod("r", on("n1"), avoids(apps("a"), v1.LabelHostname), deleted)}},
			want:  map[string]string{"n1": unwelcome, "n2": fits},
		},
		"anti-affinity of a terminating pod in the future": {
			given: given{nodes: two, pods: []*v1.Pod{pod("p", app("a")), pod("r", on("n1"), avoids(apps("a"), v1.LabelHostname), deleted)}},
			when:  api.Future,
			want:  map[string]string{"n1": fits, "n2": fits},
		},
		"anti-affinity of the pod to running pods": {
			given: given{nodes: zones, pods: []*v1.Pod{pod("p", avoids(apps("a"), v1.LabelTopologyZone)), pod("r", on("a2"), app("a"))}},
			want:  map[string]string{"a1": avoided, "a2": avoided, "b1": fits, "c1": fits},
		},
		"affinity of the pod to running pods": {
			given: given{nodes: zones, pods: []*v1.Pod{pod("p", joins(apps("a"), v1.LabelTopologyZone)), pod("r", on("a2"), app("a"))}},
			want:  map[string]string{"a1": fits, "a2": fits, "b1": needs, "c1": needs},
		},
		"affinity without a matching pod": {
			given: given{nodes: two, pods: []*v1.Pod{pod("p", joins(apps("a"), v1.LabelTopologyZone)), pod("waiting", app("a"))}},
			want:  map[string]string{"n1": needs, "n2": needs},
		},
		"the first pod with self-affinity fits in every domain": {
			given: given{nodes: zones, pods: []*v1.Pod{pod("p", app("a"), joins(apps("a"), v1.LabelTopologyZone))}},
			want:  map[string]string{"a1": fits, "a2": fits, "b1": fits, "c1": needs},
		},
		"topology spread over zones": {
			given: given{nodes: zones, pods: []*v1.Pod{
				pod("p", app("a"), spreads(v1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: v1.LabelTopologyZone, LabelSelector: apps("a")})),
				pod("r", on("a1"), app("a")),
			}},
			want: map[string]string{"a1": lopsided, "a2": lopsided, "b1": fits, "c1": noDomain},
		},
		"terminating pods do not count for topology spread": {
			given: given{nodes: zones, pods: []*v1.Pod{
				pod("p", app("a"), spreads(v1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: v1.LabelTopologyZone, LabelSelector: apps("a")})),
				pod("r", on("a1"), app("a"), deleted),
			}},
			want: map[string]string{"a1": fits, "a2": fits, "b1": fits, "c1": noDomain},
		},
		"with fewer domains than minDomains the minimum is zero": {
			given: given{nodes: two, pods: []*v1.Pod{
				pod("p", app("a"), spreads(v1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: v1.LabelTopologyZone, LabelSelector: apps("a"), MinDomains: ptr.To[int32](3)})),
				pod("r", on("n1"), app("a")), pod("s", on("n2"), app("a")),
			}},
			want: map[string]string{"n1": lopsided, "n2": lopsided},
		},
		"resource claims without informers": {
			given: given{nodes: two, pods: []*v1.Pod{pod("p", usesClaim("gpu"))}},
			want:  map[string]string{"n1": "resource claims are not watched", "n2": "resource claims are not watched"},
		},
		"volumes without informers": {
			given: given{nodes: two, pods: []*v1.Pod{pod("p", claim("data"))}},
			want:  map[string]string{"n1": "volumes are not watched", "n2": "volumes are not watched"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			ssn, cluster := tt.given.open(t)
			asked := "p"
			if cluster.Tasks()[api.TaskID(uid(asked))] == nil {
				asked = "other/p"
			}
			expect(t, tt.want, verdicts(ssn, asked, tt.when))
		})
	}
}

func TestPlacementsWithinASession(t *testing.T) {
	ssn, cluster := given{
		nodes: []*v1.Node{node("n1", zone("a")), node("n2", zone("b"))},
		pods: []*v1.Pod{
			pod("first", app("a"), avoids(apps("a"), v1.LabelHostname)),
			pod("second", app("a"), avoids(apps("a"), v1.LabelHostname)),
			pod("plain", app("a")),
		},
	}.open(t)
	first, n1 := taskNamed(cluster, "first"), cluster.Node("n1")
	free := map[string]string{"n1": fits, "n2": fits}
	expect(t, free, verdicts(ssn, "second", api.Now))
	expect(t, free, verdicts(ssn, "plain", api.Now))

	statement := ssn.Statement()
	before := statement.Mark()
	statement.Allocate(first, n1)
	expect(t, map[string]string{"n1": "node(s) didn't match pod anti-affinity rules", "n2": fits}, verdicts(ssn, "second", api.Now))
	expect(t, map[string]string{"n1": "node(s) didn't satisfy existing pods anti-affinity rules", "n2": fits}, verdicts(ssn, "plain", api.Now))

	statement.Evict(first, nil, api.Preempted)
	expect(t, map[string]string{"n1": "node(s) didn't match pod anti-affinity rules", "n2": fits}, verdicts(ssn, "second", api.Now))
	expect(t, free, verdicts(ssn, "second", api.Future))

	statement.RollbackTo(before)
	expect(t, free, verdicts(ssn, "second", api.Now))
	expect(t, free, verdicts(ssn, "plain", api.Now))
}

func TestEvictedPodsDoNotCountForSpread(t *testing.T) {
	ssn, cluster := given{
		nodes: []*v1.Node{node("n1", zone("a")), node("n2", zone("b"))},
		pods: []*v1.Pod{
			pod("p", app("a"), spreads(v1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: v1.LabelTopologyZone, LabelSelector: apps("a")})),
			pod("r", on("n1"), app("a")),
		},
	}.open(t)
	expect(t, map[string]string{"n1": "node(s) didn't match pod topology spread constraints", "n2": fits}, verdicts(ssn, "p", api.Now))
	ssn.Statement().Evict(taskNamed(cluster, "r"), nil, api.Preempted)
	expect(t, map[string]string{"n1": fits, "n2": fits}, verdicts(ssn, "p", api.Now))
}

func TestChangesBetweenSessions(t *testing.T) {
	g := given{}
	profile := g.profile(t)
	cluster := model.NewCluster(model.Options{SchedulerNames: []string{schedulerName}, DefaultQueue: "default"})
	session := func(want map[string]string) {
		t.Helper()
		ssn := profile.Open(cluster, nil, logr.Discard())
		defer ssn.Close()
		expect(t, want, verdicts(ssn, "p", api.Now))
	}
	cluster.Events().SetNode(node("n1"))
	cluster.Events().SetNode(node("n2"))
	cluster.Events().SetPod(pod("p", app("a"), avoids(apps("a"), v1.LabelHostname)))
	cluster.Events().SetPod(pod("r", on("n1"), app("a")))
	session(map[string]string{"n1": "node(s) didn't match pod anti-affinity rules", "n2": fits})

	cluster.Events().SetPod(pod("r", on("n1"), app("b"))) // relabelled
	session(map[string]string{"n1": fits, "n2": fits})

	cluster.Events().SetPod(pod("s", on("n2"), app("a")))
	cluster.Events().DeleteNode("n1")
	session(map[string]string{"n2": "node(s) didn't match pod anti-affinity rules"})

	cluster.Events().SetNode(node("n3")) // reuses the index of the deleted node
	session(map[string]string{"n2": "node(s) didn't match pod anti-affinity rules", "n3": fits})

	cluster.Events().DeletePod(uid("s"))
	session(map[string]string{"n2": fits, "n3": fits})

	cluster = model.NewCluster(model.Options{SchedulerNames: []string{schedulerName}, DefaultQueue: "default"}) // rebuilt after a failed cycle
	cluster.Events().SetNode(node("n4"))
	cluster.Events().SetPod(pod("p", app("a"), avoids(apps("a"), v1.LabelHostname)))
	cluster.Events().SetPod(pod("r", on("n4"), app("a")))
	session(map[string]string{"n4": "node(s) didn't match pod anti-affinity rules"})
}
