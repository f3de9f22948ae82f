// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/groupapi"
)

// OtherGroups are the PodGroups of other APIs that the scheduler reads.
type OtherGroups interface {
	// Get returns the group of a source with a name, or nil.
	Get(source api.GroupSource, namespace, name string) *groupapi.Object
}

// otherGroup is a merge patch of the status of a group of another API. The resource version is a precondition.
type otherGroup struct {
	Metadata struct {
		UID             types.UID `json:"uid"`
		ResourceVersion string    `json:"resourceVersion,omitempty"`
	} `json:"metadata"`
	Status json.RawMessage `json:"status"`
}

// otherGroups makes the patches of groups of other APIs.
type otherGroups struct{ Options }

// patch compares a group with its report. Counts alone are written when they have differed for countsInterval, because the
// last pods of most groups end together, and a message alone after messageInterval.
func (w *otherGroups) patch(want api.PodGroupReport) (*patch, bool) {
	shown := w.OtherGroups.Get(want.Source, want.Namespace, want.Name)
	if shown == nil || shown.UID != want.UID {
		return nil, false
	}
	next, urgent, err := shown.Status(&want, metav1.NewTime(w.Clock.Now()))
	if err != nil {
		w.Log.Error(err, "Status not readable", "source", want.Source, "object", klog.KObj(shown))
		return nil, false
	}
	if next == nil {
		return nil, true
	}
	p := &patch{
		object:      klog.KObj(shown),
		base:        shown.ResourceVersion,
		minInterval: countsInterval,
		differFor:   countsInterval,
		debounced:   urgent && want.Phase == v1alpha1.PodGroupPending,
		send:        func(ctx context.Context) (string, error) { return w.send(ctx, shown, next) },
	}
	switch {
	case !urgent && want.Phase == v1alpha1.PodGroupPending:
		p.minInterval, p.differFor = messageInterval, 0
	case urgent:
		p.minInterval, p.differFor = 0, 0
		if !want.Scheduled && want.Reason != "" && !want.Part {
			p.sent = func() { w.Events.NotScheduled(shown.Group, want.Reason, want.Message) }
		}
	}
	return p, true
}

func (w *otherGroups) send(ctx context.Context, shown *groupapi.Object, status []byte) (string, error) {
	body := otherGroup{Status: status}
	body.Metadata.UID, body.Metadata.ResourceVersion = shown.UID, shown.ResourceVersion
	data, err := json.Marshal(body)
	if err != nil {
		return "", err
	}
	var subresources []string
	if shown.API.StatusSubresource {
		subresources = []string{"status"}
	}
	written, err := w.Dynamic.Resource(shown.API.Resource).Namespace(shown.Namespace).
		Patch(ctx, shown.Name, types.MergePatchType, data, metav1.PatchOptions{}, subresources...)
	if err != nil {
		return "", err
	}
	return written.GetResourceVersion(), nil
}
