// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/trace"
)

// replayInDomains is replayOf with nodes in racks and blocks: paths are those of the nodes, as "b1/r1". Jobs require levels, by
// index; those with an empty one may be anywhere. Segments of so many pods require a rack with "rack*2", and also that all are
// in one block with "block rack*2".
func (l *latestStarts) replayInDomains(in Input, reservations conf.Reservations, paths, levels []string) (*replay, error) {
	for i, n := range in.Nodes {
		n.Labels["block"], n.Labels["rack"], _ = strings.Cut(paths[i], "/")
	}
	r, err := l.replayOf(in, reservations)
	if err != nil {
		return nil, err
	}
	model.TopologiesOf(r.cluster).Set(&v1alpha1.Topology{
		ObjectMeta: metav1.ObjectMeta{Name: "default", UID: types.UID("topology")},
		Spec: v1alpha1.TopologySpec{Levels: []v1alpha1.TopologyLevel{
			{Name: "block", NodeLabel: "block"}, {Name: "rack", NodeLabel: "rack"},
		}},
	})
	for i, level := range levels {
		if level == "" {
			continue
		}
		r.agenda.add(r.jobs[i].Submit, submitted, func() { // it was submitted just before
			r.require(r.jobs[i], level)
		})
	}
	return r, nil
}

// require makes a job, and perhaps its segments, require levels.
func (r *replay) require(j *job, levels string) {
	g := j.group.DeepCopy()
	for _, level := range strings.Fields(levels) {
		level, segments, inSegments := strings.Cut(level, "*")
		if !inSegments {
			g.Spec.TopologyConstraint = &v1alpha1.TopologyConstraint{RequiredTopologyLevel: level}
			continue
		}
		size, _ := strconv.Atoi(segments)
		if j.Gang()%size != 0 {
			size = j.Gang()
		}
		g.Spec.SubGroups = []v1alpha1.SubGroup{{
			Name: "all", SegmentSize: int32(size), MinSubGroup: ptr.To(int32(j.Gang() / size)),
			Selector:                  &metav1.LabelSelector{},
			SegmentTopologyConstraint: &v1alpha1.RequiredTopology{RequiredTopologyLevel: level},
		}}
	}
	j.group = g
	r.cluster.Events().SetPodGroup(g)
	for i, p := range j.pods {
		p.Pod = p.DeepCopy()
		p.Labels[batchv1.JobCompletionIndexAnnotation] = strconv.Itoa(i)
		r.set(p)
	}
}

// outsideOfDomains says which job, or subgroup, is in several domains of the level that it requires; empty if none is.
func outsideOfDomains(c *model.Cluster) string {
	type part struct {
		job *api.JobInfo
		of  *api.SubGroup
	}
	domains := map[part]string{}
	add := func(t *api.TaskInfo, level *api.TopologyLevel, of *api.SubGroup) string {
		path, _ := level.Path(t.Node.Node.Labels)
		if before, known := domains[part{t.Job, of}]; path == "" || known && before != path {
			return fmt.Sprintf("pods of job %s are in %s %q and %q", t.Job.Key, level.Name, before, path)
		}
		domains[part{t.Job, of}] = path
		return ""
	}
	for _, t := range c.Tasks() {
		if t.Node == nil || t.Job == nil {
			continue
		}
		complaint := ""
		if t.Job.TopologyLevel != nil {
			complaint = add(t, t.Job.TopologyLevel, nil)
		}
		for s := t.SubGroup(); s != nil; s = s.Parent {
			if s.TopologyLevel != nil {
				complaint = cmp.Or(complaint, add(t, s.TopologyLevel, s))
			}
		}
		if complaint != "" {
			return complaint
		}
	}
	return ""
}

// TestStartsInDomainsAreKept is TestStartsAreKept on nodes in racks and blocks, which most jobs require, or their segments.
func TestStartsInDomainsAreKept(t *testing.T) {
	t.Parallel()
	seen, named, inSegments := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		tr := declaringTrace(t)
		in, err := newInput(tr, "count=6,cpu=3")
		if err != nil {
			t.Fatal(err)
		}
		paths, levels := make([]string, len(in.Nodes)), make([]string, len(tr.Jobs))
		for i := range paths {
			paths[i] = rapid.SampledFrom([]string{"b1/r1", "b1/r2", "b2/r1", "b2/r2", "b1/"}).Draw(t, "path")
		}
		for i := range levels {
			levels[i] = rapid.SampledFrom([]string{"rack", "block", "rack", "rack*2", "rack*3", "block rack*2", ""}).Draw(t, "level")
		}
		starts := &latestStarts{latest: map[string]time.Duration{}, fail: t.Fatalf}
		r, err := starts.replayInDomains(in, randomReservations(t), paths, levels)
		if err != nil {
			t.Fatal(err)
		}
		r.Progress = func(p Progress) {
			if complaint := cmp.Or(compareWithModel(r), outsideOfDomains(r.cluster)); complaint != "" {
				t.Fatalf("at %v: %s", p.At, complaint)
			}
		}
		starts.play(t, r)
		seen += starts.seen
		for i, level := range levels {
			if _, known := starts.latest[fmt.Sprintf("%s/job-%08d", namespace, i)]; known && level != "" {
				named++
				if strings.Contains(level, "*") {
					inSegments++
				}
			}
		}
	})
	if seen == 0 || named == 0 || inSegments == 0 {
		t.Errorf("%d starts were planned, those of %d jobs with a level, %d of them in segments", seen, named, inSegments)
	}
}

