package docs_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/batch-scheduler/batch-scheduler/cmd/batch-scheduler/app"
)

// TestCommands checks each line of each shell block, and the commands within the prose.
func TestCommands(t *testing.T) {
	t.Parallel()
	type command struct{ at, line string }
	var commands []command
	for _, b := range blocks(t) {
		switch b.language {
		case "sh":
			for line := range strings.Lines(b.text) {
				commands = append(commands, command{b.at, line})
			}
		case "yaml", "text":
		default:
			t.Errorf("%s: a block must say whether it is sh, yaml or text, not %q", b.at, b.language)
		}
	}
	for _, line := range spans(t, "make", "kubectl", "batch-scheduler", "go run") {
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
	case "docker":
		return checkDocker(words[1:])
	case "batch-scheduler", "bin/batch-scheduler":
		return checkScheduler(words[1:])
	case "go":
		if len(words) > 3 && words[1] == "run" && words[2] == "./cmd/batch-scheduler" {
			return checkScheduler(words[3:])
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

// checkDocker looks for what is built; there is no Docker here.
func checkDocker(words []string) error {
	data, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	if err != nil {
		return err
	}
	if len(words) == 0 || words[0] != "build" && words[0] != "push" {
		return errors.New("this test knows only build and push")
	}
	if !strings.Contains(string(data), "./cmd/batch-scheduler") {
		return errors.New("the Dockerfile does not build the scheduler")
	}
	return nil
}

// checkScheduler runs what needs no cluster, and parses the flags of what does.
func checkScheduler(words []string) error {
	command := app.NewSchedulerCommand()
	if len(words) == 0 {
		return nil
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

func parseFlags(parse func([]string) error, words []string) error {
	if slices.Equal(words, []string{"--help"}) {
		return nil
	}
	return parse(words)
}

func checkKubectl(t *testing.T, words []string) error {
	t.Helper()
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

// resources are the names by which kubectl knows what the documentation is about.
func resources(t *testing.T) []string {
	t.Helper()
	known := []string{"pod", "pods", "nodes", "events"}
	for _, text := range render(t, "config/crd") {
		definition, ok := decode(t, text).(*apiextensionsv1.CustomResourceDefinition)
		if !ok {
			t.Fatalf("not a definition:\n%s", text)
		}
		names := definition.Spec.Names
		known = append(append(known, names.Plural, names.Singular), names.ShortNames...)
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
