// Package api is the scheduler's model of the cluster: tasks, jobs, queues, nodes, their
// accounts, and the words for decisions and refusals. It is pure data with rules: no client,
// no lock, no clock. One goroutine, the scheduling one, owns a Cluster; what others may read
// is an immutable Summary made from it.
//
// The accounts move in two ways only: by the Set and Delete functions, which apply what the
// API server showed, and by Cluster.Place, which a session's statements use. Both go through
// one pair of functions, attach and detach, so that no sum can be forgotten.
package api
