// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package upstream runs filter plugins of kube-scheduler for tasks of the model: inter-pod affinity, topology spread,
// and the plugins for volumes and devices.
//
// The plugins read the model through a NodeInfo snapshot, which is built lazily: the first Filter call builds it, and
// later calls rebuild only nodes that changed in the model. PreFilter runs once per equivalence class and state of
// the model, not once per task. Where a plugin supports it, the AddPod and RemovePod extensions update its PreFilter
// state instead.
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

// FilterRunner runs kube-scheduler's plugins. It exists as long as the configuration. Callers may use it between Open
// and Close, from one goroutine.
type FilterRunner struct {
	plugin   string
	snapshot *snapshot
	// podPlugins depend on other pods, volumePlugins on volumes, devicePlugins on devices. Without informers only
	// podPlugins is set.
	podPlugins, volumePlugins, devicePlugins []filterPlugin

	claims           *claims
	devices          *Devices
	future           *future
	view             *view
	shortages        *Shortages // nil without informers
	kube             kubernetes.Interface
	volumeBinding    binding // one of volumePlugins; nil without informers
	dynamicResources binding // one of devicePlugins; nil without informers
	timeout          time.Duration

	// State of one session:
	ctx              context.Context
	log              logr.Logger
	preFilterResults map[cacheKey]*preFilterResult
	interned         map[api.Unfit]*api.Unfit
	failed           bool // a plugin, at least once
}

// filterPlugin is one plugin with the reason that its rejections carry.
type filterPlugin struct {
	plugin
	reason api.UnfitReason
	// incremental reports whether AddPod and RemovePod update the PreFilter state for pods on any node and in any
	// number, with the same result as a new PreFilter.
	incremental bool
}

type plugin interface {
	fwk.PreFilterPlugin
	fwk.FilterPlugin
}

// cacheKey is the key of a cached PreFilter result.
type cacheKey struct {
	class *api.EquivalenceClass
	when  api.When
}

// preFilterResult is the result of PreFilter of all plugins for an equivalence class.
type preFilterResult struct {
	position                uint64     // see FilterRunner.position
	changes                 uint64     // of the snapshot
	unschedulableEverywhere *api.Unfit // set if the class fits on no node
	state                   fwk.CycleState
	plugins                 []*filterPlugin // plugins whose Filter must run
}

// Options configure a FilterRunner.
type Options struct {
	// Plugin is the name of the plugin that refuses on behalf of kube-scheduler's plugins.
	Plugin string
	// Informers may be nil: then tasks with volumes or devices fit on no node.
	Informers informers.SharedInformerFactory
	// Devices use the same informers.
	Devices *Devices
	// Kube updates claims and volumes on commit; nil if reservations are never committed.
	Kube     kubernetes.Interface
	Features feature.Features
	// BindTimeout is how long binding claims may take.
	BindTimeout time.Duration
}

// NewFilterRunner builds the plugins.
func NewFilterRunner(o Options) (*FilterRunner, error) {
	r := &FilterRunner{plugin: o.Plugin, snapshot: &snapshot{}, timeout: o.BindTimeout, kube: o.Kube}
	r.future, r.view = &future{devices: o.Devices}, &view{pools: &devicePools{devices: o.Devices}}
	h := &handle{snapshot: r.snapshot, factory: o.Informers, kube: o.Kube, devices: o.Devices, future: r.future, view: r.view}
	var err error
	if r.podPlugins, err = newPodPlugins(h, o.Features); err != nil {
		return nil, err
	}
	if o.Informers == nil {
		return r, nil
	}
	r.claims = newClaims(o.Informers)
	if r.volumePlugins, err = newVolumePlugins(h, o.Features, o.BindTimeout); err != nil {
		return nil, err
	}
	if r.volumeBinding, err = bindingOf(r.volumePlugins); err != nil {
		return nil, err
	}
	r.devices, r.shortages = o.Devices, newShortages(o.Devices, r.view.pools)
	if r.devicePlugins, err = newDevicePlugins(h, o.Features); err != nil {
		return nil, err
	}
	r.dynamicResources, err = bindingOf(r.devicePlugins)
	return r, err
}

