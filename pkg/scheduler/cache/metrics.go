package cache

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/metrics"
)

// Metrics hears of what the cache does; *metrics.Metrics is one. It is called from many
// goroutines at once and must return at once.
type Metrics interface {
	// EventsApplied is called when Apply has applied something: oldest is how long the first of
	// it has waited.
	EventsApplied(oldest time.Duration)
	// Eviction is called when an eviction has been made, or refused.
	Eviction(cause string, result metrics.EvictionResult)
	// Bind is called after each call of the binding subresource, which took d.
	Bind(result metrics.BindResult, d time.Duration)
	// PodBound is called when a pod is bound, wait after its creation.
	PodBound(wait time.Duration)
	// PodGroupScheduled is called when all binds are done with which a group has the members that must
	// run together, wait after the last of their creations.
	PodGroupScheduled(queue string, wait time.Duration)
	// WatchFailed is called when a list or watch has failed, and with 0 times before the first.
	WatchFailed(resource string, times int)
}

// noMetrics is for whoever does not want to hear.
type noMetrics struct{}

func (noMetrics) EventsApplied(time.Duration)             {}
func (noMetrics) Eviction(string, metrics.EvictionResult) {}
func (noMetrics) Bind(metrics.BindResult, time.Duration)  {}
func (noMetrics) PodBound(time.Duration)                  {}
func (noMetrics) PodGroupScheduled(string, time.Duration) {}
func (noMetrics) WatchFailed(string, int)                 {}

// bindResult is what the answer to a bind says by itself; what really became of the pod is
// settled by looking at it.
func bindResult(err error) metrics.BindResult {
	code := 0 // no answer
	var answer apierrors.APIStatus
	if errors.As(err, &answer) {
		code = int(answer.Status().Code)
	}
	switch {
	case err == nil:
		return metrics.BindSucceeded
	case code >= 400 && code < 500 && !apierrors.IsTooManyRequests(err) && !apierrors.IsTimeout(err):
		return metrics.BindRefused
	}
	return metrics.BindUnknown
}
