// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/batch-scheduler/batch-scheduler/cmd/kubectl-batch/internal/show"
	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/test/golden"
)

// job is one whose template names the PodGroup of the same name.
func job(name string) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID("uid-job-" + name)}}
	j.Spec.Template.Labels = map[string]string{v1alpha1.LabelPodGroup: name}
	return j
}

// TestReadersWriteNothing runs each command that is said to read, in all its forms.
func TestReadersWriteNothing(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"get podgroups", "get podgroups -A -o wide", "get podgroups train -o json", "get pg -o yaml", "get groups", "explain train", "get queues", "get queues research -o wide",
		"why train", "why odd", "why absent", "why job/train", "why job/other", "why pod/train-0", "why pod/lonely", "top queues", "top topology", "top gpus", "completion bash",
		"submit --name a --image b --dry-run=client", "cancel absent", "cancel odd", "record --for 1ms",
		"__complete why ", "__complete get queues ", "__complete submit --queue ",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			c := newPretended()
			run(t, c, "", strings.Split(line, " ")...)
			if diff := cmp.Diff([]string(nil), c.writes()); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			if strings.HasPrefix(line, "get") && len(c.batch.Actions()) == 0 {
				t.Error("read nothing either")
			}
		})
	}
}

func TestOutput(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"get-podgroups":        "get podgroups",
		"get-group-yaml":       "get podgroups train -o yaml",
		"get-queues-json":      "get queues -o json",
		"get-podgroups-absent": "get podgroups absent",
		"why":                  "why train --events",
		"get-names":            "get podgroups -o name",
		"get-jsonpath":         "get podgroups -o jsonpath={.items[*].metadata.name}",
		"get-columns":          "get podgroups -o custom-columns=NAME:.metadata.name,MIN:.spec.minMember,SINCE:.status.scheduledTime",
		"get-columns-file":     "get queues -o custom-columns-file=testdata/columns",
		"get-selected":         "get podgroups -l tier=gold",
		"get-sorted":           "get queues --sort-by .spec.weight",
		"top-queues-json":      "top queues -o json",
		"why-json":             "why train --events -o json",
		"why-pod-jsonpath":     "why pod/lonely -o jsonpath={.reason}:{.pods.pending}",
		"why-job":              "why job/train --events",
		"why-pod":              "why pod/lonely --events",
		"why-absent":           "why absent",
		"top-queues":           "top queues",
		"top-topology-none":    "top topology",
		"top-gpus-none":        "top gpus",
		"submit":               "submit --name new --replicas 4 --gpu 1 --image trainer:7 --queue research",
		"submit-dry-run":       "submit --name new --replicas 4 --cpu 2 --image trainer:7 --min 2 --priority-class high --dry-run=client -o yaml -- sleep 60",
		"cancel":               "cancel train",
		"complete-groups":      "__complete why ",
		"complete-more-groups": "__complete get podgroups train ",
		"complete-queues":      "__complete submit --queue r",
		"complete-outputs":     "__complete get queues -o ",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			printed(t, name, run(t, newPretended(), "", strings.Split(line, " ")...))
		})
	}
}

func printed(t *testing.T, name, got string) {
	t.Helper()
	golden.Check(t, filepath.Join("testdata", name+".txt"), got)
	tooLong(t, got)
}

// tooLong looks for lines that a terminal would break. What the API server says is not ours to shorten.
func tooLong(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > show.Width && !strings.HasPrefix(line, "error: ") {
			t.Errorf("over %d columns: %s", show.Width, line)
		}
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	var visit func(cmd *cobra.Command, path []string)
	visit = func(cmd *cobra.Command, path []string) {
		help := run(t, newPretended(), "", append(path, "--help")...)
		tooLong(t, help)
		if cmd.HasParent() && cmd.Example == "" {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
		for example := range strings.Lines(cmd.Example) {
			words := strings.Fields(strings.Split(example, " #")[0])
			if words[0] == "source" {
				continue // the shell's
			}
			used, rest, err := NewCommand(genericiooptions.IOStreams{}).Find(words[2:])
			if err == nil {
				err = used.ParseFlags(rest)
			}
			if err != nil || used.HasSubCommands() {
				t.Errorf("example of %s: %s: %v", cmd.CommandPath(), strings.TrimSpace(example), err)
			}
		}
		for _, sub := range cmd.Commands() {
			visit(sub, append(path, sub.Name()))
		}
	}
	visit(NewCommand(genericiooptions.IOStreams{}), nil)
}

// TestHelpOmitsTheFlagsOfAllCommands keeps the flags of kubectl out of each help, where they would be most of it.
func TestHelpOmitsTheFlagsOfAllCommands(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]struct{ has, lacks string }{
		"--help":               {"kubectl batch options", "--kubeconfig"},
		"get podgroups --help": {"--selector", "--kubeconfig"},
		"submit --help":        {"--replicas", "--kubeconfig"},
		"options":              {"--kubeconfig", "--replicas"},
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			cmd := NewCommand(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out})
			cmd.SetArgs(strings.Split(line, " "))
			if err := cmd.ExecuteContext(t.Context()); err != nil {
				t.Fatal(err)
			}
			tooLong(t, out.String())
			if !strings.Contains(out.String(), want.has) || strings.Contains(out.String(), want.lacks) {
				t.Errorf("want %s and not %s in:\n%s", want.has, want.lacks, out.String())
			}
		})
	}
}

