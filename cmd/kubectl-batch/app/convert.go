// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/batch-scheduler/batch-scheduler/cmd/kubectl-batch/internal/convert"
	"github.com/batch-scheduler/batch-scheduler/cmd/kubectl-batch/internal/gang"
	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// convertOptions are the flags of convert.
type convertOptions struct {
	convert.Options

	files  []string
	strict bool
}

func newConvertCommand() *cobra.Command {
	o := convertOptions{Options: convert.Options{GPU: gang.GPU}}
	cmd := &cobra.Command{
		Use:                   "convert -f FILE",
		DisableFlagsInUseLine: true,
		Short:                 "Translate Queues of Volcano and KAI Scheduler",
		Long: `convert translates Queues of Volcano (scheduling.volcano.sh/v1beta1) and KAI
Scheduler (scheduling.run.ai/v2) into Queues of batch-scheduler, and prints them
as YAML. It sends no request.

  Volcano                   KAI Scheduler     Queue
  weight                    overQuotaWeight   weight
  capability                limit             capability
  deserved, or a larger
    guarantee.resource      quota             guarantee
  reclaimable                                 reclaimable

Names are kept, labels and annotations are not. A warning names each setting
that a Queue cannot express, or expresses with another meaning. Queues with
child queues hold no jobs and are not translated: convert all queues of a tree
together, so that parents are known.`,
		Example: `  kubectl batch convert -f queues.yaml > converted.yaml
  kubectl batch convert -f -    # after "kubectl get ... -o yaml" in a pipe
  kubectl batch convert -f queues.yaml --strict | kubectl apply -f -`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unexpected argument %q; -f reads a file", args[0])
			}
			return o.convert(cmd)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringArrayVarP(&o.files, "filename", "f", nil, "`FILE` with Queues, lists of them, or both; - for standard input; can be repeated")
	flags.StringVar(&o.GPU, "gpu-resource", o.GPU, "extended resource that gpu means in Queues of KAI Scheduler")
	flags.BoolVar(&o.strict, "strict", false, "fail and print no Queues if a setting cannot be translated")
	return cmd
}

// convert prints the warnings, then the Queues.
func (o *convertOptions) convert(cmd *cobra.Command) error {
	result, err := o.read(cmd.InOrStdin())
	if err != nil {
		return err
	}
	for _, loss := range result.Losses {
		fmt.Fprintln(cmd.ErrOrStderr(), "Warning:", loss)
	}
	switch {
	case o.strict && len(result.Losses) > 0:
		return errors.New("--strict: the settings in the warnings cannot be translated without loss")
	case len(result.Queues) == 0:
		return errors.New("no Queue to write")
	}
	return printQueues(cmd.OutOrStdout(), result.Queues)
}

// read reads all files.
func (o *convertOptions) read(stdin io.Reader) (convert.Result, error) {
	switch {
	case len(o.files) == 0:
		return convert.Result{}, errors.New("-f is required: a file with Queues, or - for standard input")
	case !strings.Contains(o.GPU, "/"):
		return convert.Result{}, fmt.Errorf("--gpu-resource: %q is not an extended resource, such as %s", o.GPU, gang.GPU)
	}
	converter := convert.New(o.Options)
	for _, name := range o.files {
		if err := readFile(converter, name, stdin); err != nil {
			return convert.Result{}, err
		}
	}
	return converter.Result()
}

func readFile(converter *convert.Converter, name string, stdin io.Reader) error {
	from := stdin
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return fmt.Errorf("-f: %w", err)
		}
		defer file.Close()
		from = file
	}
	if err := converter.Read(name, from); err != nil {
		return fmt.Errorf("-f %s: %w", name, err)
	}
	return nil
}

// printQueues prints what an administrator would write: name and spec.
func printQueues(out io.Writer, queues []v1alpha1.Queue) error {
	printer, err := objectPrinter("yaml")
	if err != nil {
		return err
	}
	for i := range queues {
		spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&queues[i].Spec)
		if err != nil {
			return err
		}
		queue := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
		queue.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("Queue"))
		queue.SetName(queues[i].Name)
		if err := printer.PrintObj(queue, out); err != nil {
			return err
		}
	}
	return nil
}
