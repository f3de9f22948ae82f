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
	// Bind is called after each call of the binding subresource, which took d.
	Bind(result metrics.BindResult, d time.Duration)
	// APIWrite is called after each request that may have changed something; code is the HTTP
	// status of the answer, 0 without answer.
	APIWrite(verb, resource string, code int)
}

// noMetrics is for whoever does not want to hear.
type noMetrics struct{}

func (noMetrics) EventsApplied(time.Duration)            {}
func (noMetrics) Bind(metrics.BindResult, time.Duration) {}
func (noMetrics) APIWrite(string, string, int)           {}

// codeOf returns the HTTP status of the answer that err stands for, success if err is nil.
func codeOf(success int, err error) int {
	if err == nil {
		return success
	}
	var answer apierrors.APIStatus
	if errors.As(err, &answer) {
		return int(answer.Status().Code)
	}
	return 0
}

// bindResult is what the answer to a bind says by itself; what really became of the pod is
// settled by looking at it.
func bindResult(err error) metrics.BindResult {
	code := codeOf(0, err)
	switch {
	case err == nil:
		return metrics.BindSucceeded
	case code >= 400 && code < 500 && !apierrors.IsTooManyRequests(err) && !apierrors.IsTimeout(err):
		return metrics.BindRefused
	}
	return metrics.BindUnknown
}