// Open begins a session over the model.
func (r *FilterRunner) Open(cluster api.ClusterView, log logr.Logger) {
	r.snapshot.setCluster(cluster)
	r.future.cluster = cluster
	r.ctx, r.log = klog.NewContext(context.Background(), log), log
	r.preFilterResults, r.interned = map[cacheKey]*preFilterResult{}, map[api.Unfit]*api.Unfit{}
	if r.devices != nil {
		r.devices.deleteLeftovers(r.kube, cluster.Tasks(), log)
	}
}

// Close ends the session and drops the PreFilter results, because claims, volumes and devices may change between
// sessions. The NodeInfo snapshot stays. It reports whether the next session may find something else although nothing has
// changed: a plugin has failed, or not looked at all nodes in time.
func (r *FilterRunner) Close() (again bool) {
	r.failed, again = false, r.failed
	r.ctx, r.preFilterResults, r.interned = nil, nil, nil
	r.snapshot.changes.forget()
	if r.shortages != nil {
		r.shortages.forget()
	}
	return again
}

// Shortages returns what describes the devices that pods request; nil without informers.
func (r *FilterRunner) Shortages() *Shortages { return r.shortages }

// Unfit returns why a pod of the class does not fit on the node, or nil. The node must exist.
func (r *FilterRunner) Unfit(class *api.EquivalenceClass, pod *v1.Pod, n *api.NodeInfo, when api.When) *api.Unfit {
	if class.Signature.DeviceResources && r.devices != nil && r.devices.extended.deletesOf(pod.UID) {
		return r.internUnfit(api.Unfit{Reason: api.DevicesInUse, Detail: deletesClaim})
	}
	if !r.onlyDevices(class, when) {
		if snapshot := r.snapshot.sync(when); !class.Signature.RequestsDevices() { // claims can outlast their pods
			when = snapshot
		}
	}
	result := r.preFilterResultOf(class, pod, when)
	if result.unschedulableEverywhere != nil {
		return result.unschedulableEverywhere
	}
	for _, c := range result.plugins {
		if c.reason == api.ClaimUnfit && when == api.Now {
			if unfit := r.devicesUnfit(c, pod, n); unfit != nil {
				return unfit
			}
			continue
		}
		if status := c.Filter(r.ctx, result.state, pod, r.snapshot.node(n, when)); !status.IsSuccess() {
			return r.refusal(c, pod, n, status)
		}
	}
	return nil
}

// refusal returns why a plugin refuses a node.
func (r *FilterRunner) refusal(c *filterPlugin, pod *v1.Pod, n *api.NodeInfo, status *fwk.Status) *api.Unfit {
	if c.reason == api.ClaimUnfit {
		if unfit := r.shortages.explain(n, pod, status); unfit != nil {
			return r.internUnfit(*unfit)
		}
	}
	return r.unfit(c, pod, status)
}

// devicesUnfit returns why the devices of a node do not satisfy a pod now, or nil. It counts them first. The plugin runs
// where the counts do not decide, and allocates devices of that node alone.
func (r *FilterRunner) devicesUnfit(c *filterPlugin, pod *v1.Pod, n *api.NodeInfo) *api.Unfit {
	switch search := r.shortages.searchFor(pod); {
	case r.shortages.fits(search, n):
		return nil
	case r.shortages.refused(search, n):
		if unfit := r.shortages.unfit(search, n); unfit != nil {
			return r.internUnfit(*unfit)
		}
		return r.internUnfit(api.Unfit{Reason: api.ClaimUnfit, Detail: cannotAllocate})
	}
	state := schedulerframework.NewCycleState()
	var status *fwk.Status
	r.view.during(n.Name, func() { _, status = c.PreFilter(r.ctx, state, pod, nil) })
	if status.IsSuccess() {
		node := schedulerframework.NewNodeInfo() // the pods there do not matter
		node.SetNode(n.Node)
		status = c.Filter(r.ctx, state, pod, node)
	}
	if status.IsSuccess() || status.IsSkip() {
		return nil
	}
	return r.refusal(c, pod, n, status)
}