// TestBackfillOfRacksEqualsThatOfASimpleTwin compares the start of each job with EASY backfilling by a simulation that has no
// code of the scheduler. Each job requires one rack.
func TestBackfillOfRacksEqualsThatOfASimpleTwin(t *testing.T) {
	t.Parallel()
	waited := 0
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.IntRange(1, 4), 1, 4).Draw(t, "racks")
		tr := &trace.Trace{}
		at := time.Duration(0)
		for i := range rapid.IntRange(1, 30).Draw(t, "jobs") {
			at += time.Duration(rapid.IntRange(0, 20).Draw(t, "pause")) * time.Second
			run := time.Duration(rapid.IntRange(1, 60).Draw(t, "run")) * time.Second
			tr.Jobs = append(tr.Jobs, limitedJob(fmt.Sprintf("job-%02d", i), at, rapid.IntRange(1, slices.Max(sizes)).Draw(t, "size"), run, run))
		}
		var paths []string
		for rack, size := range sizes {
			paths = append(paths, slices.Repeat([]string{fmt.Sprintf("b/r%d", rack)}, size)...)
		}
		in, err := newInput(tr, strconv.Itoa(len(paths)))
		if err != nil {
			t.Fatal(err)
		}
		starts := &latestStarts{latest: map[string]time.Duration{}, fail: t.Fatalf}
		r, err := starts.replayInDomains(in, conf.Reservations{Depth: 1, Total: 8}, paths, slices.Repeat([]string{"rack"}, len(tr.Jobs)))
		if err != nil {
			t.Fatal(err)
		}
		starts.play(t, r)
		got := make([]time.Duration, len(tr.Jobs))
		for i, j := range r.result().Jobs {
			got[i] = j.Start
		}
		if diff := gocmp.Diff(newRackTwin(tr.Jobs, sizes).run(), got); diff != "" {
			t.Fatalf("starts (-twin +replay):\n%s", diff)
		}
		waited += len(starts.latest)
	})
	if waited == 0 {
		t.Error("no start was planned")
	}
}

// rackTwin starts jobs in the order of arrival, each in one rack of nodes for one pod; and others that do not delay the first
// one that does not fit, for which a rack is reserved from the first time on at which one holds it.
type rackTwin struct {
	jobs   []trace.Job
	sizes  []int
	starts []time.Duration
	racks  []int // of jobs; -1 until they have started

	first    int // that does not fit; -1 at first
	shadow   time.Duration
	reserved int // its rack
}

func newRackTwin(jobs []trace.Job, sizes []int) *rackTwin {
	return &rackTwin{jobs: jobs, sizes: sizes, starts: make([]time.Duration, len(jobs)), racks: slices.Repeat([]int{-1}, len(jobs)), first: -1}
}

// free returns how many nodes of a rack are free at a time if nothing else starts.
func (r *rackTwin) free(rack int, at time.Duration) int {
	n := r.sizes[rack]
	for i, j := range r.jobs {
		if r.racks[i] == rack && r.starts[i]+j.Run > at {
			n -= j.Min
		}
	}
	return n
}

// start starts a job where it fits: a rack in use comes before an unused one, and a smaller one of these before a larger one;
// then one of which less is left. Another job than the first one leaves to it what it needs.
func (r *rackTwin) start(i int, now time.Duration, first bool) bool {
	j, best, order := r.jobs[i], -1, []int(nil)
	for rack, size := range r.sizes {
		free, lost := r.free(rack, now), 0
		if free == size {
			lost = size
		}
		if !first && rack == r.reserved && now+j.Run > r.shadow {
			free = min(free, r.free(rack, r.shadow)-r.jobs[r.first].Min)
		}
		if o := []int{lost, free}; free >= j.Min && (best < 0 || slices.Compare(o, order) < 0) {
			best, order = rack, o
		}
	}
	if best >= 0 {
		r.racks[i], r.starts[i] = best, now
	}
	return best >= 0
}

// plan reserves a rack for a job: the first that holds it, and of several the one with the fewest free nodes.
func (r *rackTwin) plan(i int, now time.Duration) {
	r.first, r.shadow, r.reserved = i, math.MaxInt64, -1
	for rack := range r.sizes {
		for at := now; r.sizes[rack] >= r.jobs[i].Min; at += time.Second {
			if free := r.free(rack, at); free >= r.jobs[i].Min {
				if at < r.shadow || at == r.shadow && free < r.free(r.reserved, at) {
					r.shadow, r.reserved = at, rack
				}
				break
			}
		}
	}
}

func (r *rackTwin) run() []time.Duration {
	for now := time.Duration(0); now < math.MaxInt64; {
		first := true
		for i, j := range r.jobs {
			if r.racks[i] >= 0 || j.Submit > now || r.start(i, now, first) {
				continue
			}
			if first && r.first != i {
				r.plan(i, now)
			}
			first = false
		}
		next := time.Duration(math.MaxInt64)
		for i, j := range r.jobs {
			if at := r.starts[i] + j.Run; r.racks[i] >= 0 && at > now {
				next = min(next, at)
			}
			if r.racks[i] < 0 && j.Submit > now {
				next = min(next, j.Submit)
			}
		}
		now = next
	}
	return r.starts
}
