// Package upstream puts questions about tasks of the model to filter plugins of kube-scheduler:
// inter-pod affinity, topology spread, and those about volumes and devices.
//
// The plugins see the model through a mirror, kept lazily: nothing is built before the first
// question, and afterwards only nodes that the model touched are built anew. What a plugin
// computes before it looks at nodes (PreFilter) is computed once per class and state of the
// model, not once per task; where a plugin can be told of single pods that came or went, it is.
package upstream

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerframework "k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// FilterRunner answers with the words of kube-scheduler's plugins. It lives as long as the
// configuration, and answers between Open and Close, for one goroutine.
type FilterRunner struct {
	snapshot *snapshot
	// neighbours look at other pods, storage at volumes, hardware at devices; without informers there are
	// neighbours only.
	neighbours, storage, hardware []check

	claims     *claims
	devices    *Devices
	kube       kubernetes.Interface
	binding    binding // one of storage; nil without informers
	allocating binding // one of hardware; nil without informers
	timeout    time.Duration

	// For one session:
	ctx              context.Context
	log              logr.Logger
	preFilterResults map[cacheKey]*preFilterResult
	words            map[api.Unfit]*api.Unfit
	plugin           string
}

// check is one plugin, with the reason under which its refusals go.
type check struct {
	plugin
	reason api.UnfitReason
	// follows tells that what the plugin computes before it looks at nodes can be kept up by telling it
	// which pods came and went, anywhere and in any number, and is then the same as if computed anew.
	follows bool
}

type plugin interface {
	fwk.PreFilterPlugin
	fwk.FilterPlugin
}

// cacheKey is what an opinion is formed about.
type cacheKey struct {
	class *api.EquivalenceClass
	when  api.When
}

// preFilterResult is what the plugins think of a class before they look at single nodes.
type preFilterResult struct {
	position uint64     // of the snapshot in the journal of node changes
	changes  uint64     // of the mirror
	nowhere  *api.Unfit // set when no node will do
	state    fwk.CycleState
	checks   []*check // those that want to look at nodes
}

// Options are what plugins are made of.
type Options struct {
	// Plugin is the name of the plugin that refuses on behalf of upstream's plugins.
	Plugin string
	// Informers may be nil: then nothing is known about volumes and devices.
	Informers informers.SharedInformerFactory
	// Devices are of the same informers.
	Devices *Devices
	// Kube writes claims and volumes that are to be bound; nil where nothing is.
	Kube     kubernetes.Interface
	Features feature.Features
	// BindTimeout is how long claims may take to be bound.
	BindTimeout time.Duration
}

// NewFilterRunner builds the plugins.
func NewFilterRunner(o Options) (*FilterRunner, error) {
	j := &FilterRunner{plugin: o.Plugin, snapshot: &snapshot{}, timeout: o.BindTimeout, kube: o.Kube}
	h := &handle{mirror: j.snapshot, factory: o.Informers, kube: o.Kube, devices: o.Devices}
	var err error
	if j.neighbours, err = neighbourChecks(h, o.Features); err != nil {
		return nil, err
	}
	if o.Informers == nil {
		return j, nil
	}
	j.claims = newClaims(o.Informers)
	if j.storage, err = storageChecks(h, o.Features, o.BindTimeout); err != nil {
		return nil, err
	}
	if j.binding, err = bindingOf(j.storage); err != nil {
		return nil, err
	}
	j.devices = o.Devices
	if j.hardware, err = deviceChecks(h, o.Features); err != nil {
		return nil, err
	}
	j.allocating, err = bindingOf(j.hardware)
	return j, err
}

// Open begins a session over the model.
func (j *FilterRunner) Open(cluster api.ClusterView, log logr.Logger) {
	j.snapshot.reflect(cluster)
	j.ctx, j.log = klog.NewContext(context.Background(), log), log
	j.preFilterResults, j.words = map[cacheKey]*preFilterResult{}, map[api.Unfit]*api.Unfit{}
}

// Close ends the session. Opinions go with it: claims, volumes and devices may change in between. What is
// mirrored of the nodes stays.
func (j *FilterRunner) Close() {
	j.ctx, j.preFilterResults, j.words = nil, nil, nil
	j.snapshot.changes.forget()
}

// Unfit returns why a pod of the class cannot go to the node, or nil. The node must exist.
func (j *FilterRunner) Unfit(class *api.EquivalenceClass, pod *v1.Pod, n *api.NodeInfo, when api.When) *api.Unfit {
	when = j.snapshot.sync(when)
	o := j.preFilterResultOf(class, pod, when)
	if o.nowhere != nil {
		return o.nowhere
	}
	for _, c := range o.checks {
		if status := c.Filter(j.ctx, o.state, pod, j.snapshot.node(n, when)); !status.IsSuccess() {
			return j.unfit(c, pod, status)
		}
	}
	return nil
}

func (j *FilterRunner) preFilterResultOf(class *api.EquivalenceClass, pod *v1.Pod, when api.When) *preFilterResult {
	q := cacheKey{class, when}
	old := j.preFilterResults[q]
	if old != nil && old.position == j.snapshot.reader.Position() {
		return old
	}
	o := j.form(class, pod, when, old)
	j.preFilterResults[q] = o
	return o
}

