// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/batch-scheduler/batch-scheduler/cmd/kubectl-batch/internal/gang"
	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// submitOptions are the flags of submit.
type submitOptions struct {
	spec           gang.Spec
	file           string
	dryRun, output string
}

func newSubmitCommand(c cluster) *cobra.Command {
	o := submitOptions{spec: gang.Spec{Replicas: 1}, dryRun: "none"}
	cmd := &cobra.Command{
		Use:                   "submit (--name NAME --image IMAGE | -f FILE) [-- COMMAND...]",
		DisableFlagsInUseLine: true,
		Short:                 "Create a Job whose pods start together",
		Long: `submit creates a Job and its PodGroup. The Job owns the PodGroup, so both are
deleted together. If creating the PodGroup fails, submit deletes the Job.

With -f, submit reads a Job, or a Job and a PodGroup, from a file and adds what
is missing: the PodGroup, its label on the pods, and the scheduler name.

Without -f, the Job is indexed: each pod has its rank in JOB_COMPLETION_INDEX.
The Job gets a podFailurePolicy by which evictions do not count as failures. An
indexed Job also gets backoffLimitPerIndex and maxFailedIndexes, by which
evicted pods come back after 10 seconds. A Job of a file keeps its
completionMode and its own podFailurePolicy, and gets no podFailurePolicy if it
restarts containers. submit warns if an eviction would end or delay the Job.

With --time, a pod that runs for longer fails, and the Job with it, unless the
file sets backoffLimit. The PodGroup gets the same limit, so that the scheduler
knows when its nodes are free again; --expected-time is an estimate for that.`,
		Example: `  kubectl batch submit --name train --replicas 8 --gpu 1 --image trainer:7
  kubectl batch submit --name nap --cpu 1 --image busybox:1.37 -- sleep 60
  kubectl batch submit -f job.yaml --queue research --time 12h
  kubectl batch submit -f job.yaml --dry-run=client -o yaml`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && cmd.ArgsLenAtDash() != 0 {
				return fmt.Errorf("unexpected argument %q; put the command of the container after --", args[0])
			}
			o.spec.Command = args
			return o.submit(cmd, c)
		},
	}
	o.addFlags(cmd)
	utilruntime.Must(cmd.RegisterFlagCompletionFunc("queue", complete(c, queueNames)))
	utilruntime.Must(cmd.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions(dryRuns(), cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

// submit creates the Job and the PodGroup, and prints warnings about what may become of them.
func (o *submitOptions) submit(cmd *cobra.Command, c cluster) error {
	g, err := o.gang(cmd)
	if err != nil {
		return err
	}
	namespace, err := c.namespace()
	if err != nil {
		return err
	}
	if err = g.In(namespace); err != nil {
		return err
	}
	for _, warning := range g.Warnings() {
		fmt.Fprintln(cmd.ErrOrStderr(), "Warning:", warning)
	}
	if o.dryRun == "client" {
		return o.print(cmd.OutOrStdout(), g)
	}
	connected, err := c.connect()
	if err != nil {
		return err
	}
	warning := missingQueue(cmd.Context(), connected, g.Group.Spec.Queue)
	if g, err = create(cmd.Context(), connected, g, o.dryRun == "server"); err != nil {
		return advised(err, namespace)
	}
	if warning != "" {
		fmt.Fprintln(cmd.ErrOrStderr(), "Warning: "+warning)
	}
	return o.print(cmd.OutOrStdout(), g)
}

func (o *submitOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&o.spec.Name, "name", "", "name of the Job and its PodGroup")
	flags.Int32Var(&o.spec.Replicas, "replicas", o.spec.Replicas, "number of pods")
	flags.Int32Var(&o.spec.Min, "min", 0, "number of pods that must start together (default all)")
	flags.StringVar(&o.spec.CPU, "cpu", "", "CPU request of each pod, such as 4 or 500m")
	flags.StringVar(&o.spec.Memory, "memory", "", "memory request of each pod, such as 64Gi")
	flags.StringVar(&o.spec.GPU, "gpu", "", "number of "+gang.GPU+" of each pod")
	flags.StringVar(&o.spec.Queue, "queue", "", "queue of the PodGroup (default the default queue of the scheduler)")
	flags.StringVar(&o.spec.PriorityClass, "priority-class", "", "priority class of the PodGroup (default that of its pods)")
	flags.Var((*timeLimit)(&o.spec.Time), "time", "for how long each pod may run, such as 90m, 2d or, as for Slurm, 1-12:00:00; the time that it waits does not count")
	flags.Var((*timeLimit)(&o.spec.Expected), "expected-time", "for how long the gang is expected to run, at most --time; for planning alone")
	flags.StringVar(&o.spec.Image, "image", "", "container image")
	flags.StringVarP(&o.file, "filename", "f", "", "`FILE` with a Job, or a Job and a PodGroup; - for standard input")
	flags.StringVar(&o.dryRun, "dry-run", o.dryRun, "none, client (send no request) or server (store no object)")
	addOutputFlag(cmd, &o.output, formatName)
}

func dryRuns() []string { return []string{"none", "client", "server"} }

// gang makes the objects that the flags describe.
func (o *submitOptions) gang(cmd *cobra.Command) (gang.Gang, error) {
	if err := checkOutput(o.output, formatName); err != nil {
		return gang.Gang{}, err
	}
	switch {
	case !isAny(o.dryRun, dryRuns()...):
		return gang.Gang{}, fmt.Errorf("--dry-run: unknown value %q; valid values: none, client, server", o.dryRun)
	case cmd.Flags().Changed("time") && o.spec.Time < time.Second:
		return gang.Gang{}, fmt.Errorf("--time: %s is invalid; it must be at least 1s", o.spec.Time)
	case cmd.Flags().Changed("expected-time") && o.spec.Expected < time.Second:
		return gang.Gang{}, fmt.Errorf("--expected-time: %s is invalid; it must be at least 1s", o.spec.Expected)
	case cmd.Flags().Changed("min") && o.spec.Min < 1:
		return gang.Gang{}, fmt.Errorf("--min: %d is invalid; it must be at least 1", o.spec.Min)
	case o.file == "":
		return gang.New(o.spec)
	}
	for _, flag := range []string{"name", "replicas", "cpu", "memory", "gpu", "image"} {
		if cmd.Flags().Changed(flag) {
			return gang.Gang{}, fmt.Errorf("--%s and -f cannot be combined", flag)
		}
	}
	if len(o.spec.Command) > 0 {
		return gang.Gang{}, errors.New("a command and -f cannot be combined")
	}
	from := cmd.InOrStdin()
	if o.file != "-" {
		file, err := os.Open(o.file)
		if err != nil {
			return gang.Gang{}, fmt.Errorf("-f: %w", err)
		}
		defer file.Close()
		from = file
	}
	g, err := gang.Read(from, o.spec.Grouping, o.spec.Lifetime)
	if err != nil {
		return gang.Gang{}, fmt.Errorf("-f %s: %w", o.file, err)
	}
	return g, nil
}

// create makes the Job, then the PodGroup with the Job as its owner. This order needs no third write: the group must
// name the UID of its owner, and pods that are there before their group only wait for it. In the other order the Job
// could own nothing, and the group would stay when the Job goes.
func create(ctx context.Context, to clients, g gang.Gang, dryRun bool) (gang.Gang, error) {
	var options metav1.CreateOptions
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	jobs := to.core.BatchV1().Jobs(g.Job.Namespace)
	job, err := jobs.Create(ctx, g.Job, options)
	if err != nil {
		return g, err
	}
	g.Group.OwnerReferences = append(g.Group.OwnerReferences, metav1.OwnerReference{
		APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job", Name: job.Name, UID: job.UID,
	})
	group, err := to.batch.SchedulingV1alpha1().PodGroups(g.Group.Namespace).Create(ctx, g.Group, options)
	if err == nil {
		return gang.Gang{Job: job, Group: group}, nil
	}
	if !dryRun {
		// Also when it was the user who gave up.
		undo := remove(context.WithoutCancel(ctx), jobs.Delete, gang.Object{Name: job.Name, UID: job.UID})
		if undo != nil {
			return g, fmt.Errorf("%w; deleting Job %s, which was created before, failed: %w", err, job.Name, undo)
		}
	}
	return g, err
}

// missingQueue returns a warning if a queue does not exist, and nothing if it is the default queue, or if the user may not
// read queues.
func missingQueue(ctx context.Context, in clients, queue string) string {
	if queue == "" {
		return ""
	}
	queues := in.batch.SchedulingV1alpha1().Queues()
	if _, err := queues.Get(ctx, queue, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return ""
	}
	hint := ""
	names, err := namesOf(queues.List(ctx, fromCache()))
	if similar, ok := api.Closest(queue, names); err == nil && ok {
		hint = fmt.Sprintf(" (did you mean %q?)", similar)
	}
	return fmt.Sprintf("queue %q does not exist%s; the pods are pending until it does", queue, hint)
}

// print says what was made, or shows it.
func (o *submitOptions) print(out io.Writer, g gang.Gang) error {
	if o.output == "" {
		suffix := map[string]string{"client": " (dry run)", "server": " (server dry run)"}[o.dryRun]
		job, group := g.Kinds()
		fmt.Fprintf(out, "%s created%s\n%s created%s\n", job, suffix, group, suffix)
		if o.dryRun == "none" {
			fmt.Fprintf(out, "To see its state: kubectl batch why %s -n %s\n", g.Group.Name, g.Group.Namespace)
		}
		return nil
	}
	printer, err := objectPrinter(o.output)
	if err != nil {
		return err
	}
	g.Job.SetGroupVersionKind(batchv1.SchemeGroupVersion.WithKind("Job"))
	g.Group.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("PodGroup"))
	for _, object := range []runtime.Object{g.Job, g.Group} {
		var content map[string]any
		if content, err = runtime.DefaultUnstructuredConverter.ToUnstructured(object); err != nil {
			return err
		}
		delete(content, "status") // of what has just been created
		if err = printer.PrintObj(&unstructured.Unstructured{Object: content}, out); err != nil {
			return err
		}
	}
	return nil
}
