// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/batch-scheduler/batch-scheduler/cmd/kubectl-batch/internal/show"
	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// topOptions are the flags of top.
type topOptions struct {
	output string
	watch  bool
}

func newTopCommand(c cluster) *cobra.Command {
	var o topOptions
	top := &cobra.Command{
		Use:   "top",
		Short: "Show the usage of Queues, Topologies and GPUs",
		Example: `  kubectl batch top queues
  kubectl batch top topology
  kubectl batch top gpus`,
		RunE: oneOf("queues, topology, gpus"),
	}
	queues := &cobra.Command{
		Use:     "queues",
		Aliases: []string{"queue", "q"},
		Short:   "Show weight, guarantee, deserved, allocated and cap of each Queue",
		Long: `queues shows a row for each Queue and resource: the weight of the Queue, its
guarantee (GUAR), its deserved and allocated amounts (ALLOC), and its capability
(CAP). SHARE is allocated relative to deserved. In the bars, = is allocated and
deserved, + is allocated beyond deserved (borrowed), - is deserved and not
allocated, . is the rest up to the capability.`,
		Example: `  kubectl batch top queues
  kubectl batch top queues --watch   # and show each change
  kubectl batch top queues -o json   # for programs`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return errors.New("top queues accepts no names; it shows all Queues")
			}
			if err := o.check(); err != nil {
				return err
			}
			connected, err := c.connect()
			if err != nil {
				return err
			}
			list, err := connected.batch.SchedulingV1alpha1().Queues().List(cmd.Context(), metav1.ListOptions{})
			if err != nil {
				return advised(err, "")
			}
			if structured(o.output) {
				return printDocument(cmd.OutOrStdout(), o.output, "QueueUsageList", map[string][]show.QueueUsage{"items": show.Usages(list.Items)})
			}
			if len(list.Items) == 0 {
				fmt.Fprintln(cmd.ErrOrStderr(), "No queues found. An administrator creates them: kubectl apply -f config/default/queue.yaml")
			}
			screen := newTopScreen(cmd.OutOrStdout(), list.Items)
			screen.draw()
			if !o.watch {
				return nil
			}
			return advised(screen.follow(cmd.Context(), list.ResourceVersion, connected.batch.SchedulingV1alpha1().Queues().Watch), "")
		},
	}
	addOutputFlag(queues, &o.output)
	queues.Flags().BoolVarP(&o.watch, "watch", "w", false, "show the queues again after each change until interrupted")
	top.AddCommand(queues, newTopTopologyCommand(c), newTopGPUsCommand(c))
	return top
}

// nodesAndPods lists the nodes, and the pods of all namespaces, for a command. A refusal says which rights the command needs.
func nodesAndPods(ctx context.Context, connected clients, command string) ([]corev1.Node, []corev1.Pod, error) {
	nodes, err := connected.core.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, nil, advisedOfAll(err, command)
	}
	pods, err := connected.core.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, nil, advisedOfAll(err, command)
	}
	return nodes.Items, pods.Items, nil
}

func advisedOfAll(err error, command string) error {
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%w; %s reads the nodes and the pods of all namespaces: it requires a ClusterRoleBinding to a role that may list them, such as batch-scheduler-record", err, command)
	}
	return advised(err, "")
}

func (o topOptions) check() error {
	if o.watch && o.output != "" {
		return errors.New("--watch and -o cannot be combined")
	}
	return checkOutput(o.output)
}

// topScreen shows the usage of queues: on a terminal always in the same place, elsewhere one table after the other.
type topScreen struct {
	out      io.Writer
	terminal bool
	queues   map[string]v1alpha1.Queue
	drawn    string
}

func newTopScreen(out io.Writer, queues []v1alpha1.Queue) *topScreen {
	s := &topScreen{out: out, queues: map[string]v1alpha1.Queue{}}
	if file, ok := out.(*os.File); ok {
		s.terminal = term.IsTerminal(int(file.Fd()))
	}
	for i := range queues {
		s.queues[queues[i].Name] = queues[i]
	}
	return s
}

// draw shows the queues, unless this is what it has shown last.
func (s *topScreen) draw() {
	var queues []v1alpha1.Queue
	for name := range s.queues {
		queues = append(queues, s.queues[name]) // Top sorts
	}
	text := ""
	if len(queues) > 0 {
		text = strings.Join(show.Top(queues), "\n") + "\n"
	}
	if text == s.drawn {
		return
	}
	switch {
	case s.drawn == "":
	case s.terminal:
		fmt.Fprint(s.out, clearScreen)
	default:
		fmt.Fprintln(s.out)
	}
	fmt.Fprint(s.out, text)
	s.drawn = text
}

// clearScreen clears a terminal and moves the cursor to its upper left corner.
const clearScreen = "\x1b[H\x1b[2J"

// apply takes over the change of a queue.
func (s *topScreen) apply(event watch.Event) {
	queue, ok := event.Object.(*v1alpha1.Queue)
	switch {
	case !ok:
	case event.Type == watch.Deleted:
		delete(s.queues, queue.Name)
	default:
		s.queues[queue.Name] = *queue
	}
}

// collectChanges is how long the screen waits for more changes after one: a cycle of the scheduler changes many queues.
const collectChanges = 200 * time.Millisecond

// follow shows the queues after each change since a version until the context ends.
func (s *topScreen) follow(ctx context.Context, version string, start watchFunc) error {
	changes := make(chan watch.Event)
	ended := make(chan error, 1)
	go func() {
		ended <- follow(ctx, version, metav1.ListOptions{}, start, func(event watch.Event) error {
			select {
			case changes <- event:
				return nil
			case <-ctx.Done():
				return nil
			}
		})
	}()
	var due <-chan time.Time
	for {
		select {
		case err := <-ended:
			s.draw()
			return err
		case event := <-changes:
			s.apply(event)
			if due == nil {
				due = time.After(collectChanges)
			}
		case <-due:
			due = nil
			s.draw()
		}
	}
}
