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

func TestNeighbours(t *testing.T) {
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
		"the same port of another address or protocol": {
			given: given{nodes: two, pods: []*v1.Pod{
				pod("p", port(80, v1.ProtocolTCP, "10.0.0.2")),
				pod("r", on("n1"), port(80, v1.ProtocolTCP, "10.0.0.1")), pod("s", on("n1"), port(80, v1.ProtocolUDP, "")),
			}},
			want: map[string]string{"n1": fits, "n2": fits},
		},
		"a port in use by a pod that is being deleted": {
			given: given{nodes: two, pods: []*v1.Pod{pod("p", port(80, "", "")), pod("r", on("n1"), port(80, "", ""), deleted)}},
			want:  map[string]string{"n1": taken, "n2": fits},
		},
		"the same port in the future": {
			given: given{nodes: two, pods: []*v1.Pod{pod("p", port(80, "", "")), pod("r", on("n1"), port(80, "", ""), deleted)}},
			when:  api.Future,
			want:  map[string]string{"n1": fits, "n2": fits},
		},
		"a running pod of another scheduler repels a plain pod": {
			given: given{nodes: zones, pods: []*v1.Pod{pod("p", app("a")), pod("r", on("a1"), avoids(apps("a"), v1.LabelTopologyZone))}},
			want:  map[string]string{"a1": unwelcome, "a2": unwelcome, "b1": fits, "c1": fits},
		},
		"it does not repel pods that it does not select": {
			given: given{nodes: zones, pods: []*v1.Pod{pod("p", app(anotherApp)), pod("r", on("a1"), avoids(apps("a"), v1.LabelTopologyZone))}},
			want:  map[string]string{"a1": fits, "a2": fits, "b1": fits, "c1": fits},
		},
		"nor pods of other namespaces": {
			given: given{nodes: two, pods: []*v1.Pod{pod("other/p", app("a")), pod("r", on("n1"), avoids(apps("a"), v1.LabelHostname))}},
			want:  map[string]string{"n1": fits, "n2": fits},
		},
		"unless it names them": {
			given: given{nodes: two, pods: []*v1.Pod{pod("other/p", app("a")), pod("r", on("n1"), avoids(apps("a"), v1.LabelHostname, "other"))}},
			want:  map[string]string{"n1": unwelcome, "n2": fits},
		},
		"or selects them by the labels of their namespace": {
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
		"a pod that has ended repels nobody": {
			given: given{nodes: two, pods: []*v1.Pod{pod("p", app("a")), pod("r", on("n1"), avoids(apps("a"), v1.LabelHostname), phase(v1.PodSucceeded))}},
			want:  map[string]string{"n1": fits, "n2": fits},
		},
		"a pod that is being deleted still repels": {
			given: given{nodes: two, pods: []*v1.Pod{pod("p", app("a")), pod("r", on("n1"), avoids(apps("a"), v1.LabelHostname), deleted)}},
			want:  map[string]string{"n1": unwelcome, "n2": fits},
		},
		"but not in the future": {
			given: given{nodes: two, pods: []*v1.Pod{pod("p", app("a")), pod("r", on("n1"), avoids(apps("a"), v1.LabelHostname), deleted)}},
			when:  api.Future,
			want:  map[string]string{"n1": fits, "n2": fits},
		},
		"a pod avoids what runs": {
			given: given{nodes: zones, pods: []*v1.Pod{pod("p", avoids(apps("a"), v1.LabelTopologyZone)), pod("r", on("a2"), app("a"))}},
			want:  map[string]string{"a1": avoided, "a2": avoided, "b1": fits, "c1": fits},
		},
		"a pod joins what runs": {
			given: given{nodes: zones, pods: []*v1.Pod{pod("p", joins(apps("a"), v1.LabelTopologyZone)), pod("r", on("a2"), app("a"))}},
			want:  map[string]string{"a1": fits, "a2": fits, "b1": needs, "c1": needs},
		},
		"there is nobody to join": {
			given: given{nodes: two, pods: []*v1.Pod{pod("p", joins(apps("a"), v1.LabelTopologyZone)), pod("waiting", app("a"))}},
			want:  map[string]string{"n1": needs, "n2": needs},
		},
		"the first of those who join each other goes wherever there is a domain": {
			given: given{nodes: zones, pods: []*v1.Pod{pod("p", app("a"), joins(apps("a"), v1.LabelTopologyZone))}},
			want:  map[string]string{"a1": fits, "a2": fits, "b1": fits, "c1": needs},
		},
		"pods spread over zones": {
			given: given{nodes: zones, pods: []*v1.Pod{
				pod("p", app("a"), spreads(v1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: v1.LabelTopologyZone, LabelSelector: apps("a")})),
				pod("r", on("a1"), app("a")),
			}},
			want: map[string]string{"a1": lopsided, "a2": lopsided, "b1": fits, "c1": noDomain},
		},
		"pods that are being deleted do not count": {
			given: given{nodes: zones, pods: []*v1.Pod{
				pod("p", app("a"), spreads(v1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: v1.LabelTopologyZone, LabelSelector: apps("a")})),
				pod("r", on("a1"), app("a"), deleted),
			}},
			want: map[string]string{"a1": fits, "a2": fits, "b1": fits, "c1": noDomain},
		},
		"with fewer domains than asked for the emptiest counts as empty": {
			given: given{nodes: two, pods: []*v1.Pod{
				pod("p", app("a"), spreads(v1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: v1.LabelTopologyZone, LabelSelector: apps("a"), MinDomains: ptr.To[int32](3)})),
				pod("r", on("n1"), app("a")), pod("s", on("n2"), app("a")),
			}},
			want: map[string]string{"n1": lopsided, "n2": lopsided},
		},
		"without informers nothing is known about devices": {
			given: given{nodes: two, pods: []*v1.Pod{pod("p", using("gpu"))}},
			want:  map[string]string{"n1": "resource claims are not watched", "n2": "resource claims are not watched"},
		},
		"without informers volumes are not watched": {
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

func TestPlacementsAreSeenAtOnce(t *testing.T) {
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

func TestEvictedPodsAreNotSpreadOver(t *testing.T) {
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

func TestSessionsSeeWhatHappenedBetweenThem(t *testing.T) {
	g := given{}
	profile := g.profile(t)
	cluster := model.NewCluster(model.Options{SchedulerName: ours, DefaultQueue: "default"})
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

	cluster.Events().SetNode(node("n3")) // takes the index of the node that is gone
	session(map[string]string{"n2": "node(s) didn't match pod anti-affinity rules", "n3": fits})

	cluster.Events().DeletePod(uid("s"))
	session(map[string]string{"n2": fits, "n3": fits})

	cluster = model.NewCluster(model.Options{SchedulerName: ours, DefaultQueue: "default"}) // rebuilt after a failed cycle
	cluster.Events().SetNode(node("n4"))
	cluster.Events().SetPod(pod("p", app("a"), avoids(apps("a"), v1.LabelHostname)))
	cluster.Events().SetPod(pod("r", on("n4"), app("a")))
	session(map[string]string{"n4": "node(s) didn't match pod anti-affinity rules"})
}
