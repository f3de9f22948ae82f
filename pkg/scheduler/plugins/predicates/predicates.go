// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package predicates is the plugin that filters nodes for a task, with the same results as the default filters of
// kube-scheduler.
//
// Checks that depend only on a pod signature and a node object (readiness, cordons, taints, selectors and node
// affinity) are implemented here and run once per signature and generation of a node: the framework caches the
// result. Host ports are checked against the model's own list. Everything that depends on other pods, on volumes or
// on devices is delegated to kube-scheduler's plugins, but only for tasks that use such a feature or that the
// affinity terms of an existing pod may affect.
//
// It differs from kube-scheduler in three points, each on purpose:
//   - A node whose Ready condition is False or Unknown is rejected at once. kube-scheduler waits
//     for the taint that the node lifecycle controller adds a moment later. A pod that tolerates
//     that taint is admitted here too.
//   - Topology spread has no default constraints: pods without constraints of their own are not
//     spread by the selectors of services and controllers.
//   - Devices with binding conditions are not supported: pods that need them stay pending.
//
// With the argument smallestdevice.weight the plugin also scores nodes, by the size of the devices that claims would get.
//
// Claims that wait for their first consumer are bound with their pods, and so are resource claims: the plugin runs
// kube-scheduler's Reserve for a placement when the session makes it, and PreBind when the placement is committed.
package predicates

import (
	"fmt"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/plugins/predicates/internal/upstream"
)

// Name of the plugin in configurations.
const Name = "predicates"

// Spec registers the plugin.
//
// The plugin requests informers for volumes (persistent volumes and claims, storage classes, CSI nodes, drivers and
// capacities, volume attachments) and for devices (resource claims and slices, device classes) from the handle's
// factory. The caller must start the factory after it builds the plugin, also after a reload. Without informers,
// tasks with volumes or resource claims fit on no node.
func Spec() framework.PluginSpec {
	var devices *upstream.Devices // shared by successive plugins
	return framework.PluginSpec{
		New: func(d *conf.Decoder, handle framework.Handle) (framework.Plugin, error) {
			if handle.Informers != nil && !devices.UsesInformers(handle.Informers) {
				var err error
				if devices, err = upstream.NewDevices(handle.Informers, handle.NotifyChange); err != nil {
					return nil, err
				}
			}
			return newPlugin(decode(d), handle, devices)
		},
		Check:        func(d *conf.Decoder) { decode(d) },
		NeverPermits: []conf.Point{conf.Preemptable, conf.Reclaimable},
		Without:      "pods may be placed on nodes that cannot run them",
	}
}

// plugin exists as long as the configuration.
type plugin struct {
	filter    *filter
	runner    *upstream.FilterRunner
	portTaken *api.Unfit
	sizes     *sizes // nil if its weight is 0
	// unavailable are refusals of this session, by NodeInfo.UnavailableFrom.
	unavailable map[int64]*api.Unfit
}

func newPlugin(a Arguments, handle framework.Handle, devices *upstream.Devices) (*plugin, error) {
	features := feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
	runner, err := upstream.NewFilterRunner(upstream.Options{
		Plugin:    Name,
		Informers: handle.Informers, Devices: devices, Kube: handle.Kube, Features: features, BindTimeout: a.VolumeBindTimeout,
	})
	if err != nil {
		return nil, fmt.Errorf("building the plugins of kube-scheduler: %w", err)
	}
	return &plugin{
		sizes:     newSizes(a, runner),
		filter:    newFilter(a, features.EnableTaintTolerationComparisonOperators),
		runner:    runner,
		portTaken: &api.Unfit{Reason: api.HostPortTaken, Plugin: Name},

		unavailable: map[int64]*api.Unfit{},
	}, nil
}

func (p *plugin) Name() string { return Name }

func (p *plugin) OnSessionOpen(ssn *framework.Session) {
	p.filter.log = ssn.Log
	p.runner.Open(ssn.Cluster(), ssn.Log)
	n := &podDependent{plugin: p, cluster: ssn.Cluster(), now: ssn.Now.UnixNano()}
	wakeForUnavailable(ssn)
	ssn.AddFilterFn(Name, p.filter.unfit)
	ssn.AddPredicateFn(Name, n.unfit)
	ssn.AddReserveFn(Name, n.reserve)
	ssn.AddReserveFn(Name, n.reserveDevices)
	ssn.AddDevicesFn(Name, n.devices)
	if p.sizes != nil {
		p.sizes.Open(ssn.Cluster())
		ssn.AddNodeOrderFn(Name, p.sizes.score)
	}
}

func (p *plugin) OnSessionClose(ssn *framework.Session) {
	if p.runner.Close() {
		ssn.WakeAt(ssn.Now)
	}
	if p.sizes != nil {
		p.sizes.Close()
	}
	clear(p.filter.taints)
	clear(p.unavailable)
}

// podDependent runs, for one session, the checks that depend on the pods on a node.
type podDependent struct {
	*plugin
	cluster api.ClusterView
	now     int64 // in nanoseconds since 1970

	// The last task. Callers usually check many nodes in a row for one task, and the affinity terms that define
	// equivalence classes do not change within a session.
	task        *api.TaskInfo
	class       *api.EquivalenceClass
	runUpstream bool // kube-scheduler's plugins must run for the class
}

// unfit returns why t does not fit on n given the pods there, or nil. It does not allocate for tasks that no other
// pod affects.
func (s *podDependent) unfit(t *api.TaskInfo, n *api.NodeInfo, when api.When) *api.Unfit {
	if n.Outlasts(t, s.now) {
		return s.unavailableSoon(n)
	}
	if n.PortConflict(t, when) {
		return s.portTaken
	}
	if t != s.task {
		s.task, s.class = t, s.cluster.ClassOf(t)
		s.runUpstream = s.class.AffectedByPods() || t.Signature.HasExternalResources()
	}
	if !s.runUpstream {
		return nil
	}
	return s.runner.Unfit(s.class, t.Pod, n, when)
}

// reserve reserves the volumes of t on n.
func (s *podDependent) reserve(t *api.TaskInfo, n *api.NodeInfo) api.ExternalReservation {
	if !t.Signature.Volumes {
		return nil
	}
	return s.runner.Reserve(t.Pod, n)
}

// reserveDevices reserves the devices of t on n.
func (s *podDependent) reserveDevices(t *api.TaskInfo, n *api.NodeInfo) api.ExternalReservation {
	if !t.Signature.RequestsDevices() {
		return nil
	}
	return s.runner.ReserveDevices(t, n)
}