const (
	// deletesClaim is the reason of a pod whose claim of an earlier attempt is not deleted yet.
	deletesClaim = "the resource claim of an earlier attempt is being deleted"
	// noClass is the reason of a pod that requests devices of a class that was deleted just now.
	noClass = "no device class provides the requested extended resources"
)

// onlyDevices reports whether nothing but devices restricts the nodes of a class, and not the pods on them. Then there is no
// need to keep the snapshot up to date, which takes long in a cluster with many pods.
func (r *FilterRunner) onlyDevices(class *api.EquivalenceClass, when api.When) bool {
	return when == api.Now && r.devices != nil && class.Signature.RequestsDevices() && !class.Signature.Volumes && !class.AffectedByPods()
}

// position returns what changes when a PreFilter result may differ.
func (r *FilterRunner) position(class *api.EquivalenceClass, when api.When) uint64 {
	if r.onlyDevices(class, when) {
		return r.devices.inUse.now()
	}
	return r.snapshot.reader.Position()
}

func (r *FilterRunner) preFilterResultOf(class *api.EquivalenceClass, pod *v1.Pod, when api.When) *preFilterResult {
	key := cacheKey{class, when}
	old := r.preFilterResults[key]
	if old != nil && old.position == r.position(class, when) {
		return old
	}
	result := r.computePreFilter(class, pod, when, old)
	r.preFilterResults[key] = result
	return result
}

// computePreFilter runs PreFilter of all plugins that apply to the class; old is the previous result, or nil. None of
// these plugins narrows the set of nodes in PreFilter, so that result is ignored.
func (r *FilterRunner) computePreFilter(class *api.EquivalenceClass, pod *v1.Pod, when api.When, old *preFilterResult) *preFilterResult {
	result := &preFilterResult{position: r.position(class, when), changes: r.snapshot.changes.count()}
	if result.unschedulableEverywhere = r.informersUnfit(class.Signature); result.unschedulableEverywhere != nil {
		return result
	}
	result.state = schedulerframework.NewCycleState()
	if old != nil && old.state != nil {
		result.state = old.state // PreFilter overwrites what is not updated incrementally
	}
	preFilter := func(plugins []filterPlugin) {
		for i := range plugins {
			c := &plugins[i]
			if r.applyChanges(old, c, pod, when) {
				result.plugins = append(result.plugins, c)
				continue
			}
			switch status := r.preFilter(c, result.state, pod, when); {
			case status.IsSkip() && c.reason == api.ClaimUnfit && class.Signature.DeviceResources: // the model is not up to date
				result.unschedulableEverywhere = r.internUnfit(api.Unfit{Reason: api.ClaimUnfit, Detail: noClass})
			case status.IsSkip():
			case status.IsSuccess():
				result.plugins = append(result.plugins, c)
			case result.unschedulableEverywhere == nil:
				result.unschedulableEverywhere = r.unfit(c, pod, status)
			}
		}
	}
	if class.Signature.Volumes {
		preFilter(r.volumePlugins)
	}
	if class.Signature.RequestsDevices() {
		preFilter(r.devicePlugins)
	}
	if class.AffectedByPods() {
		preFilter(r.podPlugins)
	}
	return result
}

// preFilter runs PreFilter of a plugin. The one for devices finds out here whether a pod has to wait whatever devices are
// free now: devicesUnfit runs it again for single nodes.
func (r *FilterRunner) preFilter(c *filterPlugin, state fwk.CycleState, pod *v1.Pod, when api.When) (status *fwk.Status) {
	if c.reason == api.ClaimUnfit && when == api.Now {
		r.view.during("", func() { _, status = c.PreFilter(r.ctx, state, pod, nil) })
		return status
	}
	r.snapshot.list(when)
	r.future.on = when == api.Future
	_, status = c.PreFilter(r.ctx, state, r.podFor(c, pod), r.snapshot.all)
	r.future.on = false
	return status
}

