package actions_test

import (
	"fmt"
	"math/big"
	"slices"
	"testing"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

// TestOrdersAreTotal opens a session over random jobs, many of them alike, and asks for the order
// of each pair of jobs and tasks: no two are equal, and sorting from any start gives the same.
func TestOrdersAreTotal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ssn := randomSession(t, defaultTiers(t))
		jobs := slices.Clone(ssn.Jobs())
		checkOrder(t, jobs, ssn.CompareJobs, func(j *api.JobInfo) string { return string(j.ID) })
		var tasks []*api.TaskInfo
		for _, j := range jobs {
			tasks = append(tasks, ssn.WaitingTasks(j)...)
		}
		checkOrder(t, tasks, ssn.CompareTasks, func(t *api.TaskInfo) string { return t.Key })
	})
}

// TestDRFOrdersByDominantShare compares the order of jobs with one by exact fractions.
func TestDRFOrdersByDominantShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ssn := randomSession(t, []conf.Tier{{Plugins: []conf.Plugin{{Name: "drf"}}}})
		for _, a := range ssn.Jobs() {
			for _, b := range ssn.Jobs() {
				want := dominantShare(ssn, a).Cmp(dominantShare(ssn, b))
				if got := ssn.CompareJobs(a, b); want != 0 && (got < 0) != (want < 0) {
					t.Fatalf("%s holds %v, %s holds %v, of %v: got order %d, want %d",
						a.Key, a.Allocated, b.Key, b.Allocated, ssn.Nodes().Total(), got, want)
				}
			}
		}
	})
}

// dominantShare is the dumb twin: the largest fraction of cpu, memory or devices.
func dominantShare(ssn *framework.Session, j *api.JobInfo) *big.Rat {
	dims, most := ssn.Cluster().Dims(), new(big.Rat)
	for d, held := range j.Allocated {
		name, total := dims.Name(d), ssn.Nodes().Total().At(d)
		if held == 0 || name == v1.ResourcePods || name == v1.ResourceEphemeralStorage {
			continue
		}
		share := big.NewRat(1<<62, 1) // of nothing
		if total > 0 {
			share = big.NewRat(held, total)
		}
		if share.Cmp(most) > 0 {
			most = share
		}
	}
	return most
}

func checkOrder[T any](t *rapid.T, items []T, compare func(a, b T) int, name func(T) string) {
	names := func(items []T) []string {
		var list []string
		for _, item := range items {
			list = append(list, name(item))
		}
		return list
	}
	for i, a := range items {
		for j, b := range items {
			if n := compare(a, b); (n == 0) != (i == j) || (n < 0) != (compare(b, a) > 0) {
				t.Fatalf("%s against %s: %d, the other way round %d", name(a), name(b), n, compare(b, a))
			}
		}
	}
	forward, backward := slices.Clone(items), slices.Clone(items)
	slices.Reverse(backward)
	slices.SortFunc(forward, compare)
	slices.SortFunc(backward, compare)
	if !slices.Equal(names(forward), names(backward)) {
		t.Fatalf("sorted %v, and from the other end %v", names(forward), names(backward))
	}
}

func defaultTiers(t *rapid.T) []conf.Tier {
	config, err := conf.Default(builtIn(t).Catalog())
	if err != nil {
		t.Fatal(err)
	}
	return config.Tiers
}

type nothing struct{}

func (nothing) Commit([]api.Decision) {}

// randomSession is over a few nodes and jobs with little variety, so that ties are common.
func randomSession(t *rapid.T, tiers []conf.Tier) *framework.Session {
	c := model.NewCluster(model.Options{SchedulerName: "batch-scheduler", DefaultQueue: "default"})
	c.Events().SetQueue(&v1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "default"}, Spec: v1alpha1.QueueSpec{Weight: 1}})
	for i := range 3 {
		c.Events().SetNode(&v1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i)},
			Status:     v1.NodeStatus{Allocatable: quantities(t, "node", 1, 50)},
		})
	}
	for j := range rapid.IntRange(2, 7).Draw(t, "jobs") {
		group := fmt.Sprintf("g%d", j)
		created := metav1.Unix(rapid.Int64Range(1, 3).Draw(t, "created"), 0)
		c.Events().SetPodGroup(&v1alpha1.PodGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: group, UID: types.UID(group), CreationTimestamp: created},
			Spec:       v1alpha1.PodGroupSpec{MinMember: rapid.Int32Range(1, 3).Draw(t, "min")},
		})
		for i := range 4 {
			priority := rapid.Int32Range(0, 1).Draw(t, "priority")
			name := fmt.Sprintf("%s-%d", group, i)
			pod := &v1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "ns", Name: name, UID: types.UID(name), CreationTimestamp: created,
					Labels: map[string]string{v1alpha1.LabelPodGroup: group},
				},
				Spec: v1.PodSpec{SchedulerName: "batch-scheduler", Priority: &priority, Containers: []v1.Container{{
					Resources: v1.ResourceRequirements{Requests: quantities(t, "pod", 0, 4)},
				}}},
			}
			if i > 0 && rapid.Bool().Draw(t, "running") {
				pod.Spec.NodeName, pod.Status.Phase = "n0", v1.PodRunning
			}
			c.Events().SetPod(pod)
		}
	}
	c.Events().Recompute()
	profile, err := builtIn(t).NewProfile(&conf.Configuration{Tiers: tiers}, framework.Handle{})
	if err != nil {
		t.Fatal(err)
	}
	return profile.Open(c, nothing{}, logr.Discard())
}

func quantities(t *rapid.T, label string, least, most int64) v1.ResourceList {
	list := v1.ResourceList{v1.ResourcePods: resource.MustParse("99")}
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, "nvidia.com/gpu"} {
		n := rapid.Int64Range(least, most).Draw(t, label+" "+string(name))
		list[name] = *resource.NewQuantity(n, resource.DecimalSI)
	}
	return list
}
