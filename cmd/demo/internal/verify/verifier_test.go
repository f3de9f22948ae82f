// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package verify_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/batch-scheduler/batch-scheduler/cmd/demo/internal/snapshot"
	"github.com/batch-scheduler/batch-scheduler/cmd/demo/internal/verify"
)

// story has one of everything.
func story() verify.Expectations {
	return verify.Expectations{
		Namespace:   "s",
		Gangs:       []string{"first", "then"},
		Infeasible:  []verify.Infeasible{{Group: "big", Resource: "example.com/gpu"}},
		Orders:      []verify.Order{{First: "first", Then: "then"}},
		Jobs:        []string{"j"},
		Deployments: []string{"d"},
		Pods:        []string{"p"},
		Queues:      []string{"q"},
	}
}

const goodMessage = "needs 2 more pods of 1 cpu + 4 example.com/gpu; 0/3 nodes are available: 3 Insufficient example.com/gpu"

// change makes a scene from another.
type change func(*snapshot.Snapshot)

// moment is what is there some time after the start.
type moment struct {
	after time.Duration
	is    []change
}

// ended is the scene in which all has come out right, but for the changes.
func ended(changes ...change) snapshot.Snapshot {
	s := snapshot.Snapshot{
		Nodes: []snapshot.Node{{Name: "n", Allocatable: cpu("4"), Used: cpu("1")}},
		Groups: []snapshot.Group{
			{Namespace: "other", Name: "half", Min: 2, Members: 2, Bound: 1, Failed: 1},
			{Namespace: "s", Name: "big", Min: 2, Members: 2, Phase: "Pending", Reason: "NotEnoughResources", Message: goodMessage},
			{Namespace: "s", Name: "first", Min: 2, Members: 2, Bound: 2, Ended: 2, Phase: "Finished"},
			{Namespace: "s", Name: "then", Min: 2, Members: 3, Bound: 3, Ended: 3, Phase: "Finished"},
		},
		Queues: []snapshot.Queue{{Name: "q", Weight: 1, Capability: cpu("2"), Deserved: cpu("1"), Allocated: cpu("1"), Held: cpu("1")}},
		Work: []snapshot.Work{
			{Namespace: "s", Kind: snapshot.Job, Name: "j", Done: true},
			{Namespace: "s", Kind: snapshot.Deployment, Name: "d", Done: true},
			{Namespace: "s", Kind: snapshot.Pod, Name: "p", Done: true},
		},
	}
	for _, c := range changes {
		c(&s)
	}
	return s
}

func cpu(quantity string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(quantity)}
}

func group(name string, bound, ended int, phase string) change {
	return func(s *snapshot.Snapshot) {
		for i := range s.Groups {
			if g := &s.Groups[i]; g.Name == name {
				g.Bound, g.Ended, g.Phase = bound, ended, phase
			}
		}
	}
}

func says(name, message string) change {
	return func(s *snapshot.Snapshot) {
		for i := range s.Groups {
			if g := &s.Groups[i]; g.Name == name {
				g.Message = message
			}
		}
	}
}

func failed(name string) change {
	return func(s *snapshot.Snapshot) {
		for i := range s.Groups {
			if g := &s.Groups[i]; g.Name == name {
				g.Failed = 1
			}
		}
	}
}

func queue(allocated, deserved, held string) change {
	return func(s *snapshot.Snapshot) {
		q := &s.Queues[0]
		q.Allocated, q.Deserved, q.Held = cpu(allocated), cpu(deserved), cpu(held)
	}
}

func used(quantity string) change {
	return func(s *snapshot.Snapshot) { s.Nodes[0].Used = cpu(quantity) }
}

func undone(kind string) change {
	return func(s *snapshot.Snapshot) {
		for i := range s.Work {
			s.Work[i].Done = s.Work[i].Done && s.Work[i].Kind != kind
		}
	}
}