// podFor returns the pod for a plugin: without the claims that another reservation binds for the plugin that binds
// volumes, else the pod itself.
func (r *FilterRunner) podFor(c *filterPlugin, pod *v1.Pod) *v1.Pod {
	if c.plugin == plugin(r.volumeBinding) {
		pod, _ = r.claims.withoutHeld(pod)
	}
	return pod
}

// applyChanges updates the PreFilter state of a plugin through AddPod and RemovePod since the old result. It reports
// whether the state is up to date; it is not if the plugin did not run, is not incremental, or the changes are lost.
func (r *FilterRunner) applyChanges(old *preFilterResult, c *filterPlugin, pod *v1.Pod, when api.When) bool {
	if old == nil || !c.incremental || !slices.Contains(old.plugins, c) {
		return false
	}
	list, known := r.snapshot.changes.since(old.changes)
	if !known {
		return false
	}
	extensions := c.PreFilterExtensions()
	applied := func(extension func(context.Context, fwk.CycleState, *v1.Pod, fwk.PodInfo, fwk.NodeInfo) *fwk.Status) func(fwk.PodInfo, fwk.NodeInfo) {
		return func(p fwk.PodInfo, n fwk.NodeInfo) {
			known = known && extension(r.ctx, old.state, pod, p, n).IsSuccess()
		}
	}
	removed, added := applied(extensions.RemovePod), applied(extensions.AddPod)
	for _, c := range list {
		c.forEachPod(when, removed, added)
	}
	return known
}

// informersUnfit returns why the informers do not permit a decision for the signature, or nil.
func (r *FilterRunner) informersUnfit(signature *api.Signature) *api.Unfit {
	switch {
	case signature.RequestsDevices() && r.devices == nil:
		return r.internUnfit(api.Unfit{Reason: api.ClaimUnfit, Detail: "resource claims are not watched"})
	case signature.RequestsDevices() && !r.devices.synced():
		r.failed = true
		return r.internUnfit(api.Unfit{Reason: api.ClaimUnfit, Detail: "resource claims are not synced yet"})
	case signature.Volumes && r.claims == nil:
		return r.internUnfit(api.Unfit{Reason: api.VolumeUnfit, Detail: "volumes are not watched"})
	}
	return nil
}

// unfit converts a status. It logs an error of a plugin once per session.
func (r *FilterRunner) unfit(c *filterPlugin, pod *v1.Pod, status *fwk.Status) *api.Unfit {
	before := len(r.interned)
	value := api.Unfit{Reason: c.reason, Detail: strings.Join(status.Reasons(), " and "), Fixed: status.Code() == fwk.UnschedulableAndUnresolvable}
	if c.reason == api.ClaimUnfit && claimInUse(value.Detail) {
		value.Reason, value.Fixed = api.DevicesInUse, false
	}
	unfit := r.internUnfit(value)
	r.failed = r.failed || status.Code() == fwk.Error
	if err := status.AsError(); status.Code() == fwk.Error && len(r.interned) > before {
		r.log.Error(err, "Plugin of kube-scheduler failed", "plugin", c.Name(), "pod", klog.KObj(pod))
	}
	return unfit
}

// internUnfit returns the shared *api.Unfit with this value.
func (r *FilterRunner) internUnfit(value api.Unfit) *api.Unfit {
	value.Plugin = r.plugin
	unfit := r.interned[value]
	if unfit == nil {
		unfit = &value
		r.interned[value] = unfit
	}
	return unfit
}

// parallelizer lets plugins visit nodes on all processors; their sums do not depend on the order.
type parallelizer struct{}

func (parallelizer) Until(ctx context.Context, pieces int, work workqueue.DoWorkPieceFunc, _ string) {
	const chunk = 64
	workqueue.ParallelizeUntil(ctx, runtime.GOMAXPROCS(0), pieces, work, workqueue.WithChunkSize(chunk))
}
