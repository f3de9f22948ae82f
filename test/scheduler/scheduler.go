// Package scheduler runs the scheduler as users run it: installed from config/, as a process
// of its own, as its own service account and with the roles that are shipped. Tests and
// measuring programs start it on a local cluster:
//
//	err := scheduler.Install(ctx, c)
//	s, err := scheduler.Start(ctx, c, scheduler.Options{Dir: dir})
//	defer s.Stop(time.Minute)
package scheduler

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/batch-scheduler/batch-scheduler/test/cluster"
)

const (
	// Name is the spec.schedulerName of the pods that the scheduler takes care of.
	Name = "batch-scheduler"

	// Namespace and Account are where config/ puts it.
	Namespace = "batch-scheduler-system"
	Account   = "batch-scheduler"

	importPath = "github.com/batch-scheduler/batch-scheduler/cmd/batch-scheduler"
)

// Options say how to start the scheduler. Dir must be given.
type Options struct {
	// Dir receives the kubeconfig and the log.
	Dir string

	// Race runs a binary with the race detector.
	Race bool

	// Args follow, and so override, those that Start gives: the kubeconfig, no leader
	// election, nothing served.
	Args []string
}

// Scheduler is a scheduler that was started.
type Scheduler struct {
	*cluster.Process

	// Kubeconfig is what it uses; Log is the file that it prints to.
	Kubeconfig, Log string
}

// Install applies config/crd and config/default as an administrator, all but what would run the
// scheduler as a pod. It must be called before Start, and may be called again.
func Install(ctx context.Context, c *cluster.Cluster) error {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return fmt.Errorf("looking for the module: %w", err)
	}
	config := filepath.Join(strings.TrimSpace(string(root)), "config")
	if err = c.Apply(ctx, filepath.Join(config, "crd")); err != nil {
		return err
	}
	return c.Apply(ctx, filepath.Join(config, "default"), "Deployment", "PodDisruptionBudget")
}

// BinaryVariable is the environment variable that names a built scheduler to use. Empty or unset,
// Build builds one.
const BinaryVariable = "BATCH_SCHEDULER_BINARY"

// Build builds the scheduler, or returns the one that the environment names. Even where nothing
// has changed, looking for changes takes seconds, so who starts many of them sets the variable
// to what the first Build has returned.
func Build(ctx context.Context, race bool) (string, error) {
	if binary := os.Getenv(BinaryVariable); binary != "" {
		return binary, nil
	}
	return cluster.Build(ctx, importPath, race)
}

// Start starts a scheduler and does not wait until it is ready. Without leader election
// nothing keeps two from running at once: stop one before the next is started.
func Start(ctx context.Context, c *cluster.Cluster, o Options) (*Scheduler, error) {
	binary, err := Build(ctx, o.Race)
	if err != nil {
		return nil, err
	}
	s := &Scheduler{Kubeconfig: filepath.Join(o.Dir, "scheduler.kubeconfig")}
	if err = c.ServiceAccountKubeconfig(ctx, Namespace, Account, s.Kubeconfig); err != nil {
		return nil, err
	}
	log, err := os.CreateTemp(o.Dir, "scheduler-*.log")
	if err != nil {
		return nil, fmt.Errorf("making a log file: %w", err)
	}
	s.Log = log.Name()
	if err = log.Close(); err != nil {
		return nil, fmt.Errorf("making a log file: %w", err)
	}
	args := append([]string{"--kubeconfig=" + s.Kubeconfig, "--leader-elect=false", "--secure-port=0"}, o.Args...)
	s.Process, err = cluster.StartProcess(cluster.ProcessOptions{Path: binary, Args: args, Output: s.Log})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// fault matches what no log may contain, whatever happens in the cluster.
var fault = regexp.MustCompile(`(?i)panic|DATA RACE|fatal error|forbidden: User|unauthorized`)

// Faults returns the lines of the log that tell of a fault of the scheduler's own: a panic, a
// data race, a permission that the shipped roles do not give.
func (s *Scheduler) Faults() ([]string, error) {
	data, err := os.ReadFile(s.Log)
	if err != nil {
		return nil, fmt.Errorf("reading the scheduler's log: %w", err)
	}
	var faults []string
	for line := range strings.SplitSeq(string(data), "\n") {
		if fault.MatchString(line) {
			faults = append(faults, line)
		}
	}
	return faults, nil
}
