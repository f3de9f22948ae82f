package upstream

import (
	"context"
	"fmt"
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

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// maker makes one plugin of kube-scheduler.
type maker struct {
	reason  api.UnfitReason
	follows bool              // see check
	args    apiruntime.Object // nil if the plugin takes none
	make    func(context.Context, apiruntime.Object, fwk.Handle, feature.Features) (fwk.Plugin, error)
}

// neighbourChecks are asked about tasks that other pods have a say about.
func neighbourChecks(h fwk.Handle, features feature.Features) ([]check, error) {
	return makeAll(h, features, []maker{
		// With list defaulting and an empty list, only constraints of the pod itself count.
		// It follows only pods of one node.
		{api.TopologySpread, false, &config.PodTopologySpreadArgs{DefaultingType: config.ListDefaulting}, podtopologyspread.New},
		{api.PodAffinity, true, &config.InterPodAffinityArgs{HardPodAffinityWeight: 1}, interpodaffinity.New},
	})
}

// storageChecks are asked about tasks with volumes. Restrictions and binding come first: they
// say it best when a claim does not exist.
func storageChecks(h fwk.Handle, features feature.Features, bindTimeout time.Duration) ([]check, error) {
	return makeAll(h, features, []maker{
		{api.VolumeUnfit, false, nil, volumerestrictions.New},
		{api.VolumeUnfit, false, &config.VolumeBindingArgs{BindTimeoutSeconds: int64(bindTimeout / time.Second)}, volumebinding.New},
		{api.VolumeUnfit, false, nil, nodevolumelimits.NewCSI},
		{api.VolumeUnfit, false, nil, volumezone.New},
	})
}

// deviceChecks are asked about tasks with resource claims. Left out is what would need more than the plugin is
// given: claims that a scheduler makes for extended resources, and devices that are attached once they are allocated.
func deviceChecks(h fwk.Handle, features feature.Features) ([]check, error) {
	features.EnableDRAExtendedResource, features.EnableDRADeviceBindingConditions = false, false
	args := &config.DynamicResourcesArgs{}
	if features.EnableDRASchedulerFilterTimeout {
		args.FilterTimeout = &metav1.Duration{Duration: deviceTimeout}
	}
	return makeAll(h, features, []maker{{api.ClaimUnfit, false, args, dynamicresources.New}})
}

// deviceTimeout is how long the search for the devices of one pod on one node may take. Some searches would take
// for ever, and the cycle waits for them.
const deviceTimeout = time.Second

func makeAll(h fwk.Handle, features feature.Features, makers []maker) ([]check, error) {
	checks := make([]check, 0, len(makers))
	for _, m := range makers {
		made, err := m.make(context.Background(), m.args, h, features)
		if err != nil {
			return nil, err
		}
		p, ok := made.(plugin)
		if !ok {
			return nil, fmt.Errorf("%s is no filter", made.Name())
		}
		checks = append(checks, check{p, m.reason, m.follows})
	}
	return checks, nil
}
