// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package architecture_test

import (
	"go/ast"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// importRule limits what the code in some directories may import. Tests are free, for a test of one plugin may
// well need another. Patterns are directories of this module or, with a dot in the first element, of others.
type importRule struct {
	from   []string
	except []string // of from
	never  []string
	only   []string // if not empty, of this module only these, and what belongs to the same plugin or action
	// invariants exempts files that are built with the tag invariants alone.
	invariants bool
	because    string
}

var importRules = []importRule{
	{
		from: []string{"pkg/...", "internal/..."}, never: []string{"cmd/..."},
		because: "imports run downwards: a library does not know which command wires it",
	},
	{
		from:    []string{"pkg/...", "cmd/..."},
		except:  []string{"pkg/scheduler/schedtest/...", "cmd/demo/..."}, // the demo is not shipped either
		never:   []string{"pkg/scheduler/schedtest/...", "test/...", "testing", "pgregory.net/rapid", "github.com/prometheus/prometheus/..."},
		because: "what only tests need is not shipped",
	},
	{
		from:    []string{"pkg/...", "cmd/...", "internal/...", "test/...", "examples/..."},
		never:   []string{"pkg/scheduler/model/modeltest"},
		because: "small models are for tests of packages, which import them as tests",
	},
	{
		from: []string{"cmd/demo/..."}, never: []string{"pkg/scheduler/...", "cmd/batch-scheduler/...", "cmd/localcluster/...", "testing"},
		because: "the demo is a client: it runs the commands as processes, and reads the API as any client",
	},
	{
		from:    []string{"cmd/kubectl-batch/..."},
		only:    []string{"cmd/kubectl-batch/...", "internal/jobfailure", "internal/text", "internal/version", "pkg/apis/...", "pkg/client/...", "pkg/scheduler/api", "pkg/scheduler/devicecounts", "pkg/scheduler/fragmentation", "pkg/scheduler/groupapi", "pkg/scheduler/simulate/trace"},
		because: "the plugin is a client: of the scheduler it knows the API, the rule that says which pods are members, how PodGroups of other APIs are read, how devices are counted and what fragmentation is, and the format of traces",
	},
	{
		from: []string{"pkg/apis/..."}, never: []string{"pkg/scheduler/...", "pkg/client/..."},
		because: "other programs use the types without the scheduler",
	},
	{
		from: []string{"pkg/scheduler/api/..."}, only: []string{"pkg/apis/...", "pkg/scheduler/api/..."},
		because: "the types of the model are at the bottom",
	},
	{
		from: []string{"pkg/scheduler/groupapi/..."}, only: []string{"pkg/apis/...", "pkg/scheduler/api/..."},
		because: "how PodGroups of other APIs are read is the same for the cache, for simulations and for the kubectl plugin",
	},
	{
		from: []string{"pkg/scheduler/ownerapi/..."}, only: []string{"pkg/apis/...", "pkg/scheduler/api/..."},
		because: "which pods of an owner are a gang is the same for the cache and for simulations",
	},
	{
		from: []string{"pkg/scheduler/model/..."}, only: []string{"pkg/apis/...", "pkg/scheduler/api/...", "pkg/scheduler/model/..."},
		because: "the model consists of the types of api and depends on nothing else",
	},
	{
		from:    []string{"pkg/scheduler/api/...", "pkg/scheduler/model/..."},
		never:   []string{"k8s.io/client-go/...", "k8s.io/utils/clock/...", "sync/..."},
		because: "the model has one owner: no client, no lock, no clock; times are arguments",
	},
	{
		from: []string{
			"pkg/scheduler/plugins/...", "pkg/scheduler/actions/...", "pkg/scheduler/nodeindex/...", "pkg/scheduler/reservation/...", "pkg/scheduler/topology",
		},
		never:   []string{"pkg/scheduler/model/..."},
		because: "plugins and actions read the model through api.ClusterView, and change it through statements alone",
	},
	{
		from:       []string{"pkg/...", "cmd/..."},
		except:     []string{"pkg/scheduler/schedtest/...", "pkg/scheduler/audit/..."},
		never:      []string{"pkg/scheduler/audit/..."},
		invariants: true,
		because:    "audits recompute everything: only tests and builds with the tag invariants pay for them",
	},
	{
		from: []string{"pkg/scheduler/nodeindex/..."}, only: []string{"pkg/scheduler/api/..."},
		because: "the index is below the framework: it reads the model, and asks the session through an interface of its own",
	},
	{
		from: []string{"pkg/scheduler/framework/..."},
		only: []string{
			"pkg/apis/...", "pkg/scheduler/api/...", "pkg/scheduler/model/...", "pkg/scheduler/conf/...", "pkg/scheduler/metrics/...", "pkg/scheduler/nodeindex",
		},
		because: "a session works on the model and reaches the cluster through Effects alone, never through the cache",
	},
	{
		from:   []string{"pkg/scheduler/plugins/...", "pkg/scheduler/actions/..."},
		except: []string{"pkg/scheduler/plugins", "pkg/scheduler/actions"}, // the lists of them
		only: []string{
			"pkg/apis/...", "pkg/scheduler/api/...", "pkg/scheduler/conf/...", "pkg/scheduler/framework/...",
			"pkg/scheduler/metrics/...", "pkg/scheduler/nodeindex", "pkg/scheduler/plugins/internal/...",
			"pkg/scheduler/place", "pkg/scheduler/worklist", "pkg/scheduler/preemption", "pkg/scheduler/subgroups", "pkg/scheduler/fragmentation",
			"pkg/scheduler/internal/...",
		},
		because: "plugins and actions know the session, and neither each other nor the cache; what two of them share is in a package below",
	},
	{
		from:    []string{"pkg/scheduler/plugins/..."},
		never:   []string{"pkg/scheduler/place/...", "pkg/scheduler/worklist/...", "pkg/scheduler/preemption/..."},
		because: "a plugin answers at extension points; actions place tasks and evict",
	},
	{
		from: []string{
			"pkg/scheduler/place/...", "pkg/scheduler/worklist/...", "pkg/scheduler/preemption/...", "pkg/scheduler/internal/...",
		},
		only: []string{
			"pkg/apis/...", "pkg/scheduler/api/...", "pkg/scheduler/framework/...", "pkg/scheduler/nodeindex", "pkg/scheduler/place",
			"pkg/scheduler/worklist", "pkg/scheduler/preemption", "pkg/scheduler/subgroups",
			"pkg/scheduler/internal/...",
		},
		because: "what actions are built from depends on no action and no policy",
	},
	{
		from: []string{"pkg/scheduler/place/...", "pkg/scheduler/worklist/..."}, never: []string{"pkg/scheduler/preemption/..."},
		because: "a plan with evictions consists of placements, and not the reverse",
	},
	{
		from: []string{"pkg/scheduler/timeline"}, only: []string{"pkg/scheduler/api/...", "pkg/scheduler/internal/heap"},
		because: "when a gang could start depends on nodes and the ends of tasks alone",
	},
	{
		from: []string{"pkg/scheduler/devicecounts"}, only: []string{"pkg/scheduler/api", "pkg/scheduler/internal/devices"},
		because: "it counts devices as the cache does, in lists of objects",
	},
	{
		from: []string{"pkg/scheduler/subgroups"}, only: []string{"pkg/scheduler/api/..."},
		because: "which tasks a gang needs depends on its members alone",
	},
	{
		from: []string{"pkg/scheduler/fragmentation"}, only: []string{"pkg/scheduler/api"},
		because: "what a node loses depends on what is left of it and on a list of types alone, so that experiments measure what the plugin does",
	},
	{
		from: []string{"examples/..."}, never: []string{"pkg/scheduler/internal/...", "pkg/scheduler/plugins/...", "pkg/scheduler/actions/...", "pkg/scheduler/cache/...", "pkg/scheduler/model/...", "internal/..."},
		because: "an example imports what another module can import, and what a plugin or an action needs",
	},
	{
		from: []string{"pkg/scheduler/reservation/..."},
		only: []string{
			"pkg/apis/...", "pkg/scheduler/api/...", "pkg/scheduler/conf/...", "pkg/scheduler/framework/...", "pkg/scheduler/metrics/...",
			"pkg/scheduler/nodeindex", "pkg/scheduler/place", "pkg/scheduler/preemption", "pkg/scheduler/timeline", "pkg/scheduler/worklist", "pkg/scheduler/reservation/...",
		},
		because: "the policies that always run stand beside plugins and actions: they know the session, and neither plugins nor actions nor the cache",
	},
	{
		from: []string{"pkg/scheduler/topology"}, only: []string{"pkg/apis/scheduling/v1alpha1", "pkg/scheduler/api", "pkg/scheduler/framework", "pkg/scheduler/nodeindex"},
		because: "which nodes a required level excludes depends on the session alone",
	},
	{
		from: []string{"pkg/scheduler/plugins/..."}, never: []string{"pkg/scheduler/actions/..."},
		because: "a plugin answers questions and does not know who asks",
	},
	{
		from: []string{"pkg/scheduler/actions/..."}, never: []string{"pkg/scheduler/plugins/..."},
		because: "an action asks the session, whichever plugins are configured",
	},
	{
		from: []string{"pkg/scheduler/simulate"},
		only: []string{
			"internal/jobfailure", "internal/text", "pkg/apis/...", "pkg/client/...", "pkg/scheduler/api/...", "pkg/scheduler/cache", "pkg/scheduler/conf/...",
			"pkg/scheduler/framework/...", "pkg/scheduler/groupapi", "pkg/scheduler/internal/devices", "pkg/scheduler/model", "pkg/scheduler/ownerapi",
		},
		because: "a simulation runs sessions as the scheduler does, with the plugins that the command hands to it",
	},
	{
		from: []string{"pkg/scheduler/simulate/replay"},
		only: []string{
			"internal/text", "pkg/apis/...", "pkg/scheduler/api", "pkg/scheduler/conf", "pkg/scheduler/framework", "pkg/scheduler/model",
			"pkg/scheduler/simulate/trace",
		},
		because: "a replay runs sessions on a clock of its own, with the plugins that the command hands to it, and knows no cluster",
	},
	{
		from: []string{"pkg/scheduler/simulate/results"}, only: []string{"pkg/scheduler/simulate/replay", "pkg/scheduler/simulate/trace"},
		because: "result files and comparisons word what replays found out, and run nothing",
	},
	{
		from:    []string{"pkg/scheduler/simulate/report"},
		only:    []string{"internal/text", "pkg/scheduler/simulate/replay", "pkg/scheduler/simulate/results"},
		because: "a page shows results, and computes none",
	},
	{
		from: []string{"pkg/scheduler/simulate/trace"}, only: []string{"pkg/apis/...", "pkg/scheduler/api"},
		because: "a format of traces has nothing to do with how jobs are scheduled",
	},
	{
		from: []string{"pkg/scheduler/cache/bind", "pkg/scheduler/cache/evict", "pkg/scheduler/cache/status", "pkg/scheduler/cache/events"},
		only: []string{"internal/jobfailure", "pkg/apis/...", "pkg/client/...", "pkg/scheduler/api", "pkg/scheduler/groupapi", "pkg/scheduler/cache/internal/...", "pkg/scheduler/metrics"},
		because: "binder, evictor, status writers and event recorder do not know each other, nor the cache: each declares the small " +
			"interfaces that it needs, and the cache passes them",
	},
	{
		from: []string{"pkg/scheduler/cache/internal/..."}, never: []string{"pkg/scheduler/..."},
		because: "what the packages of the cache share is about the API server, not about scheduling",
	},
	{
		from: []string{"pkg/scheduler/conf/...", "pkg/scheduler/metrics/..."}, never: []string{"pkg/scheduler/cache/...", "pkg/scheduler/framework/..."},
		because: "the framework imports them",
	},
}

func TestImportsRunDownwards(t *testing.T) {
	t.Parallel()
	for _, file := range readModule(t) {
		for _, complaint := range checkImports(file, importRules) {
			t.Error(complaint)
		}
	}
}

// TestDependenciesAreFew looks at all that is compiled into importers and programs, whichever package imports it.
func TestDependenciesAreFew(t *testing.T) {
	t.Parallel()
	// An API server that is linked into a program brings its flags, its metrics and 100 MB with it.
	onlyForTests := []string{
		"go.etcd.io/etcd/server/v3/...", "k8s.io/kubernetes/cmd/...", "k8s.io/kubernetes/pkg/controlplane/...",
		"k8s.io/apiextensions-apiserver/pkg/apiserver/...", "sigs.k8s.io/kwok/...", "pgregory.net/rapid/...",
		"go.uber.org/goleak/...", "github.com/prometheus/prometheus/...",
		"helm.sh/helm/v4/...", "github.com/google/go-containerregistry/...",
	}
	// A controller that creates PodGroups compiles what client-go needs, and nothing else. "go mod tidy" of an importer also
	// records what the tests of these packages need.
	notForClients := append([]string{
		"go.etcd.io/...", "k8s.io/kubernetes/...", "k8s.io/apiserver/...", "k8s.io/component-base/...",
		"k8s.io/kube-scheduler/...", "github.com/prometheus/...", "google.golang.org/grpc/...",
		module + "/pkg/scheduler/...", module + "/internal/...", module + "/cmd/...", module + "/test/...",
	}, onlyForTests...)
	for packages, never := range map[string][]string{
		"./cmd/batch-scheduler": onlyForTests,
		"./cmd/kubectl-batch":   onlyForTests,
		"./pkg/apis/...":        notForClients,
		"./pkg/client/...":      notForClients,
	} {
		t.Run(packages, func(t *testing.T) {
			t.Parallel()
			for _, dependency := range dependencies(t, packages) {
				if withinAny(dependency, never) {
					t.Errorf("%s compiles %s; see \"go mod why -m\" and \"go list -deps\"", packages, dependency)
				}
			}
		})
	}
}

// dependencies returns all packages that are compiled for the given ones, and for their tests if they are a tree.
func dependencies(t *testing.T, packages string) []string {
	t.Helper()
	args := []string{"list", "-deps"}
	if strings.HasSuffix(packages, "/...") {
		args = append(args, "-test")
	}
	list := exec.CommandContext(t.Context(), "go", append(args, packages)...)
	list.Dir = moduleRoot(t)
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list -deps %s: %v", packages, err)
	}
	return strings.Fields(string(out))
}

