// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package screen_test

import (
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/batch-scheduler/batch-scheduler/cmd/demo/internal/screen"
	"github.com/batch-scheduler/batch-scheduler/cmd/demo/internal/snapshot"
	"github.com/batch-scheduler/batch-scheduler/cmd/demo/internal/verify"
)

func given() snapshot.Snapshot {
	return snapshot.Snapshot{
		Nodes: []snapshot.Node{
			{Name: "a", Allocatable: amounts("8", "32Gi", "4"), Used: amounts("2500m", "2Gi", "0")},
			{Name: "b", Allocatable: amounts("8", "32Gi", "4"), Used: amounts("1", "1Gi", "2")},
		},
		Groups: []snapshot.Group{
			{Name: "done", Queue: "research", Phase: "Finished", Bound: 2, Min: 2, Members: 2},
			{Name: "runs", Queue: "research", Phase: "Running", Bound: 3, Min: 2, Members: 4},
			{Name: "waits", Queue: "default", Phase: "Pending", Min: 16, Members: 16, Reason: "NotEnoughResources",
				Message: "needs 16 more pods of 4 nvidia.com/gpu + 1 cpu; 0/2 nodes are available: 2 Insufficient nvidia.com/gpu"},
		},
		Work: []snapshot.Work{
			{Kind: "deployment", Name: "web", Queue: "default", Want: 3, Running: 2},
			{Kind: "job", Name: "all", Queue: "default", Want: 4, Ended: 4, Done: true},
			{Kind: "job", Name: "some", Queue: "default", Want: 4, Running: 2, Ended: 1},
			{Kind: "pod", Name: "notes-1", Queue: "default", Want: 1, Running: 1, Done: true},
			{Kind: "pod", Name: "notes-2", Queue: "default", Want: 1},
			{Kind: "pod", Name: "single", Queue: "default", Want: 1, Ended: 1, Done: true},
		},
		Queues: []snapshot.Queue{
			{Name: "default", Weight: 1},
			{Name: "research", Weight: 3, Allocated: amounts("3500m", "3Gi", "2"), Deserved: amounts("10667m", "512Mi", "8")},
		},
	}
}

func amounts(cpu, memory, gpu string) corev1.ResourceList {
	return corev1.ResourceList{
		"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory), "nvidia.com/gpu": resource.MustParse(gpu),
		"pods": resource.MustParse("110"),
	}
}

