package cache

import "time"

// Metrics hears of what the effects do. Implementations are called from many goroutines at once
// and must return at once.
type Metrics interface {
	// BindDone is called when it is known what became of a bind: result is one of "bound",
	// "gone", "taken" (by another scheduler) and "refused"; took is the time since Commit.
	BindDone(result string, took time.Duration)
	// BindsQueued tells how many binds wait for a worker.
	BindsQueued(pods int)
	// StatusWritten is called after each attempt to write a status: kind is "podgroup", "queue"
	// or "pod", result is "ok", "conflict", "gone" or "error".
	StatusWritten(kind, result string)
	// EventDropped is called for each event that was not written because others had priority.
	EventDropped()
}

// noMetrics is for whoever does not want to hear.
type noMetrics struct{}

func (noMetrics) BindDone(string, time.Duration) {}
func (noMetrics) BindsQueued(int)                {}
func (noMetrics) StatusWritten(string, string)   {}
func (noMetrics) EventDropped()                  {}
