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
	"golang.org/x/term"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"github.com/batch-scheduler/batch-scheduler/cmd/kubectl-batch/internal/record"
	"github.com/batch-scheduler/batch-scheduler/internal/text"
)

// recordOptions are the flags of record.
type recordOptions struct {
	lasts      time.Duration
	output     string
	key        string
	schedulers []string
	progress   bool
}

func newRecordCommand(c cluster) *cobra.Command {
	o := recordOptions{schedulers: []string{"batch-scheduler"}}
	cmd := &cobra.Command{
		Use:                   "record [--for TIME]",
		DisableFlagsInUseLine: true,
		Short:                 "Write a trace of the cluster for simulations",
		Long: `record watches the cluster and writes a trace: the nodes, the queues, and the
jobs, with what they requested, when they were submitted and how long they ran.
"batch-scheduler simulate --trace" replays it, with the same policy or another.

The record has no environments, commands, annotations or names of secrets.
--anonymise KEY also replaces the names of jobs, queues and nodes and the values
of their labels by hashes, which are the same in all records with the same key.

A job is written when it has ended, and jobs that have not ended at the end of
the record. Ctrl-C ends the record, and it is complete then too. record only
reads. It requires a ClusterRoleBinding to the role batch-scheduler-record.`,
		Example: `  kubectl batch record --for 24h > day.jsonl
  kubectl batch record --for 168h -o week.jsonl --anonymise secret`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unexpected argument %q; -o names the file", args[0])
			}
			return o.run(cmd, c)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.DurationVar(&o.lasts, "for", 0, "end after this `TIME`, such as 24h (default when interrupted)")
	flags.StringVarP(&o.output, "output", "o", "", "new `FILE` to write (default standard output)")
	flags.StringVar(&o.key, "anonymise", "", "replace names by hashes with this `KEY`")
	flags.StringArrayVar(&o.schedulers, "scheduler-name", o.schedulers, "`NAME` in spec.schedulerName of the jobs; can be repeated")
	flags.BoolVar(&o.progress, "progress", false, "print the progress on standard error every 10 seconds (default if it is a terminal)")
	return cmd
}

func (o *recordOptions) run(cmd *cobra.Command, c cluster) error {
	if o.lasts < 0 {
		return fmt.Errorf("--for: must not be negative, but is %v", o.lasts)
	}
	if cmd.Flags().Changed("anonymise") && o.key == "" {
		return errors.New("--anonymise: the key must not be empty")
	}
	connected, err := c.connect()
	if err != nil {
		return err
	}
	stderr := cmd.ErrOrStderr()
	warn := func(what string) { fmt.Fprintln(stderr, "Warning:", what) }
	source := record.Source{Core: connected.core, Batch: connected.batch, Other: connected.other.Dynamic, Clock: clock.RealClock{}}
	if source.Served, err = connected.other.Served(cmd.Context()); err == nil {
		err = source.Check(cmd.Context(), warn)
	}
	if err != nil {
		return mayRecord(err)
	}
	out, closeFile, err := o.open(cmd.OutOrStdout())
	if err != nil {
		return err
	}
	err = o.record(cmd.Context(), source, out, stderr, o.showsProgress(cmd))
	return errors.Join(mayRecord(err), closeFile())
}

// open returns the file of the record, and a function that closes it. A file that exists is not overwritten: it may be the
// record of a day.
func (o *recordOptions) open(stdout io.Writer) (io.Writer, func() error, error) {
	if o.output == "" {
		return stdout, func() error { return nil }, nil
	}
	file, err := os.OpenFile(o.output, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, nil, fmt.Errorf("-o: %w", err)
	}
	return file, file.Close, nil
}

func (o *recordOptions) showsProgress(cmd *cobra.Command) bool {
	if cmd.Flags().Changed("progress") {
		return o.progress
	}
	file, isFile := cmd.ErrOrStderr().(*os.File)
	return isFile && term.IsTerminal(int(file.Fd()))
}

func (o *recordOptions) record(ctx context.Context, source record.Source, out, stderr io.Writer, progress bool) error {
	last := time.Duration(-1)
	var counts record.Counts
	notes, err := source.Run(ctx, record.Recording{
		Lasts: o.lasts,
		New: func(began time.Time) *record.Builder {
			return record.New(out, record.Options{SchedulerNames: o.schedulers, Sources: source.Sources(), Key: []byte(o.key), Began: began})
		},
		Warn: func(what string) { fmt.Fprintln(stderr, "Warning:", what) },
		Shown: func(at time.Duration, now record.Counts) {
			if last < 0 {
				fmt.Fprintf(stderr, "Recording %s, %s and %s; Ctrl-C ends the record.\n",
					text.Count(now.Nodes, "node", "nodes"), text.Count(now.Queues, "queue", "queues"), text.Count(now.Jobs, "job", "jobs"))
			} else if progress {
				fmt.Fprintf(stderr, "%v: %s, %d ended\n", at.Round(time.Second), text.Count(now.Jobs, "job", "jobs"), now.Ended)
			}
			last, counts = at, now
		},
	})
	if last >= 0 {
		fmt.Fprintf(stderr, "Recorded %v: %s, of which %d ended, and %s of other schedulers.\n", last.Round(time.Second),
			text.Count(counts.Jobs, "job", "jobs"), counts.Ended, text.Count(counts.Pods, "pod", "pods"))
	}
	for _, note := range notes {
		fmt.Fprintln(stderr, "Note:", note)
	}
	return err
}

// mayRecord adds to an error of a missing right which role has it.
func mayRecord(err error) error {
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%w; record reads the nodes, pods, PodGroups, queues and priority classes of the whole cluster: "+
			"it requires a ClusterRoleBinding to the role batch-scheduler-record", err)
	}
	return advised(err, "")
}