func TestFrame(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		given screen.Size
		want  string
	}{
		"the terminal is large": {screen.Size{Width: 80, Height: 40}, `
1:05   2 nodes   cpu 3.5 of 16 in use   nvidia.com/gpu 2 of 8 in use

PODGROUP  QUEUE     PHASE     BOUND  MIN  ALL  REASON
done      research  Finished      2    2    2
runs      research  Running       3    2    4
waits     default   Pending       0   16   16  NotEnoughResources
    needs 16 more pods of 4 nvidia.com/gpu + 1 cpu; 0/2 nodes are available: 2
    Insufficient nvidia.com/gpu

WITHOUT A PODGROUP  QUEUE    STATE
deployment/web      default  2 of 3 available
job/all             default  complete, 4 of 4
job/some            default  2 running, 1 of 4 complete
pod/notes-*         default  1 of 2 running
pod/single          default  0 running, 1 ended

QUEUE     WEIGHT  CPU / DESERVED  MEMORY / DESERVED  GPU / DESERVED
default        1               -                  -               -
research       3      3.5 / 10.7        3Gi / 512Mi           2 / 8`},
		"the terminal is low": {screen.Size{Width: 80, Height: 16}, `
1:05   2 nodes   cpu 3.5 of 16 in use   nvidia.com/gpu 2 of 8 in use
PODGROUP  QUEUE     PHASE     BOUND  MIN  ALL  REASON
runs      research  Running       3    2    4
waits     default   Pending       0   16   16  NotEnoughResources
(1 more)            Finished

WITHOUT A PODGROUP  QUEUE    STATE
deployment/web      default  2 of 3 available
job/all             default  complete, 4 of 4
job/some            default  2 running, 1 of 4 complete
pod/notes-*         default  1 of 2 running
pod/single          default  0 running, 1 ended

QUEUE     WEIGHT  CPU / DESERVED  MEMORY / DESERVED  GPU / DESERVED
default        1               -                  -               -
research       3      3.5 / 10.7        3Gi / 512Mi           2 / 8`},
		"the terminal is tiny": {screen.Size{Width: 30, Height: 3}, `
1:05   2 nodes   cpu 3.5 of 1…
PODGROUP  QUEUE     PHASE…
runs      research  Running…`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := screen.Frame(given(), 65*time.Second, test.given)
			if diff := cmp.Diff(strings.Split(test.want[1:], "\n"), got); diff != "" {
				t.Errorf("frame (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFrameShowsWholeMessages shows the whole message of a pending PodGroup if the terminal has lines for it: its last
// words can be the most important ones.
func TestFrameShowsWholeMessages(t *testing.T) {
	t.Parallel()
	s := given()
	s.Groups[2].Message = "needs 3 more pods of 4 nvidia.com/gpu + 1 cpu + 1Gi memory, 2 of them could start now; 2/6 nodes are " +
		"available: 4 without nvidia.com/gpu; would not fit the empty nodes (at most 2 of 3 pods)"
	for height, want := range map[int]string{22: "the empty nodes (at most 2 of 3 pods)", 19: "…"} {
		t.Run(strconv.Itoa(height), func(t *testing.T) {
			t.Parallel()
			got := strings.Join(screen.Frame(s, time.Minute, screen.Size{Width: 80, Height: height}), "\n")
			if !strings.Contains(got, want) {
				t.Errorf("%q is not in:\n%s", want, got)
			}
		})
	}
}

// TestFrameFits tries all sizes, for whatever is too large spoils the next redraw.
func TestFrameFits(t *testing.T) {
	t.Parallel()
	for width := 1; width <= 120; width++ {
		for height := 0; height <= 30; height++ {
			lines := screen.Frame(given(), time.Hour, screen.Size{Width: width, Height: height})
			if len(lines) > height {
				t.Fatalf("%d lines for a terminal of %d", len(lines), height)
			}
			for _, line := range lines {
				if utf8.RuneCountInString(line) > max(width, 24) { // no word is longer
					t.Fatalf("%d characters for a terminal of %d: %q", utf8.RuneCountInString(line), width, line)
				}
			}
		}
	}
}

func TestChanges(t *testing.T) {
	t.Parallel()
	s := given()
	s.Work = s.Work[:1]
	changes := &screen.Changes{}
	got := changes.Lines(s, 5*time.Second, 80)
	want := strings.Split(strings.TrimPrefix(`
  0:05  PodGroup done Finished in research: 2 of 2 pods bound, min 2
  0:05  PodGroup runs Running in research: 3 of 4 pods bound, min 2
  0:05  PodGroup waits Pending in default: 0 of 16 pods bound, min 16;
        NotEnoughResources: needs 16 more pods of 4 nvidia.com/gpu + 1 cpu; 0/2
        nodes are available: 2 Insufficient nvidia.com/gpu
  0:05  deployment web 2 of 3 available
  0:05  queue default weight 1; nothing deserved, nothing allocated
  0:05  queue research weight 3; cpu 3.5 of 10.7 deserved, memory 3Gi of 512Mi
        deserved, gpu 2 of 8 deserved`, "\n"), "\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("first lines (-want +got):\n%s", diff)
	}
	if got := changes.Lines(s, 6*time.Second, 80); len(got) > 0 {
		t.Errorf("lines when nothing has changed: %q", got)
	}
	s.Groups[1].Bound = 4
	s.Queues = s.Queues[:1]
	got = changes.Lines(s, 7*time.Second, 80)
	want = []string{"  0:07  PodGroup runs Running in research: 4 of 4 pods bound, min 2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines about a change (-want +got):\n%s", diff)
	}
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	got := screen.Verdict(verify.Verdict{
		{Name: "gangs are whole", State: verify.Passed, Details: []string{"9 gangs; each was whole within 30ms"}},
		{Name: "the rest", State: verify.Open, Details: []string{"a has not started", "b has not started"}},
		{Name: "capacity", State: verify.Failed, Details: []string{"node n: its pods hold 9 cpu of 8"}},
	}, 40)
	want := strings.Split(`  ok      gangs are whole
            9 gangs; each was whole
            within 30ms
  MISSING the rest
            a has not started
            b has not started
  WRONG   capacity
            node n: its pods hold 9 cpu
            of 8`, "\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}