// checkImports returns the imports of the file that break a rule.
func checkImports(file source, rules []importRule) []string {
	if file.isTest() {
		return nil
	}
	var complaints []string
	for _, spec := range file.syntax.Imports {
		for _, rule := range rules {
			if rule.invariants && file.hasBuildLine("//go:build invariants") {
				continue
			}
			if imported := importedDir(spec); rule.forbids(file.dir(), imported) {
				complaints = append(complaints, file.at(spec, "imports %s: %s", imported, rule.because))
			}
		}
	}
	return complaints
}

func (r importRule) forbids(from, imported string) bool {
	if !withinAny(from, r.from) || withinAny(from, r.except) {
		return false
	}
	if withinAny(imported, r.never) {
		return true
	}
	ours := withinAny(imported, []string{"pkg/...", "cmd/...", "internal/...", "test/...", "examples/..."})
	return len(r.only) > 0 && ours && !withinAny(imported, r.only) && owner(imported) != owner(from)
}

// owner is the plugin or action that the directory belongs to, which may be made of several packages.
func owner(dir string) string {
	elements := strings.Split(dir, "/")
	return strings.Join(elements[:min(len(elements), 4)], "/") // pkg/scheduler/plugins/name
}

// importedDir is the directory in this module, or the import path in another.
func importedDir(spec *ast.ImportSpec) string {
	imported, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return spec.Path.Value
	}
	return strings.TrimPrefix(imported, module+"/")
}

