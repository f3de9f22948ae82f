// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model/modeltest"
)

func TestFirstNonZeroAnswer(t *testing.T) {
	cases := map[string]struct {
		answers []int
		want    int
	}{
		"no function":               {nil, 0},
		"all indifferent":           {[]int{0, 0}, 0},
		"the first":                 {[]int{-1, 1}, -1},
		"the second":                {[]int{0, 1, -1}, 1},
		"any size, not only by one": {[]int{0, -7}, -7},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var c chain[CompareFn[string]]
			for _, answer := range tc.answers {
				c = append(c, link[CompareFn[string]]{fn: func(string, string) int { return answer }})
			}
			if got := first(c, "a", "b"); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func TestAllAndSome(t *testing.T) {
	cases := map[string]struct {
		answers   []bool
		all, some bool
	}{
		"no function": {nil, true, false},
		"one yes":     {[]bool{true}, true, true},
		"one no":      {[]bool{false}, false, false},
		"yes and no":  {[]bool{true, false}, false, true},
		"no and yes":  {[]bool{false, true}, false, true},
		"no and no":   {[]bool{false, false}, false, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var c chain[bool]
			for _, answer := range tc.answers {
				c = append(c, link[bool]{fn: answer})
			}
			same := func(b bool) bool { return b }
			if got := all(c, same); got != tc.all {
				t.Errorf("all: %t", got)
			}
			if got := some(c, same); got != tc.some {
				t.Errorf("some: %t", got)
			}
		})
	}
}

// votes makes a chain from text: tiers separated by "|", P, R and A for the votes.
func votes(text string, asked *int) chain[VictimFn] {
	meaning := map[rune]api.Vote{'P': api.Permit, 'R': api.Reject, 'A': api.Abstain}
	var c chain[VictimFn]
	for tier, plugins := range strings.Split(text, "|") {
		for _, letter := range plugins {
			c = append(c, link[VictimFn]{tier: tier, fn: func(*api.Claim, api.Unit) api.Vote {
				*asked++
				return meaning[letter]
			}})
		}
	}
	return c
}

func TestAdmitsTierByTier(t *testing.T) {
	cases := map[string]struct {
		votes string
		want  bool
		asked int
	}{
		"no function":                                      {"", false, 0},
		"no permission":                                    {"AA|A", false, 3},
		"one permits":                                      {"P", true, 1},
		"one permits, others abstain":                      {"AP", true, 2},
		"a veto beats a permit of its tier":                {"PR", false, 2},
		"a veto before the permit":                         {"RP", false, 1},
		"the second tier is asked when the first abstains": {"AA|P", true, 3},
		"a veto in the second tier counts":                 {"AA|PR", false, 4},
		"a tier that has permitted decides":                {"P|R", true, 1},
		"a veto of the first tier is final":                {"R|P", false, 1},
		"the third tier":                                   {"A|A|P", true, 3},
		"a tier without plugins":                           {"A||P", true, 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			asked := 0
			if got := admits(votes(tc.votes, &asked), nil, api.Unit{}); got != tc.want || asked != tc.asked {
				t.Errorf("%t after %d were asked, want %t after %d", got, asked, tc.want, tc.asked)
			}
		})
	}
}

// The twin of admits follows the sentence that describes it, tier by tier.
func TestAdmitsAgainstTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.SampledFrom([]rune("PRA|")), 0, 8, -1).Draw(t, "votes")
		want := false
		for _, tier := range strings.Split(text, "|") {
			if strings.Contains(tier, "R") {
				break
			}
			if strings.Contains(tier, "P") {
				want = true
				break
			}
		}
		asked := 0
		if got := admits(votes(text, &asked), nil, api.Unit{}); got != want {
			t.Fatalf("%q: %t", text, got)
		}
	})
}

