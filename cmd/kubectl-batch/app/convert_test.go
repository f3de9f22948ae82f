// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/batch-scheduler/batch-scheduler/test/golden"
)

// TestConvert compares what goes to standard output, and the warnings, with files.
func TestConvert(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"convert-volcano": "convert -f testdata/convert/volcano.yaml",
		"convert-kai":     "convert -f testdata/convert/kai.yaml --gpu-resource amd.com/gpu",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, warnings bytes.Buffer
			c := newPretended()
			cmd := newCommand(genericiooptions.IOStreams{Out: &out, ErrOut: &warnings}, c)
			cmd.SetArgs(strings.Split(line, " "))
			if err := cmd.ExecuteContext(t.Context()); err != nil {
				t.Fatal(err)
			}
			golden.Check(t, filepath.Join("testdata", name+".yaml"), out.String())
			golden.Check(t, filepath.Join("testdata", name+"-warnings.txt"), warnings.String())
			if actions := append(c.core.Actions(), c.batch.Actions()...); len(actions) > 0 {
				t.Errorf("convert sends requests: %v", actions)
			}
		})
	}
}

func TestConvertFlags(t *testing.T) {
	t.Parallel()
	const (
		header = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: a}\n"
		queue  = "apiVersion: scheduling.batch-scheduler.dev/v1alpha1\nkind: Queue\nmetadata:\n  name: a\nspec:\n  weight: 1\n"
		lost   = "Warning: Queue \"a\": spec.type: no counterpart\n"
	)
	for name, test := range map[string]struct{ line, input, want string }{
		"standard input":               {"convert -f -", header, queue},
		"a loss is a warning":          {"convert -f -", header + "spec: {type: x}\n", lost + queue},
		"a loss, strictly":             {"convert -f - --strict", header + "spec: {type: x}\n", lost + "error: --strict: the settings in the warnings cannot be translated without loss\n"},
		"no loss, strictly":            {"convert -f - --strict", header, queue},
		"wrong input names the file":   {"convert -f -", "kind: Queue\n", "error: -f -: document 1: apiVersion and kind are required\n"},
		"a name twice names the files": {"convert -f - -f testdata/convert/twice.yaml", header, "error: -f testdata/convert/twice.yaml: document 1: Queue \"a\" is also in -f -: document 1\n"},
		"no Queue":                     {"convert -f -", "# nothing\n", "error: no Queue to write\n"},
		"no file":                      {"convert", "", "error: -f is required: a file with Queues, or - for standard input\n"},
		"a missing file":               {"convert -f none.yaml", "", "error: -f: open none.yaml: no such file or directory\n"},
		"an argument":                  {"convert queues.yaml", "", "error: unexpected argument \"queues.yaml\"; -f reads a file\n"},
		"no extended resource":         {"convert -f - --gpu-resource gpu", header, "error: --gpu-resource: \"gpu\" is not an extended resource, such as nvidia.com/gpu\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, run(t, newPretended(), test.input, strings.Split(test.line, " ")...)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
