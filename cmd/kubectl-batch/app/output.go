// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/kubectl/pkg/cmd/get"
)

// documentVersion is the apiVersion of what is printed for programs and is no API object.
const documentVersion = "cli.batch-scheduler.dev/v1alpha1"

// Output formats that not every command has.
const (
	formatWide = "wide" // for people
	formatName = "name"

	formatColumns     = "custom-columns="
	formatColumnsFile = "custom-columns-file="
)

// formats returns the output formats for programs, which the printers of kubectl implement. They also accept the variants of
// kubectl, such as jsonpath-file.
func formats() []string { return []string{"json", "yaml", "jsonpath=", "go-template="} }

// addOutputFlag adds -o with the formats for programs and others.
func addOutputFlag(cmd *cobra.Command, output *string, others ...string) {
	valid := slices.Concat(others, formats())
	cmd.Flags().StringVarP(output, "output", "o", "", "output `FORMAT`: "+strings.Join(valid, ", "))
	utilruntime.Must(cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(valid, cobra.ShellCompDirectiveNoFileComp)))
}

// structured reports whether an output format is for programs.
func structured(output string) bool { return output != "" && output != formatWide }

// checkOutput returns an error unless a command with the formats for programs and others can print in a format.
func checkOutput(output string, others ...string) error {
	if output == "" || slices.Contains(others, output) {
		return nil
	}
	err := error(nil)
	switch {
	case output == formatName, output == formatWide:
	case inColumns(output) && slices.Contains(others, formatColumns):
		if _, err = columnsPrinter(output); err == nil {
			return nil
		}
	default:
		if _, err = objectPrinter(output); err == nil {
			return nil
		}
	}
	if err != nil && !genericclioptions.IsNoCompatiblePrinterError(err) {
		return fmt.Errorf("-o %s: %w", output, err)
	}
	return fmt.Errorf("-o %s: unknown output format; valid formats: %s", output, strings.Join(slices.Concat(others, formats()), ", "))
}

// objectPrinter prints objects, whose kind must be set, in an output format for programs.
func objectPrinter(output string) (printers.ResourcePrinter, error) {
	return genericclioptions.NewPrintFlags("").WithDefaultOutput(output).ToPrinter()
}

// inColumns reports whether an output format is a table whose columns the user gives.
func inColumns(output string) bool { return strings.HasPrefix(output, "custom-columns") }

// columnsPrinter prints objects without a type in such a format, with the titles before the first list.
func columnsPrinter(output string) (printers.ResourcePrinter, error) {
	return get.NewCustomColumnsPrintFlags().ToPrinter(output)
}

// printDocument prints content that is no API object, with a kind of its own.
func printDocument[T any](out io.Writer, output, kind string, content T) error {
	printer, err := objectPrinter(output)
	if err != nil {
		return err
	}
	encoded, err := json.Marshal(content)
	if err != nil {
		return err
	}
	document := &unstructured.Unstructured{}
	if err = json.Unmarshal(encoded, &document.Object); err != nil {
		return err
	}
	document.SetAPIVersion(documentVersion)
	document.SetKind(kind)
	return printer.PrintObj(document, out)
}
