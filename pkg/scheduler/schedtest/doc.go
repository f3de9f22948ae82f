// Package schedtest lets tests of actions and plugins be read as what they are about: a cluster,
// row by row, and the transcript of what the scheduler decides about it.
//
//	given: Given(
//		Node("n1", "2cpu 8Gi"),
//		Queue("q", 1),
//		Group("q/low", 2, Running(2, "1cpu 1Gi", "n1")),
//		Group("q/high", 1, Priority(9), Pending(1, "1cpu 1Gi")),
//	),
//	want: `pipeline q/high-0 n1`,
//
// Names are identities: "q/low" is the group low in queue q, and its pods are q/low-0, q/low-1
// and so on. Every object is created one second after the one before, so that all orders are
// total. A row that names a queue or a node that no row above declares fails at once.
//
// A Cluster plays the API server: it hands the objects to the model, opens sessions with the
// plugins and actions of a registry, and answers binds as the test tells it to. Unasked it
// asserts what must hold in every case; see invariants.go. It does so with three models side by
// side: one hears of the objects in the order of the rows, one in a shuffled order, and one
// never sees a session. The first two must decide the same, and all three must be equal when
// the session is closed.
package schedtest
