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

// Bind is a decision that went to the API server.
type Bind struct {
	Pod, Node string // as the rows name them

	uid             api.TaskID
	queue, groupUID string
	request         api.Resource
}

// cycle is what a session has decided and found out. It is the Effects of the session.
type cycle struct {
	cluster *Cluster
	model   *model.Cluster

	binds   []Bind
	evicted []*api.TaskInfo
	decided map[api.TaskID]bool
	faults  []string
	plans   []Plan

	decisions []string // lines
	waits     []string // lines
	phases    map[string]string
	wake      time.Time // when the next session must be at the latest
}

// Commit records decisions, and that each is one that may be taken.
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
			r.fault("%s is to be bound although it waits for room", name)
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

// observe reads what a session holds for waiting gangs and what it has to say, before it closes.
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
	r.wake = ssn.Wake()
	for _, j := range r.model.Jobs() {
		r.observeJob(j, ssn.Outcome(j))
	}
	slices.SortFunc(r.decisions, byNumbers)
	slices.SortFunc(r.waits, byNumbers)
}

func (r *cycle) observeJob(j *api.JobInfo, outcome *framework.Outcome) {
	name := r.cluster.jobName(j)
	if outcome == nil || j.Waiting() == 0 && j.Ready() {
		return
	}
	line := func(name string, v *api.Verdict) {
		text := "waits " + name + " " + v.Reason
		if message := outcome.Message(v, r.model.Dims()); message != "" {
			r.checkDiscretion(j, message)
			text += ": " + message
		}
		r.waits = append(r.waits, text)
	}
	if outcome.Job != nil {
		line(name, outcome.Job)
	}
	told := map[*api.Signature]bool{}
	tasks := slices.SortedFunc(slices.Values(j.Tasks), func(a, b *api.TaskInfo) int {
		return api.CompareAge(a.Created, b.Created, a.Key, b.Key)
	})
	for _, t := range tasks {
		if v := outcome.Tasks[t.Signature]; v != nil && t.Waiting() && !told[t.Signature] {
			told[t.Signature] = true
			line(r.cluster.podName(t), v)
		}
	}
}

func (r *cycle) transcript() string { return lines(r.decisions) }

func lines(list []string) string { return strings.Join(list, "\n") }

// Cycle applies what has happened, runs one session, and returns the decisions as sorted lines:
//
//	bind q/a-0 n1        goes to the API server
//	pipeline q/a-1 n2    waits for room that is being released
//	hold q/a-2 n3        has room, and waits for the rest of its gang
//	evict q/b-0 for q/a  goes to the API server
func (c *Cluster) Cycle() string {
	c.t.Helper()
	c.Wait(time.Second)
	c.replicas.apply(c.t)
	first := c.replicas.ordered.session(c.t, c)
	second := c.replicas.shuffled.session(c.t, c)
	said := func(r *cycle) string { return lines(r.decisions) + "\n" + lines(r.waits) }
	if diff := cmp.Diff(said(first), said(second)); diff != "" {
		c.t.Fatalf("the same objects in another order lead to other decisions:\n%s", diff)
	}
	c.launch(first)
	c.inFlight = append(c.inFlight, first.binds...)
	for _, t := range first.evicted {
		c.leaving = append(c.leaving, c.podName(t))
	}
	c.last = first
	return first.transcript()
}

// launch gives the still model what was committed, and nothing else, and compares: whatever a
// session tried and did not commit must have left no trace.
func (c *Cluster) launch(last *cycle) {
	c.t.Helper()
	still := c.replicas.still.model
	for _, t := range last.evicted {
		still.Ledger().MarkEvicting(still.Tasks()[t.ID])
	}
	for _, b := range last.binds {
		t := still.Tasks()[b.uid]
		still.Ledger().Place(t, api.Allocated, still.Node(b.Node))
		still.Ledger().AssumePod(t)
	}
	still.Events().Recompute()
	want := audit.Dump(still)
	for _, r := range []*replica{c.replicas.ordered, c.replicas.shuffled} {
		if diff := cmp.Diff(want, audit.Dump(r.model)); diff != "" {
			c.t.Fatalf("the session has changed more (+) than its binds (-), %s:\n%s", r.title, diff)
		}
	}
}

// Waits returns why jobs waited at the end of the last cycle, as sorted lines
// "waits q/a Reason: message"; members whose reason differs from that of their gang, or whose
// gang has started, have lines of their own.
func (c *Cluster) Waits() string {
	c.t.Helper()
	if c.last == nil {
		c.t.Fatal("Waits: there was no cycle yet")
	}
	return lines(c.last.waits)
}

// Phase returns the phase of a group as of the end of the last cycle.
func (c *Cluster) Phase(group string) string {
	c.t.Helper()
	g := c.group(group)
	j := c.replicas.ordered.model.Jobs()[api.JobID("group/"+g.Namespace+"/"+g.Name)]
	if j == nil {
		c.t.Fatalf("Phase(%q): the model does not know the group; run a cycle first", group)
	}
	return string(j.Phase())
}

// Held returns what a queue holds as of the end of the last cycle, in words.
func (c *Cluster) Held(queue string) string {
	c.t.Helper()
	m := c.replicas.ordered.model
	q := m.Queues()[api.QueueID(queue)]
	if q == nil {
		c.t.Fatalf("Held(%q): no such queue", queue)
	}
	return m.Dims().Format(q.Allocated)
}

// State returns what is where as of the end of the last cycle, as sorted lines. Pods of a group that
// ask for the same, with the same labels and priority, are equal in it.
func (c *Cluster) State() string {
	m := c.replicas.ordered.model
	counts := map[string]int{}
	for _, t := range m.Tasks() {
		node, refused := "no node", ""
		if t.Node != nil {
			node = t.Node.Name
		}
		if t.Status == api.Running && !t.Evictable() {
			refused = " protected"
		}
		counts[fmt.Sprintf("%s: %s %d %v %s %s%s", c.jobName(t.Job), m.Dims().Format(t.Request), t.Priority, t.Pod.Labels, node, t.Status, refused)]++
	}
	var state []string
	for line, n := range counts {
		state = append(state, fmt.Sprintf("%d of %s", n, line))
	}
	slices.Sort(state)
	return lines(state)
}

func (c *Cluster) podName(t *api.TaskInfo) string {
	if name := c.names[string(t.ID)]; name != "" {
		return name
	}
	return t.Key
}

func (c *Cluster) jobName(j *api.JobInfo) string {
	if j == nil {
		return "nobody"
	}
	if name := c.names[j.GroupName]; name != "" && !j.Shadow() {
		return name
	}
	return strings.TrimPrefix(j.Key, "ns/")
}

// byNumbers orders lines so that a-2 comes before a-10.
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

// chunk splits off the leading digits, or all before the next digit.
func chunk(s string) (first, rest string) {
	i := 1
	for i < len(s) && isDigit(s[i]) == isDigit(s[0]) {
		i++
	}
	return s[:i], s[i:]
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }
