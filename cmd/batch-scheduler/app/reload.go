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

// maxNote is how long the API server allows the note of an event to be, in bytes.
const maxNote = 1024

// reloader puts changed configurations into force, and says in log, metrics and an event what
// became of each.
type reloader struct {
	file      string
	scheduler Scheduler
	metrics   *metrics.Metrics
	clock     clock.PassiveClock
	events    events.EventRecorder
	self      *corev1.ObjectReference // what the events are about
}

// reload is a conf.Reload.
func (r *reloader) reload(ctx context.Context, c *conf.Configuration, warnings []conf.Warning, err error) {
	logger := klog.FromContext(ctx)
	if err == nil {
		err = r.scheduler.SetConfiguration(ctx, c)
	}
	if err != nil {
		r.metrics.ConfigRefused()
		logger.Error(err, "The changed scheduler configuration is refused, the old one stays in force", "file", r.file)
		r.event(corev1.EventTypeWarning, "ConfigurationRefused", "The old configuration stays in force: "+err.Error())
		return
	}
	r.metrics.ConfigReloaded(r.clock.Now())
	logger.Info("The changed scheduler configuration is in force", "file", r.file, "actions", c.Actions)
	logWarnings(logger, warnings)
	r.event(corev1.EventTypeNormal, "ConfigurationReloaded", "The changed configuration is in force")
}

func (r *reloader) event(kind, reason, note string) {
	r.events.Eventf(r.self, nil, kind, reason, "Reload", "%s", shorten(note, maxNote))
}

func logWarnings(logger klog.Logger, warnings []conf.Warning) {
	for _, w := range warnings {
		logger.Info("Warning about the scheduler configuration", "warning", w.String())
	}
}

// selfReference names what events of the process itself are about: its pod as the downward API
// tells it, or, outside of a pod, its lease.
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

// shorten cuts a text to at most limit bytes, between characters.
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
