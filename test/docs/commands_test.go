// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/batch-scheduler/batch-scheduler/cmd/batch-scheduler/app"
	plugin "github.com/batch-scheduler/batch-scheduler/cmd/kubectl-batch/app"
	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/test/chart"
)

// TestCommands checks each line of each shell block, and the commands within the prose. What TestTutorials and
// TestTroubleshooting run is not looked at here.
func TestCommands(t *testing.T) {
	t.Parallel()
	type command struct{ at, line string }
	var commands []command
	for _, b := range blocks(t) {
		switch b.language {
		case "sh":
			text := b.text
			if b.isOf(filepath.Join(root, policyTutorial)) { // see TestPolicyTutorial
				continue
			}
			if run := append(tutorials(t), filepath.Join(root, troubleshooting)); slices.ContainsFunc(run, b.isOf) {
				text = strings.Join(elsewhere.FindAllString(text, -1), "\n")
			}
			for line := range strings.Lines(text) {
				commands = append(commands, command{b.at, line})
			}
		case "yaml", "text":
		default:
			t.Errorf("%s: a block must say whether it is sh, yaml or text, not %q", b.at, b.language)
		}
	}
	for _, line := range spans(t, "make", "kubectl", "helm", "batch-scheduler", "go run") {
		commands = append(commands, command{"prose", line})
	}
	if len(commands) < 10 {
		t.Fatalf("found only %q", commands)
	}
	for _, c := range commands {
		line, _, _ := strings.Cut(c.line, " #") // a comment of the shell
		t.Run(c.at+" "+strings.TrimSpace(line), func(t *testing.T) {
			if err := checkCommand(t, strings.Fields(line)); err != nil {
				t.Error(err)
			}
		})
	}
}

func checkCommand(t *testing.T, words []string) error {
	t.Helper()
	if strings.ContainsAny(strings.Join(words, " "), `"'|&;$<>`) {
		return errors.New("this test knows no shell syntax")
	}
	switch words[0] {
	case "make":
		return checkMake(t, words[1:])
	case "kubectl":
		return checkKubectl(t, words[1:])
	case "helm":
		return checkHelm(t, words[1:])
	case "batch-scheduler", "bin/batch-scheduler":
		return checkScheduler(t, words[1:])
	case "go":
		if len(words) > 3 && words[1] == "run" && words[2] == "./cmd/batch-scheduler" {
			return checkScheduler(t, words[3:])
		}
		if len(words) > 2 && words[1] == "run" && words[2] == "./cmd/localcluster" {
			return checkLocalCluster(words[3:])
		}
		if len(words) > 2 && words[1] == "run" && strings.HasPrefix(words[2], "./test/perf/") {
			return checkBenchmark(words[2], words[3:])
		}
		if len(words) > 2 && words[1] == "test" {
			return checkTest(words[2], words[3:])
		}
	}
	return errors.New("this test does not know how to check the command; teach it")
}

// checkMake looks for the targets.
func checkMake(t *testing.T, words []string) error {
	t.Helper()
	makefile := strings.Join(lines(t, filepath.Join(root, "Makefile")), "\n")
	for _, word := range words {
		if strings.Contains(word, "=") {
			continue
		}
		if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(word) + `:`).MatchString(makefile) {
			return fmt.Errorf("the Makefile has no target %q", word)
		}
	}
	return nil
}

// checkBenchmark looks for the flags; to run it takes minutes.
func checkBenchmark(dir string, words []string) error {
	source, err := os.ReadFile(filepath.Join(root, dir, "main.go"))
	if err != nil {
		return err
	}
	for _, word := range words {
		if name, ok := strings.CutPrefix(word, "-"); ok && !strings.Contains(string(source), `"`+name+`", `) {
			return fmt.Errorf("%s has no flag -%s", dir, name)
		}
	}
	return nil
}

// checkLocalCluster looks for the flags.
func checkLocalCluster(words []string) error {
	source, err := os.ReadFile(filepath.Join(root, "cmd/localcluster/internal/app/command.go"))
	if err != nil {
		return err
	}
	for _, word := range words {
		name, isFlag := strings.CutPrefix(word, "--")
		if name, _, _ = strings.Cut(name, "="); isFlag && !strings.Contains(string(source), `, "`+name+`", `) {
			return fmt.Errorf("localcluster has no flag --%s", name)
		}
	}
	return nil
}

// checkTest looks for the tests and the flags; to run them takes minutes.
func checkTest(dir string, words []string) error {
	files, err := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("there are no tests in %s: %w", dir, err)
	}
	var source strings.Builder
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		source.Write(data)
	}
	for i, word := range words {
		switch name, isFlag := strings.CutPrefix(word, "-"); {
		case !isFlag || slices.Contains([]string{"args", "v", "race", "timeout"}, name):
		case name == "run" && i+1 < len(words):
			if !regexp.MustCompile(`(?m)^func (` + words[i+1] + `)\(`).MatchString(source.String()) {
				return fmt.Errorf("%s has no test %s", dir, words[i+1])
			}
		case !regexp.MustCompile(`flag\.\w+\("` + name + `", `).MatchString(source.String()):
			return fmt.Errorf("the tests of %s have no flag -%s", dir, name)
		}
	}
	return nil
}

