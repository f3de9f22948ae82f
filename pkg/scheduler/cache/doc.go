// Package cache stands between the model and the API server. One half turns what informers see
// into changes of the model, the other half carries decisions and reports out: binds, statuses
// and events.
//
//	informers ── handlers ──> changes ── Apply ──> model ──> cycle ── Commit ──> binder
//	    ^                        ^                             └──── Publish ──> writers, recorder
//	    └── API server           └──────────── refused binds ──────────┘
//
// Handlers only append to the list of changes. The model belongs to the scheduling goroutine:
// it alone may call Model, Apply, Rebuild, Commit and Publish, none of which waits for the API
// server. Everything that does wait runs on the goroutines of Run.
package cache
