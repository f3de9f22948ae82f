// Package predicates is the plugin that says where a task cannot go, verdict for verdict as the default filters of
// kube-scheduler do.
//
// What a shape and a node object decide alone (readiness, cordons, taints, selectors and node
// affinity) is answered by code of this package, once per shape and version of a node: the
// framework remembers it. Host ports are answered from the model's own list. Everything that
// depends on other pods, on volumes or on devices is put to kube-scheduler's plugins themselves,
// but only about tasks that use such a feature or that an existing pod may have something to say
// about.
//
// It differs from kube-scheduler in three points, each on purpose:
//   - A node whose Ready condition is False or Unknown is refused at once. kube-scheduler waits
//     for the taint that the node lifecycle controller adds a moment later; whoever tolerates
//     that taint is let through here too.
//   - Topology spread has no default constraints: pods without constraints of their own are not
//     spread by what services and controllers select them.
//   - Of resource claims, those are not supported that a scheduler makes for extended resources,
//     nor are devices with binding conditions: such pods find no room.
//
// Claims that wait for their first consumer are bound with their pods, and so are resource claims:
// what kube-scheduler's plugin chooses for a placement is reserved with it, and written when the
// placement is carried out.
package predicates

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/plugins/predicates/internal/upstream"
)

// Name of the plugin in configurations.
const Name = "predicates"

// Arguments of the plugin; what kube-batch has is named as there.
type Arguments struct {
	// MemoryPressure, DiskPressure and PIDPressure refuse nodes that report the condition. The
	// node lifecycle controller also taints such nodes, so this matters only without it.
	MemoryPressure, DiskPressure, PIDPressure bool
	// VolumeBindTimeout is how long claims of either kind may take to be bound before their pods are placed anew.
	VolumeBindTimeout time.Duration
}

// maxBindTimeoutSeconds is a day: nobody waits longer for a volume.
const maxBindTimeoutSeconds = 24 * 60 * 60

func decode(d *conf.Decoder) Arguments {
	return Arguments{
		MemoryPressure: d.Bool("predicate.MemoryPressureEnable", false, "refuses nodes that report memory pressure, also without a taint"),
		DiskPressure:   d.Bool("predicate.DiskPressureEnable", false, "the same for disk pressure"),
		PIDPressure:    d.Bool("predicate.PIDPressureEnable", false, "the same for process ids"),

		VolumeBindTimeout: time.Second * time.Duration(d.Int("predicate.VolumeBindTimeoutSeconds", 600, 1, maxBindTimeoutSeconds,
			"how many seconds the claims of a gang, for volumes or devices, may take to be bound before it is placed anew")),
	}
}

// Spec registers the plugin.
//
// The handle's informers serve volumes: persistent volumes and claims, storage classes, CSI
// nodes, drivers and capacities, and volume attachments; and devices: resource claims and
// slices, and device classes. Making the plugin asks for them, so their factory must be started
// afterwards, also when a reload made the plugin. Without informers, tasks with volumes or
// resource claims fit nowhere.
func Spec() framework.PluginSpec {
	var devices *upstream.Devices // those of the last plugin
	return framework.PluginSpec{
		New: func(d *conf.Decoder, handle framework.Handle) (framework.Plugin, error) {
			if handle.Informers != nil && !devices.Of(handle.Informers) {
				var err error
				if devices, err = upstream.NewDevices(handle.Informers); err != nil {
					return nil, err
				}
			}
			return newPlugin(decode(d), handle, devices)
		},
		Check:        func(d *conf.Decoder) { decode(d) },
		NeverPermits: []conf.Point{conf.Preemptable, conf.Reclaimable},
	}
}

// plugin lives as long as the configuration.
type plugin struct {
	filter    *filter
	runner    *upstream.FilterRunner
	portTaken *api.Unfit
}

func newPlugin(a Arguments, handle framework.Handle, devices *upstream.Devices) (*plugin, error) {
	features := feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
	judge, err := upstream.NewFilterRunner(upstream.Options{
		Plugin:    Name,
		Informers: handle.Informers, Devices: devices, Kube: handle.Kube, Features: features, BindTimeout: a.VolumeBindTimeout,
	})
	if err != nil {
		return nil, fmt.Errorf("building the plugins of kube-scheduler: %w", err)
	}
	return &plugin{
		filter:    newFilter(a, features.EnableTaintTolerationComparisonOperators),
		runner:    judge,
		portTaken: &api.Unfit{Reason: api.HostPortTaken, Plugin: Name},
	}, nil
}

func (p *plugin) Name() string { return Name }

func (p *plugin) OnSessionOpen(ssn *framework.Session) {
	p.filter.log = ssn.Log
	p.runner.Open(ssn.Cluster(), ssn.Log)
	n := &neighbours{plugin: p, cluster: ssn.Cluster()}
	ssn.AddFilterFn(Name, p.filter.unfit)
	ssn.AddPredicateFn(Name, n.unfit)
	ssn.AddReserveFn(Name, n.reserve)
	ssn.AddReserveFn(Name, n.reserveDevices)
}

func (p *plugin) OnSessionClose(*framework.Session) { p.runner.Close() }

// neighbours answers for one session what depends on what stands on a node.
type neighbours struct {
	*plugin
	cluster api.ClusterView

	// The last task asked about: one task is usually asked about many nodes in a row, and the
	// terms that classes are made of stand still within a session.
	task   *api.TaskInfo
	class  *api.EquivalenceClass
	upward bool // the class has to be put to kube-scheduler's plugins
}

// unfit returns why t cannot go to n given its neighbours, or nil. It allocates nothing for
// tasks that nobody else has a say about.
func (s *neighbours) unfit(t *api.TaskInfo, n *api.NodeInfo, when api.When) *api.Unfit {
	if n.PortConflict(t, when) {
		return s.portTaken
	}
	if t != s.task {
		s.task, s.class = t, s.cluster.ClassOf(t)
		s.upward = s.class.AffectedByPods() || t.Signature.HasExternalResources()
	}
	if !s.upward {
		return nil
	}
	return s.runner.Unfit(s.class, t.Pod, n, when)
}

// reserve sets the volumes aside that t takes on n.
func (s *neighbours) reserve(t *api.TaskInfo, n *api.NodeInfo) api.ExternalReservation {
	if !t.Signature.Volumes {
		return nil
	}
	return s.runner.Reserve(t.Pod, n)
}

// reserveDevices sets the devices aside that t takes on n.
func (s *neighbours) reserveDevices(t *api.TaskInfo, n *api.NodeInfo) api.ExternalReservation {
	if !t.Signature.Claims {
		return nil
	}
	return s.runner.ReserveDevices(t.Pod, n)
}

// pressures returns the node conditions that refuse a node.
func (a Arguments) pressures() []v1.NodeConditionType {
	var kinds []v1.NodeConditionType
	if a.MemoryPressure {
		kinds = append(kinds, v1.NodeMemoryPressure)
	}
	if a.DiskPressure {
		kinds = append(kinds, v1.NodeDiskPressure)
	}
	if a.PIDPressure {
		kinds = append(kinds, v1.NodePIDPressure)
	}
	return kinds
}