// checkHelm renders the chart with the values.
func checkHelm(t *testing.T, words []string) error {
	t.Helper()
	var operands []string
	var namespace string
	values := map[string]any{}
	for i := 1; i < len(words); i++ {
		switch words[i] {
		case "--create-namespace":
			if words[0] != "install" {
				return errors.New("only install makes the namespace")
			}
		case "--namespace":
			i++
			namespace = words[i]
		case "--values":
			i++
			text, found := fileOf(t, words[i])
			if !found {
				return fmt.Errorf("there is no file %s, and no block that begins with it as a comment", words[i])
			}
			if err := yaml.UnmarshalStrict([]byte(text), &values); err != nil {
				return err
			}
		default:
			operands = append(operands, words[i])
		}
	}
	switch {
	case namespace == "":
		return errors.New("the namespace is missing")
	case words[0] == "uninstall" && len(operands) == 1:
		return nil
	case (words[0] == "install" || words[0] == "upgrade") && len(operands) == 2:
		_, err := chart.Render(filepath.Join(root, operands[1]), namespace, values)
		return err
	}
	return errors.New("this test does not know how to check the command; teach it")
}

// checkScheduler runs what needs no cluster, and parses the flags of what does.
func checkScheduler(t *testing.T, words []string) error {
	command := app.NewSchedulerCommand()
	if len(words) == 0 {
		return nil
	}
	if words[0] == "simulate" {
		return checkSimulate(t, words[1:])
	}
	if words[0] != "config" && words[0] != "version" {
		return parseFlags(command.ParseFlags, words)
	}
	if len(words) == 3 {
		words[2] = filepath.Join(root, words[2])
	}
	if code, output := scheduler(words...); code != 0 {
		return errors.New(output)
	}
	return nil
}

// checkSimulate runs what needs no cluster.
func checkSimulate(t *testing.T, words []string) error {
	t.Helper()
	if len(words) == 0 || slices.Equal(words, []string{"--help"}) {
		return nil
	}
	for i := 1; i < len(words); i++ {
		if words[i-1] == "-o" {
			words[i] = filepath.Join(t.TempDir(), words[i])
		}
		inRepository := slices.Contains([]string{"--objects", "--config", "--compare", "--trace"}, words[i-1])
		if inRepository || words[i-1] == "--nodes" && strings.HasSuffix(words[i], ".csv") {
			words[i] = filepath.Join(root, words[i])
		}
	}
	if slices.Contains(words, "--from-cluster") {
		command, _, err := app.NewSchedulerCommand().Find([]string{"simulate"})
		if err != nil {
			return err
		}
		return command.ParseFlags(words)
	}
	if code, output := scheduler(append([]string{"simulate"}, words...)...); code != 0 {
		return errors.New(output)
	}
	return nil
}

func parseFlags(parse func([]string) error, words []string) error {
	if slices.Equal(words, []string{"--help"}) {
		return nil
	}
	return parse(words)
}

// checkPlugin looks for the command of the plugin, and parses its flags.
func checkPlugin(t *testing.T, words []string) error {
	t.Helper()
	command, rest, err := plugin.NewCommand(genericiooptions.IOStreams{}).Find(words)
	if err != nil {
		return err
	}
	if err = parseFlags(command.ParseFlags, rest); err != nil {
		return err
	}
	if command.HasSubCommands() && !slices.Contains(words, "--help") {
		return fmt.Errorf("%s needs one of its subcommands", command.CommandPath())
	}
	if command.Name() == "convert" {
		return checkConvert(t, words)
	}
	file := command.Flags().Lookup("filename")
	if file == nil || file.Value.String() == "" {
		return nil
	}
	text, found := fileOf(t, file.Value.String())
	if !found {
		return fmt.Errorf("there is no file %s, and no block that begins with it as a comment", file.Value)
	}
	return submit(t, text)
}

// submit has the plugin read a file, and send nothing.
func submit(t *testing.T, text string) error {
	t.Helper()
	command := plugin.NewCommand(genericiooptions.IOStreams{In: strings.NewReader(text), Out: io.Discard, ErrOut: io.Discard})
	command.SetArgs([]string{"submit", "-f", "-", "--dry-run=client"})
	return command.Execute()
}