// form asks all plugins that the class concerns for their opinion; old is the last one, or nil. None of them
// narrows the set of nodes in PreFilter, so its first result is not looked at.
func (j *FilterRunner) form(class *api.EquivalenceClass, pod *v1.Pod, when api.When, old *preFilterResult) *preFilterResult {
	o := &preFilterResult{position: j.snapshot.reader.Position(), changes: j.snapshot.changes.count()}
	if o.nowhere = j.unknown(class.Signature); o.nowhere != nil {
		return o
	}
	o.state = schedulerframework.NewCycleState()
	if old != nil && old.state != nil {
		o.state = old.state // what is not kept is written anew
	}
	ask := func(checks []check) {
		for i := range checks {
			c := &checks[i]
			if j.follow(old, c, pod, when) {
				o.checks = append(o.checks, c)
				continue
			}
			j.snapshot.list(when)
			_, status := c.PreFilter(j.ctx, o.state, j.asSeenBy(c, pod), j.snapshot.all)
			switch {
			case status.IsSkip():
			case status.IsSuccess():
				o.checks = append(o.checks, c)
			case o.nowhere == nil:
				o.nowhere = j.unfit(c, pod, status)
			}
		}
	}
	if class.Signature.Volumes {
		ask(j.storage)
	}
	if class.Signature.Claims {
		ask(j.hardware)
	}
	if class.AffectedByPods() {
		ask(j.neighbours)
	}
	return o
}

// asSeenBy returns what a plugin is to know of a pod: the one that binds volumes has no say about claims that
// are bound for others already.
func (j *FilterRunner) asSeenBy(c *check, pod *v1.Pod) *v1.Pod {
	if c.plugin == plugin(j.binding) {
		pod, _ = j.claims.unshared(pod)
	}
	return pod
}

// follow tells a plugin what has changed since an opinion was formed, if it had one then, can be told, and
// the changes are still known. It reports whether the plugin is up to date.
func (j *FilterRunner) follow(old *preFilterResult, c *check, pod *v1.Pod, when api.When) bool {
	if old == nil || !c.follows || !slices.Contains(old.checks, c) {
		return false
	}
	list, known := j.snapshot.changes.since(old.changes)
	if !known {
		return false
	}
	told := c.PreFilterExtensions()
	tell := func(news func(context.Context, fwk.CycleState, *v1.Pod, fwk.PodInfo, fwk.NodeInfo) *fwk.Status) func(fwk.PodInfo, fwk.NodeInfo) {
		return func(p fwk.PodInfo, n fwk.NodeInfo) {
			known = known && news(j.ctx, old.state, pod, p, n).IsSuccess()
		}
	}
	gone, come := tell(told.RemovePod), tell(told.AddPod)
	for _, c := range list {
		c.visit(when, gone, come)
	}
	return known
}

// unknown returns why nobody can answer for tasks of this shape, or nil.
func (j *FilterRunner) unknown(signature *api.Signature) *api.Unfit {
	switch {
	case signature.Claims && j.devices == nil:
		return j.say(api.Unfit{Reason: api.ClaimUnfit, Detail: "resource claims are not watched"})
	case signature.Claims && !j.devices.read():
		return j.say(api.Unfit{Reason: api.ClaimUnfit, Detail: "resource claims are not synced yet"})
	case signature.Volumes && j.claims == nil:
		return j.say(api.Unfit{Reason: api.VolumeUnfit, Detail: "volumes are not watched"})
	}
	return nil
}

// unfit translates a refusal. A plugin that fails rather than refuses is logged, once a session.
func (j *FilterRunner) unfit(c *check, pod *v1.Pod, status *fwk.Status) *api.Unfit {
	before := len(j.words)
	unfit := j.say(api.Unfit{
		Reason: c.reason, Detail: strings.Join(status.Reasons(), " and "), Fixed: status.Code() == fwk.UnschedulableAndUnresolvable,
	})
	if err := status.AsError(); status.Code() == fwk.Error && len(j.words) > before {
		j.log.Error(err, "A plugin of kube-scheduler failed, the pod is kept waiting", "plugin", c.Name(), "pod", klog.KObj(pod))
	}
	return unfit
}

// say returns the one refusal with these words.
func (j *FilterRunner) say(words api.Unfit) *api.Unfit {
	words.Plugin = j.plugin
	unfit := j.words[words]
	if unfit == nil {
		unfit = &words
		j.words[words] = unfit
	}
	return unfit
}

// parallelizer lets plugins visit nodes on all processors; what they sum does not depend on the
// order.
type parallelizer struct{}

func (parallelizer) Until(ctx context.Context, pieces int, work workqueue.DoWorkPieceFunc, _ string) {
	const chunk = 64
	workqueue.ParallelizeUntil(ctx, runtime.GOMAXPROCS(0), pieces, work, workqueue.WithChunkSize(chunk))
}