// The public questions combine as their points are documented to.
func TestQuestionsOfSessions(t *testing.T) {
	yes, no := func(*api.JobInfo) bool { return true }, func(*api.JobInfo) bool { return false }
	queueSays := func(answer bool) QueueFn { return func(*api.QueueInfo, *api.Claim) bool { return answer } }
	capSays := func(answer bool) CapFn {
		return func(*api.JobInfo, api.Resource, api.When) bool { return answer }
	}
	taint, insufficient := &api.Unfit{Reason: api.Taint}, &api.Unfit{Reason: api.Insufficient}
	filter := func(answer *api.Unfit) FilterFn {
		return func(*api.Signature, *api.NodeInfo) *api.Unfit { return answer }
	}
	predicate := func(answer *api.Unfit) PredicateFn {
		return func(*api.TaskInfo, *api.NodeInfo, api.When) *api.Unfit { return answer }
	}
	cases := map[string]struct {
		first, second func(*Session) // registrations of two plugins
		ask           func(*Session) string
		want          string
	}{
		"a job is ready when all say so": {
			func(s *Session) { s.AddJobReadyFn("first", yes) }, func(s *Session) { s.AddJobReadyFn("second", no) },
			func(s *Session) string { return fmt.Sprint(s.JobReady(nil)) }, "false",
		},
		"a job is ready when no function objects": {
			nil, nil, func(s *Session) string { return fmt.Sprint(s.JobReady(nil)) }, "true",
		},
		"a job is pipelined when all say so": {
			func(s *Session) { s.AddJobPipelinedFn("first", yes) }, func(s *Session) { s.AddJobPipelinedFn("second", yes) },
			func(s *Session) string { return fmt.Sprint(s.JobPipelined(nil)) }, "true",
		},
		"a queue is overused when one says so": {
			func(s *Session) { s.AddOverusedFn("first", queueSays(false)) }, func(s *Session) { s.AddOverusedFn("second", queueSays(true)) },
			func(s *Session) string { return fmt.Sprint(s.Overused(nil, nil)) }, "true",
		},
		"a queue may take when all say so": {
			func(s *Session) { s.AddAllocatableFn("first", capSays(true)) }, func(s *Session) { s.AddAllocatableFn("second", capSays(false)) },
			func(s *Session) string { return fmt.Sprint(s.Allocatable(nil, nil, api.Now)) }, "false",
		},
		"the first failure of filters": {
			func(s *Session) { s.AddFilterFn("first", filter(nil)) }, func(s *Session) { s.AddFilterFn("second", filter(taint)) },
			func(s *Session) string { return s.Filter(nil, nil).String() }, taint.String(),
		},
		"the first failure of predicates": {
			func(s *Session) { s.AddPredicateFn("first", predicate(insufficient)) }, func(s *Session) { s.AddPredicateFn("second", predicate(taint)) },
			func(s *Session) string { return s.Predicate(nil, nil, api.Now).String() }, insufficient.String(),
		},
		"a refusal names the plugin": {
			func(s *Session) { s.AddFilterFn("first", filter(nil)) }, func(s *Session) { s.AddFilterFn("second", filter(taint)) },
			func(s *Session) string { return s.Filter(nil, nil).Plugin }, "second",
		},
		"a refusal names the plugin, whatever name the plugin has set": {
			nil, func(s *Session) {
				s.AddPredicateFn("second", predicate(&api.Unfit{Reason: api.Taint, Plugin: "first"}))
			},
			func(s *Session) string { return s.Predicate(nil, nil, api.Now).Plugin }, "second",
		},
		"equal refusals of one plugin are one object, those of two plugins are not": {
			func(s *Session) { s.AddFilterFn("first", filter(taint)) }, func(s *Session) { s.AddPredicateFn("second", predicate(taint)) },
			func(s *Session) string {
				one, other := s.Filter(nil, nil), s.Predicate(nil, nil, api.Now)
				return fmt.Sprint(one == s.Filter(nil, nil), one == other, *one == *other)
			}, "true false false",
		},
		"the plugin of a hard cap": {
			func(s *Session) { s.AddAllocatableFn("first", capSays(true)) }, func(s *Session) { s.AddAllocatableFn("second", capSays(false)) },
			func(s *Session) string { return s.CappedBy(nil, nil, api.Now) }, "second",
		},
		"no plugin if all hard caps allow": {
			func(s *Session) { s.AddAllocatableFn("first", capSays(true)) }, nil,
			func(s *Session) string { return s.CappedBy(nil, nil, api.Now) }, "",
		},
		"scores add up": {
			func(s *Session) { s.AddNodeOrderFn("first", func(*api.TaskInfo, *api.NodeInfo) api.Score { return 5 }) },
			func(s *Session) {
				s.AddNodeOrderFn("second", func(*api.TaskInfo, *api.NodeInfo) api.Score { return 7 })
			},
			func(s *Session) string { return fmt.Sprint(s.NodeScore(nil, nil)) }, "12",
		},
		"jobs: age decides between equals": {
			nil, nil, func(s *Session) string {
				return fmt.Sprint(s.CompareJobs(&api.JobInfo{Key: "b", Created: 1}, &api.JobInfo{Key: "a", Created: 2}))
			}, "-1",
		},
		"jobs: then the name": {
			nil, nil, func(s *Session) string {
				return fmt.Sprint(s.CompareJobs(&api.JobInfo{Key: "b"}, &api.JobInfo{Key: "a"}))
			}, "1",
		},
		"tasks: then the name": {
			nil, nil, func(s *Session) string {
				return fmt.Sprint(s.CompareTasks(&api.TaskInfo{Key: "a"}, &api.TaskInfo{Key: "b"}))
			}, "-1",
		},
		"queues: the caller decides between equals": {
			nil, nil, func(s *Session) string {
				return fmt.Sprint(s.CompareQueues(&api.QueueInfo{ID: "a"}, &api.QueueInfo{ID: "b"}))
			}, "0",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			profile := profileOf(t, nil, []testPlugin{{name: "first", open: tc.first}}, []testPlugin{{name: "second", open: tc.second}})
			ssn, _ := open(t, profile, NewCluster())
			if got := tc.ask(ssn); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// A session holds the jobs that may be placed, oldest first, and says why others may not.
func TestJobsOfASession(t *testing.T) {
	picky := testPlugin{name: "picky", open: func(ssn *Session) {
		ssn.AddJobValidFn("picky", func(j *api.JobInfo) *api.Verdict {
			if strings.Contains(j.Key, "bad") {
				return &api.Verdict{Reason: v1alpha1.ReasonNotEnoughPods}
			}
			return nil
		})
	}}
	opened := 0
	later := testPlugin{name: "later", open: func(ssn *Session) {
		ssn.AddOpenedFn("later", func() { opened = len(ssn.Jobs()) })
	}}
	c := NewCluster()
	c.Events().SetNode(Node("n", 4))
	for age, name := range []string{"young", "bad", "old"} {
		c.Events().SetPod(Pod(name, 1, func(p *v1.Pod) { p.CreationTimestamp = metav1.NewTime(time.Unix(int64(1000-age), 0)) }))
	}
	c.Events().SetPod(Pod("runs", 1, On("n")))
	ssn, _ := open(t, profileOf(t, nil, []testPlugin{picky, later}), c)
	var keys []string
	for _, j := range ssn.Jobs() {
		keys = append(keys, j.Key)
	}
	if got := strings.Join(keys, " "); got != "ns/old ns/young" {
		t.Errorf("jobs: %s", got)
	}
	if opened != 2 {
		t.Errorf("when the session opened, there were %d valid jobs", opened)
	}
	if o := ssn.Outcome(c.Tasks()["bad"].Job); o == nil || o.Job.Reason != v1alpha1.ReasonNotEnoughPods || o.Job.Plugin != "picky" {
		t.Errorf("the outcome of the invalid job is %v", o)
	}
	if o := ssn.Outcome(c.Tasks()["old"].Job); o != nil {
		t.Errorf("the outcome of a job not tried is %v", o)
	}
}