func gone(s *snapshot.Snapshot) { *s = snapshot.Snapshot{} }

// problems are the details of the checks that have not passed.
type problems map[string][]string

const (
	whole    = "every gang started whole or not at all"
	gangs    = "every gang that fits ran to its end"
	big      = "big never started, and says why"
	order    = "then started only after first had ended"
	work     = "Jobs, Deployments and best-effort pods run without a PodGroup"
	capacity = "no node overcommitted, no queue over its capability"
	queues   = "queues say what their pods hold, and share no more than there is"
)

func TestVerdict(t *testing.T) {
	for name, test := range map[string]struct {
		given   []moment // before the end
		end     []change
		missing problems
		wrong   problems
	}{
		"all is well": {},
		"nothing is there": {
			end: []change{gone},
			missing: problems{
				whole:    {"none has started"},
				gangs:    {"first has not started", "then has not started"},
				big:      {"its condition should name example.com/gpu, the pods that need it and the nodes that have it, and is:  "},
				order:    {"then has not started"},
				work:     {"job/j has not completed", "deployment/d is not available", "pod/p does not run"},
				capacity: {"there are no nodes"},
				queues:   {"queue q does not exist"},
			},
		},
		"a gang is bound pod by pod in a moment": {
			given: []moment{{0, []change{group("first", 1, 0, "Pending"), group("then", 0, 0, "Pending")}}},
		},
		"a gang is half bound at the end": {
			given:   []moment{{58 * time.Second, []change{group("then", 1, 0, "Pending")}}},
			end:     []change{group("then", 1, 0, "Pending")},
			missing: problems{whole: {"then has nodes for 1 of the 2 pods it needs"}, gangs: {"then has not started"}, order: {"then has not started"}},
		},
		"a gang was half bound for long, though more pods came": {
			given: []moment{
				{0, []change{group("then", 0, 0, ""), group("first", 1, 0, "Pending")}},
				{6 * time.Second, []change{group("then", 0, 0, ""), group("first", 1, 0, "Pending")}},
			},
			wrong: problems{whole: {"first held nodes for fewer than the 2 pods it needs for more than 5s"}},
		},
		"a gang was half bound twice, each time for a moment": {
			given: []moment{
				{0, []change{group("then", 0, 0, ""), group("first", 1, 0, "Pending")}},
				{4 * time.Second, []change{group("then", 0, 0, ""), group("first", 2, 0, "Running")}},
				{8 * time.Second, []change{group("then", 0, 0, ""), group("first", 1, 0, "Unknown")}},
			},
		},
		"a gang has not ended": {
			end:     []change{group("then", 3, 2, "Running")},
			missing: problems{gangs: {"then: 2 of 3 pods have ended"}},
		},
		"a gang has ended and does not say so": {
			end:     []change{group("then", 3, 3, "Running")},
			missing: problems{gangs: {`then: its phase is "Running", not Finished`}},
		},
		"a pod of a gang failed": {
			end:   []change{failed("first")},
			wrong: problems{gangs: {"pods of first failed"}},
		},
		"the impossible started at some time": {
			given: []moment{{0, []change{group("big", 1, 0, "Running")}}},
			wrong: problems{big: {"it got nodes for 1 of its pods"}},
		},
		"the impossible does not name the resource": {
			end: []change{says("big", "needs 2 more pods of 1 cpu; 0/3 nodes are available: 3 Insufficient cpu")},
			missing: problems{big: {"its condition should name example.com/gpu, the pods that need it and the nodes that have it, " +
				"and is: NotEnoughResources needs 2 more pods of 1 cpu; 0/3 nodes are available: 3 Insufficient cpu"}},
		},
		"the impossible names no numbers": {
			end: []change{says("big", "not enough example.com/gpu")},
			missing: problems{big: {"its condition should name example.com/gpu, the pods that need it and the nodes that have it, " +
				"and is: NotEnoughResources not enough example.com/gpu"}},
		},
		"the later gang started too early": {
			given: []moment{{0, []change{group("first", 2, 1, "Running"), group("then", 1, 0, "Pending")}}},
			wrong: problems{order: {"then got nodes when 1 of 2 pods of first had ended"}},
		},
		"the Job has not completed":        {end: []change{undone(snapshot.Job)}, missing: problems{work: {"job/j has not completed"}}},
		"the Deployment is not available":  {end: []change{undone(snapshot.Deployment)}, missing: problems{work: {"deployment/d is not available"}}},
		"the best-effort pod does not run": {end: []change{undone(snapshot.Pod)}, missing: problems{work: {"pod/p does not run"}}},
		"a node was too full": {
			given: []moment{{0, []change{used("4100m")}}},
			wrong: problems{capacity: {"node n: its pods hold 4100m cpu of 4"}},
		},
		"a queue was above its capability, whatever it said": {
			given: []moment{{0, []change{queue("1", "1", "3")}}},
			wrong: problems{capacity: {"queue q: its pods hold 3 cpu of 2"}},
		},
		"a queue is not up to date": {
			end:     []change{queue("2", "1", "1")},
			missing: problems{queues: {"queue q said that it holds 2 cpu while its pods held 1"}},
		},
		"a queue was never up to date": {
			given: []moment{{0, []change{queue("2", "1", "1")}}},
			end:   []change{queue("2", "1", "1")},
			wrong: problems{queues: {"queue q said that it holds 2 cpu while its pods held 1 for more than 5s"}},
		},
		"a queue deserves more than there is, and than its capability": {
			end: []change{queue("1", "5", "1")},
			missing: problems{queues: {
				"queue q deserved more than its capability",
				"the queues together deserved more than the cluster has",
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			j := verify.New(story())
			start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
			for _, m := range test.given {
				j.Observe(start.Add(m.after), ended(m.is...))
			}
			j.Observe(start.Add(time.Minute), ended(test.end...))
			got := map[verify.State]problems{verify.Open: {}, verify.Failed: {}, verify.Passed: {}}
			for _, check := range j.Verdict() {
				got[check.State][check.Name] = check.Details
			}
			if diff := cmp.Diff(orNone(test.missing), got[verify.Open]); diff != "" {
				t.Errorf("missing (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(orNone(test.wrong), got[verify.Failed]); diff != "" {
				t.Errorf("wrong (-want +got):\n%s", diff)
			}
			if right := len(test.missing)+len(test.wrong) == 0; j.Verdict().Right() != right {
				t.Errorf("right is %v, want %v", j.Verdict().Right(), right)
			}
			if complete := len(test.missing) == 0; j.Verdict().Complete() != complete {
				t.Errorf("complete is %v, want %v", j.Verdict().Complete(), complete)
			}
		})
	}
}

func orNone(p problems) problems {
	if p == nil {
		return problems{}
	}
	return p
}

func TestNumbers(t *testing.T) {
	j := verify.New(story())
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	waits := group("then", 0, 0, "Pending")
	j.Observe(start, ended(waits, group("first", 1, 0, "Pending")))
	j.Observe(start.Add(30*time.Millisecond), ended(waits, group("first", 2, 0, "Running")))
	j.Observe(start.Add(12*time.Second), ended(group("then", 1, 0, "Pending")))
	j.Observe(start.Add(12*time.Second+10*time.Millisecond), ended())
	got := problems{}
	for _, check := range j.Verdict() {
		got[check.Name] = check.Details
	}
	want := problems{
		whole:    {"2 gangs; each was whole within 30ms of its first pod"},
		gangs:    {"first, then"},
		big:      {"NotEnoughResources: " + goodMessage},
		order:    {"it waited 12s after the start of first"},
		work:     {"job/j, deployment/d, pod/p"},
		capacity: {"1 nodes, 1 queues"},
		queues:   {"q"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("details (-want +got):\n%s", diff)
	}
}