func TestCheckImports(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		path   string
		given  string // the import
		forbid bool
	}{
		"pkg imports cmd":                           {"pkg/a/a.go", module + "/cmd/b", true},
		"cmd imports pkg":                           {"cmd/b/b.go", module + "/pkg/a", false},
		"the framework imports the cache":           {"pkg/scheduler/framework/a.go", module + "/pkg/scheduler/cache", true},
		"the framework imports the node index":      {"pkg/scheduler/framework/a.go", module + "/pkg/scheduler/nodeindex", false},
		"the node index imports the framework":      {"pkg/scheduler/nodeindex/a.go", module + "/pkg/scheduler/framework", true},
		"the node index imports the types":          {"pkg/scheduler/nodeindex/a.go", module + "/pkg/scheduler/api", false},
		"an action imports the node index":          {"pkg/scheduler/actions/preempt/a.go", module + "/pkg/scheduler/nodeindex", false},
		"the node index imports the model":          {"pkg/scheduler/nodeindex/a.go", module + "/pkg/scheduler/model", true},
		"the framework imports the types":           {"pkg/scheduler/framework/a.go", module + "/pkg/scheduler/api", false},
		"the framework imports the model":           {"pkg/scheduler/framework/a.go", module + "/pkg/scheduler/model", false},
		"a plugin imports the types":                {"pkg/scheduler/plugins/drf/a.go", module + "/pkg/scheduler/api", false},
		"a plugin imports the model":                {"pkg/scheduler/plugins/drf/a.go", module + "/pkg/scheduler/model", true},
		"an action imports the model":               {"pkg/scheduler/actions/preempt/a.go", module + "/pkg/scheduler/model", true},
		"the reservations import the model":         {"pkg/scheduler/reservation/a.go", module + "/pkg/scheduler/model", true},
		"the types import the model":                {"pkg/scheduler/api/a.go", module + "/pkg/scheduler/model", true},
		"the framework imports the audits":          {"pkg/scheduler/framework/a.go", module + "/pkg/scheduler/audit", true},
		"the test library imports the audits":       {"pkg/scheduler/schedtest/a.go", module + "/pkg/scheduler/audit", false},
		"a test of the framework imports the cache": {"pkg/scheduler/framework/a_test.go", module + "/pkg/scheduler/cache", false},
		"a plugin imports a plugin":                 {"pkg/scheduler/plugins/drf/a.go", module + "/pkg/scheduler/plugins/gang", true},
		"a plugin imports a package of its own":     {"pkg/scheduler/plugins/drf/a.go", module + "/pkg/scheduler/plugins/drf/share", false},
		"a package of a plugin imports the plugin":  {"pkg/scheduler/plugins/drf/share/a.go", module + "/pkg/scheduler/plugins/drf", false},
		"the list of plugins imports them":          {"pkg/scheduler/plugins/all.go", module + "/pkg/scheduler/plugins/drf", false},
		"a plugin imports an action":                {"pkg/scheduler/plugins/drf/a.go", module + "/pkg/scheduler/actions/allocate", true},
		"a plugin imports the framework":            {"pkg/scheduler/plugins/drf/a.go", module + "/pkg/scheduler/framework", false},
		"an action imports an action":               {"pkg/scheduler/actions/preempt/a.go", module + "/pkg/scheduler/actions/allocate", true},
		"an action imports what actions share":      {"pkg/scheduler/actions/preempt/a.go", module + "/pkg/scheduler/place", false},
		"an action imports the victim search":       {"pkg/scheduler/actions/preempt/a.go", module + "/pkg/scheduler/preemption", false},
		"a plugin imports the victim search":        {"pkg/scheduler/plugins/drf/a.go", module + "/pkg/scheduler/preemption", true},
		"the victim search imports an action":       {"pkg/scheduler/preemption/a.go", module + "/pkg/scheduler/actions/preempt", true},
		"the placer imports the victim search":      {"pkg/scheduler/place/a.go", module + "/pkg/scheduler/preemption", true},
		"an example imports the placer":             {"examples/a/a.go", module + "/pkg/scheduler/place", false},
		"an example imports an internal package":    {"examples/a/a.go", module + "/pkg/scheduler/internal/tournament", true},
		"the types import a lock":                   {"pkg/scheduler/api/a.go", "sync", true},
		"the model imports a lock":                  {"pkg/scheduler/model/a.go", "sync", true},
		"the model imports an atomic":               {"pkg/scheduler/model/a.go", "sync/atomic", true},
		"the model imports a client":                {"pkg/scheduler/model/a.go", "k8s.io/client-go/kubernetes", true},
		"the model imports a clock":                 {"pkg/scheduler/model/a.go", "k8s.io/utils/clock", true},
		"the model imports the API types":           {"pkg/scheduler/model/a.go", module + "/pkg/apis/scheduling/v1alpha1", false},
		"the model imports configuration":           {"pkg/scheduler/model/a.go", module + "/pkg/scheduler/conf", true},
		"the binder imports the evictor":            {"pkg/scheduler/cache/bind/a.go", module + "/pkg/scheduler/cache/evict", true},
		"the binder imports the cache":              {"pkg/scheduler/cache/bind/a.go", module + "/pkg/scheduler/cache", true},
		"the binder imports the framework":          {"pkg/scheduler/cache/bind/a.go", module + "/pkg/scheduler/framework", true},
		"the binder imports what the four share":    {"pkg/scheduler/cache/bind/a.go", module + "/pkg/scheduler/cache/internal/apicall", false},
		"the cache imports the binder":              {"pkg/scheduler/cache/a.go", module + "/pkg/scheduler/cache/bind", false},
		"what ships imports what tests":             {"pkg/scheduler/scheduler.go", module + "/pkg/scheduler/schedtest", true},
		"the model imports the small models":        {"pkg/scheduler/model/a.go", module + "/pkg/scheduler/model/modeltest", true},
		"a library of tests imports small models":   {"pkg/scheduler/schedtest/a.go", module + "/pkg/scheduler/model/modeltest", true},
		"a test imports the small models":           {"pkg/scheduler/place/a_test.go", module + "/pkg/scheduler/model/modeltest", false},
		"the small models import the framework":     {"pkg/scheduler/model/modeltest/a.go", module + "/pkg/scheduler/framework", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, err := parse(tc.path, []byte("package a\nimport _ "+strconv.Quote(tc.given)))
			if err != nil {
				t.Fatal(err)
			}
			got := checkImports(file, importRules)
			if diff := cmp.Diff(tc.forbid, len(got) > 0); diff != "" {
				t.Errorf("forbidden (-want +got):\n%s%v", diff, got)
			}
		})
	}
}

func TestFilesWithTheTagInvariantsMayImportAudits(t *testing.T) {
	t.Parallel()
	file, err := parse("pkg/scheduler/a.go", []byte("//go:build invariants\n\npackage a\nimport _ "+strconv.Quote(module+"/pkg/scheduler/audit")))
	if err != nil {
		t.Fatal(err)
	}
	if got := checkImports(file, importRules); len(got) > 0 {
		t.Errorf("forbidden: %v", got)
	}
}