// checkConvert converts the file that the command names, and looks for a block with the result.
func checkConvert(t *testing.T, words []string) error {
	t.Helper()
	i := slices.Index(words, "-f") + 1
	if i == 0 {
		return nil // only the name of the command
	}
	given, found := fileOf(t, words[i])
	if !found {
		return fmt.Errorf("there is no file %s, and no block that begins with it as a comment", words[i])
	}
	var out strings.Builder
	command := plugin.NewCommand(genericiooptions.IOStreams{In: strings.NewReader(given), Out: &out, ErrOut: io.Discard})
	words[i] = "-"
	command.SetArgs(words)
	if err := command.Execute(); err != nil {
		return err
	}
	converted := decode(t, out.String())
	if !slices.ContainsFunc(texts(t), func(y text) bool { return y.kind == "Queue" && reflect.DeepEqual(decode(t, y.text), converted) }) {
		return fmt.Errorf("no block has what it is converted to:\n%s", out.String())
	}
	return nil
}

func checkKubectl(t *testing.T, words []string) error {
	t.Helper()
	if len(words) > 0 && words[0] == "batch" {
		return checkPlugin(t, words[1:])
	}
	if len(words) > 0 && words[0] == "logs" { // which only a kubelet has
		return checkLogs(t, words[1:])
	}
	if len(words) > 0 && words[0] == "annotate" {
		return checkAnnotate(words[1:])
	}
	if len(words) > 0 && words[0] == "label" {
		return checkLabel(words[1:])
	}
	if len(words) == 0 || !slices.Contains([]string{"apply", "delete", "get", "describe"}, words[0]) {
		return errors.New("this test does not know how to check the command; teach it")
	}
	var names []string
	for i := 1; i < len(words); i++ {
		switch words[i] {
		case "-A":
		case "-n", "-o":
			i++
		case "-k":
			i++
			render(t, words[i])
			return nil
		case "-f":
			i++
			if _, found := fileOf(t, words[i]); !found {
				return fmt.Errorf("there is no file %s, and no block that begins with it as a comment", words[i])
			}
			return nil
		default:
			names = append(names, words[i])
		}
	}
	if len(names) == 0 || strings.HasPrefix(names[0], "-") {
		return errors.New("this test does not know how to check the command; teach it")
	}
	if known := resources(t); !slices.Contains(known, names[0]) {
		return fmt.Errorf("there is no resource %q, only %q", names[0], known)
	}
	return nil
}

// checkAnnotate reads the annotation of a node as the scheduler does.
func checkAnnotate(words []string) error {
	if len(words) != 3 || words[0] != "node" {
		return errors.New("this test does not know how to check the command; teach it")
	}
	key, value, set := strings.Cut(words[2], "=")
	if !set {
		key = strings.TrimSuffix(key, "-")
	}
	if key != v1alpha1.AnnotationUnavailableFrom {
		return fmt.Errorf("the scheduler reads no annotation %s of nodes", key)
	}
	if !set {
		return nil
	}
	_, err := api.UnavailableFromOf(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{key: value}}})
	return err
}

func checkLabel(words []string) error {
	if len(words) != 3 || words[0] != "node" {
		return errors.New("this test does not know how to check the command; teach it")
	}
	key, value, _ := strings.Cut(words[2], "=")
	if key != v1alpha1.LabelNodeWeight {
		return fmt.Errorf("the scheduler reads no label %s of nodes", key)
	}
	if weight, err := strconv.Atoi(value); err != nil || weight < 0 || weight > v1alpha1.MaxNodeWeight {
		return fmt.Errorf("%q is no weight of a node", value)
	}
	return nil
}

// checkLogs looks whether config/default makes what has the logs, in the namespace.
func checkLogs(t *testing.T, words []string) error {
	t.Helper()
	if len(words) < 3 || words[0] != "-n" {
		return errors.New("this test does not know how to check the command; teach it")
	}
	kind, name, _ := strings.Cut(words[2], "/")
	for _, object := range render(t, "config/default") {
		head := struct {
			Kind     string            `json:"kind"`
			Metadata metav1.ObjectMeta `json:"metadata"`
		}{}
		if err := yaml.Unmarshal([]byte(object), &head); err != nil {
			return err
		}
		if strings.EqualFold(head.Kind, kind) && head.Metadata.Name == name && head.Metadata.Namespace == words[1] {
			return nil
		}
	}
	return fmt.Errorf("config/default has no %s", words[2])
}

// resources are the names by which kubectl knows what the documentation is about.
func resources(t *testing.T) []string {
	t.Helper()
	known := []string{"pod", "pods", "namespace", "nodes", "events"}
	for _, text := range render(t, "config/crd") {
		definition, ok := decode(t, text).(*apiextensionsv1.CustomResourceDefinition)
		if !ok {
			t.Fatalf("not a definition:\n%s", text)
		}
		names := definition.Spec.Names
		known = append(append(known, names.Plural, names.Singular, definition.Name), names.ShortNames...)
	}
	return known
}

// render returns the objects of a kustomization of the source tree.
func render(t *testing.T, dir string) []string {
	t.Helper()
	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(root, dir))
	if err != nil {
		t.Fatal(err)
	}
	var objects []string
	for _, resource := range rendered.Resources() {
		text, err := resource.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, string(text))
	}
	return objects
}
