// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package schedtest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/audit"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

// Bind is a bind that the scheduler decided.
type Bind struct {
	Pod, Node string // as the rows spell them

	uid             api.TaskID
	queue, groupUID string
	request         api.Resource
}

// cycle records the decisions and the outcome of a session. It implements Effects.
type cycle struct {
	cluster *Scenario
	model   *model.Cluster

	binds   []Bind
	evicted []*api.TaskInfo
	decided map[api.TaskID]bool
	faults  []string
	plans   []Plan

	decisions []string // lines
	waiting   []waiting
	waits     []string // lines
	nearest   []string // lines: what messages of PodGroups have in addition
	refusals  []framework.RefusalCount
	phases    map[string]string
	wake      time.Time // latest time of the next session
}

// waiting is a job that waits, or a task of it whose reason is another one.
type waiting struct {
	name    string
	job     *api.JobInfo
	verdict *api.Verdict // nil: that of the job
}

// Commit records decisions and checks that each is valid.
func (r *cycle) Commit(decisions []api.Decision) {
	for _, d := range decisions {
		name := r.cluster.podName(d.Task)
		if r.decided[d.Task.ID] {
			r.fault("%s is decided twice", name)
		}
		r.decided[d.Task.ID] = true
		switch d.Kind {
		case api.Allocate:
			r.bind(d, name)
			r.checkNominated(decisions, d)
		case api.Evict:
			r.evict(d, name)
		default:
			r.fault("%s is bound although it waits for resources", name)
		}
	}
}

func (r *cycle) bind(d api.Decision, name string) {
	if d.Task.InFlight() || d.Task.Pod.Spec.NodeName != "" {
		r.fault("%s is bound a second time", name)
	}
	if verdict := r.model.Admissible(d.Task.Job); verdict != nil {
		r.fault("%s is bound although its job cannot be: %s", name, verdict.Message(r.model.Dims()))
	}
	b := Bind{
		Pod: name, Node: d.Node.Name, uid: d.Task.ID, queue: string(d.Task.Job.QueueName), groupUID: string(d.Task.Job.GroupUID()),
		request: d.Task.Request,
	}
	r.binds = append(r.binds, b)
	r.decisions = append(r.decisions, "bind "+b.Pod+" "+b.Node)
}

func (r *cycle) evict(d api.Decision, name string) {
	if shown := d.Task.Pod; shown.Spec.NodeName == "" || shown.DeletionTimestamp != nil || d.Task.Job == nil {
		r.fault("%s is evicted and does not run as a member of a queue", name)
	}
	r.evicted = append(r.evicted, d.Task)
	r.decisions = append(r.decisions, fmt.Sprintf("evict %s for %s", name, r.cluster.jobName(d.For)))
}

func (r *cycle) fault(format string, args ...any) {
	r.faults = append(r.faults, fmt.Sprintf(format, args...))
}

// observe reads placements, and what waits, from a session before it closes.
func (r *cycle) observe(ssn *framework.Session) {
	for _, t := range r.model.Tasks() {
		switch {
		case t.Status == api.Pipelined:
			r.decisions = append(r.decisions, "pipeline "+r.cluster.podName(t)+" "+t.Node.Name)
		case t.Status == api.Allocated:
			r.decisions = append(r.decisions, "hold "+r.cluster.podName(t)+" "+t.Node.Name)
		}
	}
	r.phases = map[string]string{}
	for _, j := range r.model.Jobs() {
		r.observeJob(j, ssn.Outcome(j))
	}
	slices.SortFunc(r.decisions, byNumbers)
}

func (r *cycle) observeJob(j *api.JobInfo, outcome *framework.Outcome) {
	name := r.cluster.jobName(j)
	if outcome == nil || j.Waiting() == 0 && j.Ready() {
		return
	}
	if outcome.Job != nil {
		r.waiting = append(r.waiting, waiting{name, j, nil})
	}
	explained := map[*api.Signature]bool{}
	tasks := slices.SortedFunc(slices.Values(j.Tasks), func(a, b *api.TaskInfo) int {
		return api.CompareAge(a.Created, b.Created, a.Key, b.Key)
	})
	for _, t := range tasks {
		if v := outcome.Tasks[t.Signature]; v != nil && t.Waiting() && !explained[t.Signature] {
			explained[t.Signature] = true
			r.waiting = append(r.waiting, waiting{r.cluster.podName(t), j, v})
		}
	}
}

// explain words why jobs and tasks wait, after the session has closed: policies add to it then.
func (r *cycle) explain(ssn *framework.Session) {
	for _, w := range r.waiting {
		outcome, v := ssn.Outcome(w.job), w.verdict
		if v == nil {
			v = outcome.Job
			if text := v.NearestMessage(r.model.Dims()); text != "" {
				r.nearest = append(r.nearest, w.name+text)
			}
		}
		text := "waits " + w.name + " " + v.Reason
		if message := outcome.Message(v, r.model.Dims()); message != "" {
			r.checkDiscretion(w.job, message)
			text += ": " + message
		}
		r.waits = append(r.waits, text)
	}
	slices.SortFunc(r.waits, byNumbers)
	slices.SortFunc(r.nearest, byNumbers)
}

func (r *cycle) transcript() string { return lines(r.decisions) }

func lines(list []string) string { return strings.Join(list, "\n") }

