// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/metrics"
)

// maxNote is the maximum length of the note of an event in bytes; the API server rejects longer ones.
const maxNote = 1024

// reloader applies changed configurations and reports the result of each in the log, metrics and an event.
type reloader struct {
	file      string
	scheduler Scheduler
	metrics   *metrics.Metrics
	clock     clock.PassiveClock
	events    events.EventRecorder
	self      *corev1.ObjectReference // the object of the events
}

// reload is a conf.Reload.
func (r *reloader) reload(ctx context.Context, c *conf.Configuration, warnings []conf.Warning, err error) {
	logger := klog.FromContext(ctx)
	if err == nil {
		err = r.scheduler.SetConfiguration(ctx, c)
	}
	if err != nil {
		r.metrics.ConfigRefused()
		logger.Error(err, "Scheduler configuration rejected", "file", r.file)
		r.event(corev1.EventTypeWarning, "ConfigurationRefused", "The old configuration stays in force: "+err.Error())
		return
	}
	r.metrics.ConfigReloaded(r.clock.Now())
	logger.Info("Scheduler configuration reloaded", "file", r.file, "actions", c.Actions)
	logWarnings(logger, warnings)
	r.event(corev1.EventTypeNormal, "ConfigurationReloaded", "The changed configuration is in force")
}

func (r *reloader) event(kind, reason, note string) {
	r.events.Eventf(r.self, nil, kind, reason, "Reload", "%s", shorten(note, maxNote))
}

func logWarnings(logger klog.Logger, warnings []conf.Warning) {
	for _, w := range warnings {
		logger.Info("Scheduler configuration warning", "warning", w.String())
	}
}

// selfReference returns the object of events about the process itself: its pod, from the downward API, or its lease if
// the process does not run in a pod.
func selfReference(opts *Options) *corev1.ObjectReference {
	if name, namespace := os.Getenv("POD_NAME"), os.Getenv("POD_NAMESPACE"); name != "" && namespace != "" {
		return &corev1.ObjectReference{
			APIVersion: "v1", Kind: "Pod",
			Namespace: namespace, Name: name, UID: types.UID(os.Getenv("POD_UID")),
		}
	}
	return &corev1.ObjectReference{
		APIVersion: "coordination.k8s.io/v1", Kind: "Lease",
		Namespace: opts.LeaderElection.ResourceNamespace, Name: opts.LeaderElection.ResourceName,
	}
}

// shorten truncates a text to at most limit bytes, at a character boundary.
func shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const more = "..."
	end := 0
	for i := range text {
		if i > limit-len(more) {
			break
		}
		end = i
	}
	return text[:end] + more
}
