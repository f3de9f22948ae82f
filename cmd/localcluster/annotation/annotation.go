// Package annotation names the annotations by which a pod tells the simulated kubelets of
// the local cluster how its containers behave. They are read when the pod starts, except
// TerminateAfter, which is read when the pod is deleted. The package imports nothing, so
// that tests and demos can name them without linking a control plane.
package annotation

const (
	// RunFor is how long the containers of the pod run before they end by themselves, as
	// a Go duration such as "30s". A pod without it runs until it is deleted, unless it
	// belongs to a Job.
	RunFor = "localcluster.batch-scheduler.dev/run-for"

	// ExitCode is the exit code of every container when the pod ends by itself, 0 to 255,
	// default 0. A pod that ends with 0 has succeeded, with anything else it has failed;
	// the restart policy is not looked at.
	ExitCode = "localcluster.batch-scheduler.dev/exit-code"

	// TerminateAfter is how long the containers of the pod take to stop once the pod is
	// deleted or evicted, as a Go duration. The default is no time at all, whatever the
	// pod's grace period, which bounds nothing here.
	TerminateAfter = "localcluster.batch-scheduler.dev/terminate-after"
)