// Cycle applies pending events, runs one session, and returns the decisions as sorted lines:
//
//	bind q/a-0 n1        goes to the API server
//	pipeline q/a-1 n2    waits for resources that are being released
//	hold q/a-2 n3        has a placement, and waits for the rest of its gang
//	evict q/b-0 for q/a  goes to the API server
func (s *Scenario) Cycle() string {
	s.t.Helper()
	s.Wait(time.Second)
	s.replicas.apply(s.t)
	first := s.replicas.ordered.session(s.t, s)
	second := s.replicas.shuffled.session(s.t, s)
	output := func(r *cycle) string {
		return lines(slices.Concat(r.decisions, r.waits, r.nearest)) + fmt.Sprintf("\nrefusals: %v", r.refusals)
	}
	if diff := cmp.Diff(output(first), output(second)); diff != "" {
		s.t.Fatalf("the same objects in another order lead to other decisions:\n%s", diff)
	}
	s.replayCommitted(first)
	s.inFlight = append(s.inFlight, first.binds...)
	for _, t := range first.evicted {
		s.evictionsInFlight = append(s.evictionsInFlight, s.podName(t))
	}
	s.last = first
	return first.transcript()
}

// replayCommitted applies the committed decisions, and nothing else, to the model without sessions, and compares the models: a
// session must leave no trace of statements that it did not commit.
func (s *Scenario) replayCommitted(last *cycle) {
	s.t.Helper()
	sessionless := s.replicas.sessionless.model
	for _, t := range last.evicted {
		sessionless.Ledger().MarkEvicting(sessionless.Tasks()[t.ID])
	}
	for _, b := range last.binds {
		t := sessionless.Tasks()[b.uid]
		sessionless.Ledger().Place(t, api.Allocated, sessionless.Node(b.Node))
		sessionless.Ledger().AssumePod(t, s.clock.Now())
	}
	sessionless.Events().Recompute()
	want := audit.Dump(sessionless)
	for _, r := range []*replica{s.replicas.ordered, s.replicas.shuffled} {
		if diff := cmp.Diff(want, audit.Dump(r.model)); diff != "" {
			s.t.Fatalf("the session has changed more (+) than its binds (-), %s:\n%s", r.title, diff)
		}
	}
}

// Waits returns why jobs waited at the end of the last cycle, as sorted lines "waits q/a Reason: message". Members
// whose reason differs from that of their gang, or whose gang has started, have lines of their own.
func (s *Scenario) Waits() string {
	s.t.Helper()
	if s.last == nil {
		s.t.Fatal("Waits: there was no cycle yet")
	}
	return lines(s.last.waits)
}

// Phase returns the phase of a PodGroup at the end of the last cycle.
func (s *Scenario) Phase(group string) string {
	s.t.Helper()
	g := s.group(group)
	j := s.replicas.ordered.model.Jobs()[api.JobID("group/"+g.Namespace+"/"+g.Name)]
	if j == nil {
		s.t.Fatalf("Phase(%q): the model does not know the group; run a cycle first", group)
	}
	return string(j.Phase())
}

// Held returns what a queue has allocated at the end of the last cycle, formatted.
func (s *Scenario) Held(queue string) string {
	s.t.Helper()
	m := s.replicas.ordered.model
	q := m.Queues()[api.QueueID(queue)]
	if q == nil {
		s.t.Fatalf("Held(%q): no such queue", queue)
	}
	return m.Dims().Format(q.Allocated)
}

// State returns tasks by job, node and status at the end of the last cycle, as sorted lines. Pods of a group with the
// same requests, labels and priority are indistinguishable in it.
func (s *Scenario) State() string {
	m := s.replicas.ordered.model
	counts := map[string]int{}
	for _, t := range m.Tasks() {
		node, blocked := "no node", ""
		if t.Node != nil {
			node = t.Node.Name
		}
		if t.Status == api.Running && !t.Evictable() {
			blocked = " blocked"
		}
		counts[fmt.Sprintf("%s: %s %d %v %s %s%s", s.jobName(t.Job), m.Dims().Format(t.Request), t.Priority, t.Pod.Labels, node, t.Status, blocked)]++
	}
	var state []string
	for line, n := range counts {
		state = append(state, fmt.Sprintf("%d of %s", n, line))
	}
	slices.Sort(state)
	return lines(state)
}

// Plans returns the plans of the last cycle in the order of decisions.
func (s *Scenario) Plans() []Plan { return s.last.plans }

// WaitUntilDue advances the clock to the time at which the last session requested the next one.
func (s *Scenario) WaitUntilDue() {
	if s.last != nil && s.last.wake.After(s.clock.Now()) {
		s.clock.SetTime(s.last.wake)
	}
}

// byNumbers compares lines such that a-2 precedes a-10.
func byNumbers(a, b string) int {
	for a != "" && b != "" {
		x, restA := chunk(a)
		y, restB := chunk(b)
		if x != y {
			if isDigit(x[0]) && isDigit(y[0]) && len(x) != len(y) {
				return len(x) - len(y)
			}
			return strings.Compare(x, y)
		}
		a, b = restA, restB
	}
	return len(a) - len(b)
}

// chunk splits off the leading digits, or everything before the next digit.
func chunk(s string) (first, rest string) {
	i := 1
	for i < len(s) && isDigit(s[i]) == isDigit(s[0]) {
		i++
	}
	return s[:i], s[i:]
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }
