// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// logNotPlaced logs that a claim was not placed because of t, and the refusals of nodes for the signature of t.
func logNotPlaced(log logr.Logger, t *api.TaskInfo, v *api.Verdict) {
	log = log.V(4)
	if !log.Enabled() {
		return
	}
	log.Info("Claim not placed", "job", klog.KObj(t.Job), "pod", klog.KObj(t.Pod), "reason", v.Reason, "plugin", v.Plugin, "missing", v.Missing,
		"nodes", v.Nodes.Total, "available", v.Nodes.Available)
	for i := range v.Nodes.Unfit {
		unfit := &v.Nodes.Unfit[i]
		log.Info("Nodes refused", "job", klog.KObj(t.Job), "pod", klog.KObj(t.Pod), "plugin", unfit.Plugin, "reason", unfit.Reason.String(),
			"detail", unfit.Detail, "nodes", unfit.Count)
	}
}
