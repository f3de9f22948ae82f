// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/batch-scheduler/batch-scheduler/internal/text"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

func newConfigCommand(p *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check a policy file, or print the built-in one",
		Args:  noCommand,

		SuggestionsMinimumDistance: maxTypos,

		RunE: func(cmd *cobra.Command, _ []string) error {
			return usageError{cmd.CommandPath(), errors.New("config needs a command: check FILE or print-default")}
		},
	}
	cmd.AddCommand(newCheckCommand(p), newPrintDefaultCommand(p))
	return cmd
}

func newCheckCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "Check a policy file without a cluster",
		Long: `check reads a policy file as the scheduler does, without a cluster. It prints all errors
with their line and field, warnings about settings without effect and missing plugins,
and which pods each action may evict. The exit code is 1 if the scheduler would reject
the file.

The file - is the standard input. If the file is the manifest of a ConfigMap, check reads
the policy in its data:

  kubectl get configmap NAME -o yaml | batch-scheduler config check -`,
		Args: exactly(1, "one FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			registry, err := p.registry()
			if err != nil {
				return err
			}
			policies, err := readPolicies(cmd, args[0])
			if err != nil {
				return err
			}
			catalog := registry.Catalog()
			for _, p := range policies {
				if err := p.check(cmd.OutOrStdout(), catalog); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// policyText is a policy to check: a file, or a value in a ConfigMap.
type policyText struct {
	source string // for messages
	key    string // in the ConfigMap; empty for a file
	text   []byte
}

// readPolicies reads a file, or the standard input if its name is -, and returns the policies in it: several if it is a
// ConfigMap that has several.
func readPolicies(cmd *cobra.Command, file string) ([]policyText, error) {
	var text []byte
	var err error
	if file == "-" {
		file = "<stdin>"
		if text, err = io.ReadAll(cmd.InOrStdin()); err != nil {
			err = fmt.Errorf("reading the scheduler configuration: %w", err)
		}
	} else {
		text, err = conf.Read(file)
	}
	if err != nil {
		return nil, err
	}
	object := conf.ReadConfigMap(text)
	if object == nil {
		return []policyText{{source: file, text: text}}, nil
	}
	if len(object.Policies) == 0 {
		return nil, fmt.Errorf("%s is a ConfigMap without a policy: %s", file, whyNone(object.Keys))
	}
	var policies []policyText
	for _, p := range object.Policies {
		source := file
		if !p.SameLines {
			source = fmt.Sprintf("%s[%s]", file, p.Key)
		}
		policies = append(policies, policyText{source, p.Key, p.Text})
	}
	return policies, nil
}

func whyNone(keys []string) string {
	if len(keys) == 0 {
		return "its data is empty"
	}
	return "none of its keys has actions or tiers: " + strings.Join(keys, ", ")
}

// check prints the result, or returns an error if the policy is invalid.
func (p policyText) check(out io.Writer, catalog conf.Catalog) error {
	if p.key != "" {
		fmt.Fprintf(out, "the policy is the key %s of the ConfigMap\n", p.key)
	}
	c, warnings, err := conf.Parse(p.source, p.text, catalog)
	for _, w := range warnings {
		fmt.Fprintf(out, "warning: %s\n", w)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s is a valid configuration\n", p.source)
	for _, action := range c.Actions {
		fmt.Fprintf(out, "%s: %s\n", action, mayEvict(action, c, catalog))
	}
	return nil
}

func newPrintDefaultCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "print-default",
		Short: "Print the policy that applies without --scheduler-conf",
		Args:  exactly(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			registry, err := p.registry()
			if err != nil {
				return err
			}
			c, err := conf.Default(registry.Catalog())
			if err != nil {
				return err
			}
			fmt.Fprint(cmd.OutOrStdout(), conf.DefaultYAML()+actionComments(registry.ActionsOf(c)))
			return nil
		},
	}
}

// actionComments lists the actions of a cycle as YAML comments.
func actionComments(actions []framework.ListedAction) string {
	var b strings.Builder
	b.WriteString("# Each cycle runs these actions, in this order:\n")
	for _, action := range actions {
		b.WriteString("# - " + action.Name)
		if action.Always {
			b.WriteString(" (always, not configurable)")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// mayEvict describes the pods that an action may evict under a configuration.
func mayEvict(action string, c *conf.Configuration, catalog conf.Catalog) string {
	switch action {
	case "allocate", "backfill":
		return "evicts nothing"
	case "preempt":
		return "may evict, for jobs of the same queue, " + permittedBy(catalog.Permitting(c, conf.Preemptable))
	case "reclaim":
		return "may evict, for jobs of other queues, " + permittedBy(catalog.Permitting(c, conf.Reclaimable))
	default:
		return "third-party action; unknown which pods it may evict"
	}
}

func permittedBy(plugins []string) string {
	if len(plugins) == 0 {
		return "nothing, since no plugin permits it"
	}
	return "what these plugins permit: " + strings.Join(plugins, ", ")
}

// exactly rejects any other number of arguments. The message contains the names.
func exactly(n int, names string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == n:
			return nil
		case n == 0:
			return usageError{cmd.CommandPath(), fmt.Errorf("%s takes no arguments, got %q", cmd.Name(), args[0])}
		default:
			return usageError{cmd.CommandPath(), fmt.Errorf("%s takes %s, got %s", cmd.Name(), names, text.Count(len(args), "argument", "arguments"))}
		}
	}
}