func TestWrongInput(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"gett":                                    `unknown command "gett" for "kubectl batch" Did you mean this? get`,
		"get":                                     `kubectl batch get requires a resource: podgroups, queues; kubectl batch get --help shows examples`,
		"get nodes":                               `kubectl batch get: unknown resource "nodes"; valid resources: podgroups, queues`,
		"get podgroups -o nam":                    `-o nam: unknown output format; valid formats: wide, name, custom-columns=, custom-columns-file=, json, yaml, jsonpath=, go-template=`,
		"get podgroups -o jsonpath":               `-o jsonpath: template format specified but no template given`,
		"get podgroups -o jsonpath={.items":       `-o jsonpath={.items: error parsing jsonpath {.items, unclosed action`,
		"get podgroups -o custom-columns":         `-o custom-columns: custom-columns format specified but no custom columns given`,
		"get queues -o custom-columns=NAME":       `-o custom-columns=NAME: unexpected custom-columns spec: NAME, expected <header>:<json-path-expr>`,
		"get podgroups -l a=b=c":                  `-l a=b=c: found '=', expected: ',' or 'end of string'`,
		"get podgroups train -l a=b":              `names and -l cannot be combined`,
		"get podgroups --sort-by .spec.no":        `--sort-by .spec.no: no object has this field`,
		"get podgroups --sort-by {.spec":          `--sort-by {.spec: unclosed action`,
		"why train -o name":                       `-o name: unknown output format; valid formats: json, yaml, jsonpath=, go-template=`,
		"get podgroups a b --watch":               `--watch accepts at most one name`,
		"get podgroups a -A":                      `names and -A cannot be combined`,
		"get podgroups --wacht":                   `unknown flag: --wacht; see kubectl batch get podgroups --help`,
		"get queues absent":                       `Queue "absent" not found; "kubectl batch get queues" lists all`,
		"why":                                     `why requires the name of one PodGroup, or KIND/NAME; "kubectl batch get podgroups" lists the PodGroups`,
		"why a b":                                 `why requires the name of one PodGroup, or KIND/NAME; "kubectl batch get podgroups" lists the PodGroups`,
		"why nod/n1":                              `the server doesn't have a resource type "nod"`,
		"why job/absent":                          `job "absent" not found in namespace team; "kubectl get jobs -A" lists all namespaces`,
		"why job/other":                           `job/other names PodGroup "other", which does not exist, and controls no pods`,
		"why absent":                              `PodGroup "absent" not found in namespace team; "kubectl batch get podgroups -A" lists all namespaces`,
		"why podgroup/absent":                     `PodGroup "absent" not found in namespace team; "kubectl batch get podgroups -A" lists all namespaces`,
		"why pod/absent":                          `pod "absent" not found in namespace team; "kubectl get pods -A" lists all namespaces`,
		"top":                                     `kubectl batch top requires a resource: queues, topology, gpus; kubectl batch top --help shows examples`,
		"top queues a":                            `top queues accepts no names; it shows all Queues`,
		"top topology a b":                        `top topology accepts at most one name`,
		"top gpus a":                              `top gpus accepts no names; it shows all models`,
		"top gpus -o wide":                        `-o wide: unknown output format; valid formats: json, yaml, jsonpath=, go-template=`,
		"top topology -o wide":                    `-o wide: unknown output format; valid formats: json, yaml, jsonpath=, go-template=`,
		"top topology absent":                     `Topology "absent" not found; "kubectl get topologies" lists all`,
		"top queues -o name":                      `-o name: unknown output format; valid formats: json, yaml, jsonpath=, go-template=`,
		"top queues -o custom-columns=A:.a":       `-o custom-columns=A:.a: unknown output format; valid formats: json, yaml, jsonpath=, go-template=`,
		"top queues -w -o json":                   `--watch and -o cannot be combined`,
		"cancel":                                  `cancel requires the name of one PodGroup; "kubectl batch get podgroups" lists them`,
		"cancel absent":                           `PodGroup "absent" not found in namespace team; "kubectl batch get podgroups -A" lists all namespaces`,
		"cancel odd":                              `pod odd-0 of PodGroup odd belongs to ReplicaSet odd, which cancel does not delete; delete that object first`,
		"completion fish":                         `completion requires the name of a shell: bash or zsh`,
		"submit":                                  `--name is required: the name of the Job and its PodGroup`,
		"submit a":                                `unexpected argument "a"; put the command of the container after --`,
		"submit --name a":                         `--image is required: the container image of the pods`,
		"submit --name a --image b --min 0":       `--min: 0 is invalid; it must be at least 1`,
		"submit --name a --image b --dry-run=yes": `--dry-run: unknown value "yes"; valid values: none, client, server`,
		"submit --name a --image b -o wide":       `-o wide: unknown output format; valid formats: name, json, yaml, jsonpath=, go-template=`,
		"submit -f none.yaml":                     `-f: open none.yaml: no such file or directory`,
		"submit -f none.yaml --replicas 2":        `--replicas and -f cannot be combined`,
		"submit -f none.yaml -- sleep":            `a command and -f cannot be combined`,
		"submit -f -":                             `-f -: no Job found`,
		"submit --time 1w":                        `invalid argument "1w" for "--time" flag: "1w" is not a time; valid forms: 90m, 12h, 1d12h, and those of Slurm, such as 90 (minutes), 12:00:00 and 1-12:00:00; see kubectl batch submit --help`,
		"record day.jsonl":                        `unexpected argument "day.jsonl"; -o names the file`,
		"record --for -1h":                        `--for: must not be negative, but is -1h0m0s`,
		"record --anonymise=":                     `--anonymise: the key must not be empty`,
		"record -o testdata/why.txt":              `-o: open testdata/why.txt: file exists`,
		"why podgroup.scheduling.batch-scheduler.dev/absent": `PodGroup "absent" not found in namespace team; "kubectl batch get podgroups -A" lists all namespaces`,
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff("error: "+want+"\n", run(t, newPretended(), "", strings.Split(line, " ")...)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestWhatTheAPIServerRefuses(t *testing.T) {
	t.Parallel()
	unserved := apierrors.NewGenericServerResponse(http.StatusNotFound, "get", v1alpha1.Resource("podgroups"), "train", "", 0, true)
	for name, test := range map[string]struct {
		line, verb, resource string
		err                  error
		want                 string // part of the error
	}{
		"the kinds are not installed":    {"why train", "get", "podgroups", unserved, "error: the CustomResourceDefinitions of PodGroup and Queue are not installed; install them: kubectl apply -k config/crd"},
		"queues may not be read":         {"top queues", "list", "queues", apierrors.NewForbidden(v1alpha1.Resource("queues"), "", errors.New("no")), "access requires a ClusterRoleBinding to the role batch-scheduler-view"},
		"topologies are not installed":   {"top topology", "list", "topologies", apierrors.NewGenericServerResponse(http.StatusNotFound, "list", v1alpha1.Resource("topologies"), "", "", 0, true), "error: the CustomResourceDefinition of Topology is not installed; install it: kubectl apply -k config/crd"},
		"topologies may not be read":     {"top topology", "list", "topologies", apierrors.NewForbidden(v1alpha1.Resource("topologies"), "", errors.New("no")), "topologies have no namespace: access requires a ClusterRoleBinding to the role batch-scheduler-view"},
		"pods may not be read":           {"why train", "list", "pods", apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no")), "reading requires the role view, submit and cancel require the role edit"},
		"not all namespaces may be read": {"get podgroups -A", "list", "podgroups", apierrors.NewForbidden(v1alpha1.Resource("podgroups"), "", errors.New("no")), "reading all namespaces requires a ClusterRoleBinding to the role view; -n NAMESPACE reads one"},
		"nodes may not be recorded":      {"record", "list", "nodes", apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", errors.New("no")), "it requires a ClusterRoleBinding to the role batch-scheduler-record"},
		"connection refused":             {"get podgroups", "list", "podgroups", errors.New("connection refused"), "error: connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newPretended()
			c.refuse(test.verb, test.resource, test.err)
			if got := run(t, c, "", strings.Split(test.line, " ")...); !strings.Contains(got, test.want) {
				t.Errorf("want %q in %q", test.want, got)
			}
		})
	}
}
