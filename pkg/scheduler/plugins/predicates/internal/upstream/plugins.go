// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/interpodaffinity"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/podtopologyspread"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumerestrictions"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumezone"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// pluginSpec builds one plugin of kube-scheduler.
type pluginSpec struct {
	reason      api.UnfitReason
	incremental bool              // see filterPlugin
	args        apiruntime.Object // nil if the plugin takes none
	new         func(context.Context, apiruntime.Object, fwk.Handle, feature.Features) (fwk.Plugin, error)
}

// newPodPlugins returns the plugins for tasks that other pods affect.
func newPodPlugins(h fwk.Handle, features feature.Features) ([]filterPlugin, error) {
	return newPlugins(h, features, []pluginSpec{
		// With list defaulting and an empty list, only constraints of the pod itself count.
		// Its AddPod and RemovePod support only pods of one node.
		{api.TopologySpread, false, &config.PodTopologySpreadArgs{DefaultingType: config.ListDefaulting}, podtopologyspread.New},
		{api.PodAffinity, true, &config.InterPodAffinityArgs{HardPodAffinityWeight: 1}, interpodaffinity.New},
	})
}

// newVolumePlugins returns the plugins for tasks with volumes. Restrictions and binding come first because their
// messages for a missing claim are the clearest.
func newVolumePlugins(h fwk.Handle, features feature.Features, bindTimeout time.Duration) ([]filterPlugin, error) {
	return newPlugins(h, features, []pluginSpec{
		{api.VolumeUnfit, false, nil, volumerestrictions.New},
		{api.VolumeUnfit, false, &config.VolumeBindingArgs{BindTimeoutSeconds: int64(bindTimeout / time.Second)}, volumebinding.New},
		{api.VolumeUnfit, false, nil, nodevolumelimits.NewCSI},
		{api.VolumeUnfit, false, nil, volumezone.New},
	})
}

// newDevicePlugins returns the plugins for tasks with resource claims, and for those that request extended resources of
// device classes. Devices with binding conditions need more than the plugin gets here and are off.
func newDevicePlugins(h fwk.Handle, features feature.Features) ([]filterPlugin, error) {
	features.EnableDRADeviceBindingConditions = false
	initMetrics()
	args := &config.DynamicResourcesArgs{}
	if features.EnableDRASchedulerFilterTimeout {
		args.FilterTimeout = &metav1.Duration{Duration: deviceTimeout}
	}
	return newPlugins(h, features, []pluginSpec{{api.ClaimUnfit, false, args, dynamicresources.New}})
}

// initMetrics creates the metrics of kube-scheduler, which the plugin counts created claims with. They are not
// registered, so that nothing is exported.
//
//nolint:gochecknoglobals // those metrics are global variables of kube-scheduler
var initMetrics = sync.OnceFunc(metrics.InitMetrics)

// deviceTimeout limits the search for the devices of one pod on one node. Some searches take exponential time and
// block the cycle.
const deviceTimeout = time.Second

func newPlugins(h fwk.Handle, features feature.Features, specs []pluginSpec) ([]filterPlugin, error) {
	plugins := make([]filterPlugin, 0, len(specs))
	for _, m := range specs {
		built, err := m.new(context.Background(), m.args, h, features)
		if err != nil {
			return nil, err
		}
		p, ok := built.(plugin)
		if !ok {
			return nil, fmt.Errorf("%s is no filter", built.Name())
		}
		plugins = append(plugins, filterPlugin{p, m.reason, m.incremental})
	}
	return plugins, nil
}
