// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/batch-scheduler/batch-scheduler/internal/version"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

// execute runs a command line and returns its exit code and output.
func execute(options []Option, args ...string) (code int, stdout, stderr string) {
	cmd := NewSchedulerCommand(options...)
	var out, errs bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	cmd.SetArgs(args)
	code = Execute(cmd)
	return code, out.String(), errs.String()
}

func TestWrongCommandLines(t *testing.T) {
	for name, tc := range map[string]struct {
		given []string
		want  string
	}{
		"a flag that does not exist": {
			given: []string{"--schedule-perod=1s"},
			want:  "unknown flag: --schedule-perod; see batch-scheduler --help",
		},
		"a flag without its value": {
			given: []string{"--kubeconfig"},
			want:  "flag needs an argument: --kubeconfig; see batch-scheduler --help",
		},
		"a duration without a unit": {
			given: []string{"--schedule-period=1"},
			want:  `invalid argument "1" for "--schedule-period" flag: time: missing unit in duration "1"; see batch-scheduler --help`,
		},
		"a period of nothing": {
			given: []string{"--schedule-period=0s"},
			want:  "--schedule-period: must be more than 0, such as 1s, not 0s; see batch-scheduler --help",
		},
		"a period before now": {
			given: []string{"--schedule-period=-1s"},
			want:  "--schedule-period: must be more than 0, such as 1s, not -1s; see batch-scheduler --help",
		},
		"no scheduler name": {
			given: []string{"--scheduler-name="},
			want:  "--scheduler-name: must not be empty; see batch-scheduler --help",
		},
		"a scheduler name twice": {
			given: []string{"--scheduler-name=a,b,a"},
			want:  "--scheduler-name: a is listed twice; see batch-scheduler --help",
		},
		"an empty scheduler name": {
			given: []string{"--scheduler-name=a,"},
			want:  "--scheduler-name: a name must not be empty; see batch-scheduler --help",
		},
		"the name of the stock scheduler": {
			given: []string{"--scheduler-name=default-scheduler"},
			want:  "--scheduler-name: default-scheduler is the name of the scheduler of Kubernetes itself; choose another; see batch-scheduler --help",
		},
		"a queue that cannot exist": {
			given: []string{"--default-queue=My_Queue"},
			want: `--default-queue: "My_Queue" cannot be the name of a queue: a lowercase RFC 1123 subdomain must consist of ` +
				`lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character ` +
				`(e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*'); see batch-scheduler --help`,
		},
		"no bind workers": {
			given: []string{"--bind-workers=0"},
			want:  "--bind-workers: must be from 1 to 4096, not 0; see batch-scheduler --help",
		},
		"too many bind workers": {
			given: []string{"--bind-workers=4097"},
			want:  "--bind-workers: must be from 1 to 4096, not 4097; see batch-scheduler --help",
		},
		"a rate that is not a number": {
			given: []string{"--kube-api-qps=NaN"},
			want:  "--kube-api-qps: must be a number; see batch-scheduler --help",
		},
		"a burst that is not a whole number": {
			given: []string{"--kube-api-burst=1.5"},
			want:  `invalid argument "1.5" for "--kube-api-burst" flag: strconv.ParseInt: parsing "1.5": invalid syntax; see batch-scheduler --help`,
		},
		"an address that is a name": {
			given: []string{"--bind-address=localhost"},
			want:  `--bind-address: must be an IP address, such as 0.0.0.0 or 127.0.0.1, not "localhost"; see batch-scheduler --help`,
		},
		"a port that does not exist": {
			given: []string{"--secure-port=65536"},
			want:  "--secure-port: must be from 1 to 65535, or 0 to serve nothing, not 65536; see batch-scheduler --help",
		},
		"a certificate without its key": {
			given: []string{"--tls-cert-file=c.pem"},
			want:  "--tls-private-key-file: must be given together with --tls-cert-file; see batch-scheduler --help",
		},
		"a key without its certificate": {
			given: []string{"--tls-private-key-file=k.pem"},
			want:  "--tls-cert-file: must be given together with --tls-private-key-file; see batch-scheduler --help",
		},
		"a lease that ends before it is renewed": {
			given: []string{"--leader-elect-lease-duration=5s"},
			want:  "--leader-elect-renew-deadline: must be more than 0 and less than the lease duration of 5s, not 10s; see batch-scheduler --help",
		},
		"a lease shorter than the API can express": {
			given: []string{"--leader-elect-lease-duration=900ms", "--leader-elect-renew-deadline=500ms", "--leader-elect-retry-period=100ms"},
			want:  "--leader-elect-lease-duration: must be 1s or more, not 900ms; see batch-scheduler --help",
		},
		"a retry period without time for a second try": {
			given: []string{"--leader-elect-retry-period=9s"},
			want:  "--leader-elect-retry-period: must be more than 0, and 1.2 times it less than the renew deadline of 10s, not 9s; see batch-scheduler --help",
		},
		"a lock that is not a lease": {
			given: []string{"--leader-elect-resource-lock=endpoints"},
			want:  `--leader-elect-resource-lock: must be leases, not "endpoints"; see batch-scheduler --help`,
		},
		"a log format that does not exist": {
			given: []string{"--logging-format=xml"},
			want:  `logging: format: Invalid value: "xml": Unsupported log format; see batch-scheduler --help`,
		},
		"several at once, on one line": {
			given: []string{"--bind-workers=-1", "--secure-port=-1"},
			want: "--bind-workers: must be from 1 to 4096, not -1; " +
				"--secure-port: must be from 1 to 65535, or 0 to serve nothing, not -1; see batch-scheduler --help",
		},
		"a command that does not exist": {
			given: []string{"versino"},
			want:  `unknown command "versino"; did you mean "version"?; see batch-scheduler --help`,
		},
		"an argument for a command that takes none": {
			given: []string{"version", "now"},
			want:  `version takes no arguments, got "now"; see batch-scheduler version --help`,
		},
		"config alone": {
			given: []string{"config"},
			want:  "config needs a command: check FILE or print-default; see batch-scheduler config --help",
		},
		"config with a command that does not exist": {
			given: []string{"config", "chekc"},
			want:  `unknown command "chekc"; did you mean "check"?; see batch-scheduler config --help`,
		},
		"config check without a file": {
			given: []string{"config", "check"},
			want:  "check takes one FILE, got 0 arguments; see batch-scheduler config check --help",
		},
		"config check with two files": {
			given: []string{"config", "check", "a", "b"},
			want:  "check takes one FILE, got 2 arguments; see batch-scheduler config check --help",
		},
		"a flag of the scheduler for config check": {
			given: []string{"config", "check", "a", "--scheduler-name=b"},
			want:  "unknown flag: --scheduler-name; see batch-scheduler config check --help",
		},
		"simulate without objects to start from": {
			given: []string{"simulate"},
			want:  "no objects to start from: set --from-cluster, --objects, or both; see batch-scheduler simulate --help",
		},
		"simulate with invalid flags": {
			given: []string{"simulate", "--objects=.", "--output=pdf", "--cycles=0", "--scheduler-name="},
			want: `--output: must be text, json or html, not "pdf"; --cycles: must be at least 1, not 0; ` +
				"--scheduler-name: must not be empty; see batch-scheduler simulate --help",
		},
		"simulate with an argument": {
			given: []string{"simulate", "dir"},
			want:  `simulate takes no arguments, got "dir"; see batch-scheduler simulate --help`,
		},
		"simulate with a flag of the scheduler that it does not have": {
			given: []string{"simulate", "--objects=.", "--bind-workers=3"},
			want:  "unknown flag: --bind-workers; see batch-scheduler simulate --help",
		},
		"simulate with a directory that is missing": {
			given: []string{"simulate", "--objects=/none"},
			want:  "reading objects: lstat /none: no such file or directory",
		},
		"simulate with a policy that is missing": {
			given: []string{"simulate", "--objects=.", "--config=/none"},
			want:  "reading the scheduler configuration: open /none: no such file or directory",
		},
		"simulate with a second policy that is missing": {
			given: []string{"simulate", "--objects=.", "--compare=/none"},
			want:  "reading the scheduler configuration: open /none: no such file or directory",
		},
		"check of a file that is missing": {
			given: []string{"config", "check", "/none"},
			want:  "reading the scheduler configuration: open /none: no such file or directory",
		},
		"a new line in a flag": {
			given: []string{"--a\nb"},
			want:  "unknown flag: --a b; see batch-scheduler --help",
		},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := execute(nil, tc.given...)
			if code != 1 {
				t.Errorf("exit code %d, want 1", code)
			}
			if stdout != "" {
				t.Errorf("stdout %q, want nothing", stdout)
			}
			if diff := cmp.Diff("error: "+tc.want+"\n", stderr); diff != "" {
				t.Errorf("stderr (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOptionsAreValid(t *testing.T) {
	for name, tc := range map[string]struct {
		given func(*Options)
	}{
		"by default":                 {given: func(*Options) {}},
		"with nothing served":        {given: func(o *Options) { o.SecurePort = 0 }},
		"with an IPv6 address":       {given: func(o *Options) { o.BindAddress = "::1" }},
		"with a negative rate limit": {given: func(o *Options) { o.KubeAPIQPS, o.KubeAPIBurst = -1, -1 }},
		"with nonsense for an election that is off": {given: func(o *Options) {
			o.LeaderElection.LeaderElect = false
			o.LeaderElection.ResourceLock = ""
			o.LeaderElection.LeaseDuration.Duration = 0
		}},
	} {
		t.Run(name, func(t *testing.T) {
			opts := NewOptions()
			tc.given(opts)
			if err := opts.Validate(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestEveryFlagIsDescribed(t *testing.T) {
	cmd := NewSchedulerCommand()
	for _, name := range []string{
		"kubeconfig", "master", "scheduler-name", "scheduler-conf", "schedule-period", "default-queue", "bind-workers", "gang-grace",
		"kube-api-qps", "kube-api-burst", "bind-address", "secure-port", "tls-cert-file", "tls-private-key-file", "profiling",
		"leader-elect", "leader-elect-lease-duration", "leader-elect-renew-deadline", "leader-elect-retry-period",
		"leader-elect-resource-name", "leader-elect-resource-namespace", "logging-format", "v",
	} {
		if flag := cmd.Flags().Lookup(name); flag == nil || flag.Usage == "" || flag.Hidden {
			t.Errorf("--%s is missing from the help text", name)
		}
	}
}

func TestHelpAndVersion(t *testing.T) {
	for name, tc := range map[string]struct {
		given []string
		want  string // what stdout begins with
	}{
		"--help":          {given: []string{"--help"}, want: "batch-scheduler places the pods of jobs"},
		"config check -h": {given: []string{"config", "check", "-h"}, want: "check reads a policy file"},
		"--version":       {given: []string{"--version"}, want: "batch-scheduler " + version.Describe() + "\n"},
		"version":         {given: []string{"version"}, want: "batch-scheduler " + version.Describe() + "\n"},
		"print-default": {given: []string{"config", "print-default"}, want: conf.DefaultYAML() + `# Each cycle runs these actions, in this order:
# - nominated (always, not configurable)
# - reservation (always, not configurable)
# - overrun (always, not configurable)
# - allocate
# - backfill
`},
		"words with _ for -": {given: []string{"--scheduler_name=x", "--help"}, want: "batch-scheduler places"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := execute(nil, tc.given...)
			if code != 0 || stderr != "" {
				t.Errorf("exit code %d and stderr %q, want 0 and nothing", code, stderr)
			}
			if !strings.HasPrefix(stdout, tc.want) {
				t.Errorf("stdout begins with %.80q, want %q", stdout, tc.want)
			}
		})
	}
}

func TestConfigCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		given          string
		code           int
		stdout, stderr string // with FILE in place of the path
	}{
		"a good file": {
			given:  "actions: defragment\ntiers: [{plugins: [{name: acme}, {name: gang}, {name: predicates}, {name: proportion}]}]\n",
			stdout: "FILE is a valid configuration\ndefragment: third-party action; unknown which pods it may evict\n",
		},
		"a file without the plugins that nearly all policies need": {
			given: "actions: allocate, backfill\ntiers: [{plugins: [{name: priority}]}]\n",
			stdout: `warning: FILE:2: tiers: plugin gang is missing: the pods of a gang start one by one, as many as fit
warning: FILE:2: tiers: plugin predicates is missing: pods may be placed on nodes that cannot run them
warning: FILE:2: tiers: plugin proportion is missing: queues have no shares, and their capability and guarantee do not apply
FILE is a valid configuration
allocate: evicts nothing
backfill: evicts nothing
`,
		},
		"a file without tiers": {
			given: "actions: allocate\n",
			stdout: `warning: FILE:1: tiers: no tiers: no plugin is active
warning: FILE:1: tiers: plugin gang is missing: the pods of a gang start one by one, as many as fit
warning: FILE:1: tiers: plugin predicates is missing: pods may be placed on nodes that cannot run them
warning: FILE:1: tiers: plugin proportion is missing: queues have no shares, and their capability and guarantee do not apply
FILE is a valid configuration
allocate: evicts nothing
`,
		},
		"actions, plugins and a switch of Volcano": {
			given: `actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: gang
    enablePreemptable: no
  - name: overcommit
- plugins:
  - {name: predicates}
  - {name: proportion}
  - {name: binpack}
  - {name: numaaware}
`,
			code: 1,
			stderr: `FILE:1: actions: Invalid value: "enqueue": no such action; it is one of Volcano: delete it, because there is no admission before placement
FILE:5: tiers[0].plugins[0].enablePreemptable: Invalid value: "no": must be true or false
FILE:6: tiers[0].plugins[1].name: Invalid value: "overcommit": no such plugin; it is one of Volcano: delete it, because there is no admission before placement
FILE:10: tiers[1].plugins[2].name: Invalid value: "binpack": no such plugin; it is one of Volcano: use nodeorder, which packs extended resources by default, and cpu and memory with mostrequested.weight: 5 and leastrequested.weight: 0
FILE:11: tiers[1].plugins[3].name: Invalid value: "numaaware": no such plugin; it is one of Volcano: delete it; the topology manager of the kubelet decides on its node
error: the scheduler configuration is refused: 5 problems
`,
		},
		"a ConfigMap, with the lines of the manifest": {
			given: `apiVersion: v1
kind: ConfigMap
metadata: {name: batch-scheduler}
data:
  README: how to change it
  scheduler.yaml: |
    actions: allocate
    tiers:
    - plugins: [{name: gang}, {name: predicates}, {name: proportion}]
    - plugins: []
`,
			stdout: `the policy is the key scheduler.yaml of the ConfigMap
warning: FILE:10: tiers[1]: a tier without plugins has no effect
FILE is a valid configuration
allocate: evicts nothing
`,
		},
		"a ConfigMap in JSON, with the lines of the value": {
			given:  `{"kind": "ConfigMap", "data": {"policy": "# none\nactions: alocate\ntiers: [{plugins: [{name: gang}, {name: predicates}, {name: proportion}]}]"}}`,
			code:   1,
			stdout: "the policy is the key policy of the ConfigMap\n",
			stderr: `FILE[policy]:2: actions: Invalid value: "alocate": no such action; did you mean "allocate"?
error: the scheduler configuration is refused: 1 problem
`,
		},
		"a ConfigMap with two policies, of which the second is bad": {
			given: `kind: ConfigMap
data:
  day: "{actions: [allocate], tiers: [{plugins: [{name: gang}, {name: predicates}, {name: proportion}]}]}"
  night: "{actions: [alocate], tiers: [{plugins: [{name: gang}, {name: predicates}, {name: proportion}]}]}"
`,
			code: 1,
			stdout: `the policy is the key day of the ConfigMap
FILE[day] is a valid configuration
allocate: evicts nothing
the policy is the key night of the ConfigMap
`,
			stderr: `FILE[night]:1: actions[0]: Invalid value: "alocate": no such action; did you mean "allocate"?
error: the scheduler configuration is refused: 1 problem
`,
		},
		"a ConfigMap with two policies, of which the first is bad": {
			given: `kind: ConfigMap
data:
  day: "{actions: [alocate], tiers: [{plugins: [{name: gang}, {name: predicates}, {name: proportion}]}]}"
  night: "{actions: [allocate], tiers: [{plugins: [{name: gang}, {name: predicates}, {name: proportion}]}]}"
`,
			code:   1,
			stdout: "the policy is the key day of the ConfigMap\n",
			stderr: `FILE[day]:1: actions[0]: Invalid value: "alocate": no such action; did you mean "allocate"?
error: the scheduler configuration is refused: 1 problem
`,
		},
		"a ConfigMap without a policy": {
			given:  "kind: ConfigMap\ndata: {a: b, c: d}\n",
			code:   1,
			stderr: "error: FILE is a ConfigMap without a policy: none of its keys has actions or tiers: a, c\n",
		},
		"a ConfigMap without data": {
			given:  "kind: ConfigMap\n",
			code:   1,
			stderr: "error: FILE is a ConfigMap without a policy: its data is empty\n",
		},
		"a file with warnings": {
			given: "actions: defragment, preempt\ntiers: [{plugins: [{name: acme}]}, {plugins: []}]\n",
			stdout: `warning: FILE:2: tiers: plugin gang is missing: the pods of a gang start one by one, as many as fit
warning: FILE:2: tiers: plugin predicates is missing: pods may be placed on nodes that cannot run them
warning: FILE:2: tiers: plugin proportion is missing: queues have no shares, and their capability and guarantee do not apply
warning: FILE:2: tiers[1]: a tier without plugins has no effect
FILE is a valid configuration
defragment: third-party action; unknown which pods it may evict
preempt: may evict, for jobs of the same queue, what these plugins permit: acme
`,
		},
		"a bad file: every problem, its warnings, and code 1": {
			given: "actions: defragmnt\ntiers: [{plugins: [{name: acme, arguments: {a: b}}]}, {}]\n",
			code:  1,
			stdout: `warning: FILE:2: tiers: plugin gang is missing: the pods of a gang start one by one, as many as fit
warning: FILE:2: tiers: plugin predicates is missing: pods may be placed on nodes that cannot run them
warning: FILE:2: tiers: plugin proportion is missing: queues have no shares, and their capability and guarantee do not apply
warning: FILE:2: tiers[1]: a tier without plugins has no effect
`,
			stderr: `FILE:1: actions: Invalid value: "defragmnt": no such action; did you mean "defragment"?
FILE:2: tiers[0].plugins[0].arguments[a]: Forbidden: no such argument; there are no arguments
error: the scheduler configuration is refused: 2 problems
`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := file(t, "scheduler.yaml", tc.given)
			code, stdout, stderr := execute([]Option{withThirdParty()}, "config", "check", path)
			if code != tc.code {
				t.Errorf("exit code %d, want %d", code, tc.code)
			}
			if diff := cmp.Diff(tc.stdout, strings.ReplaceAll(stdout, path, "FILE")); diff != "" {
				t.Errorf("stdout (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.stderr, strings.ReplaceAll(stderr, path, "FILE")); diff != "" {
				t.Errorf("stderr (-want +got):\n%s", diff)
			}
		})
	}
}

func TestConfigCheckReadsStandardInput(t *testing.T) {
	for name, tc := range map[string]struct {
		given          string
		code           int
		stdout, stderr string
	}{
		"a policy": {
			given:  "actions: allocate\ntiers: [{plugins: [{name: gang}, {name: predicates}, {name: proportion}]}]\n",
			stdout: "<stdin> is a valid configuration\nallocate: evicts nothing\n",
		},
		"a bad policy": {
			given:  "actions: alocate\ntiers: [{plugins: [{name: gang}, {name: predicates}, {name: proportion}]}]\n",
			code:   1,
			stderr: "<stdin>:1: actions: Invalid value: \"alocate\": no such action; did you mean \"allocate\"?\nerror: the scheduler configuration is refused: 1 problem\n",
		},
		"what kubectl get configmap -o yaml prints": {
			given:  "apiVersion: v1\ndata:\n  scheduler.yaml: |\n    actions: allocate\n    tiers: [{plugins: [{name: gang}, {name: predicates}, {name: proportion}]}]\nkind: ConfigMap\nmetadata:\n  name: batch-scheduler\n",
			stdout: "the policy is the key scheduler.yaml of the ConfigMap\n<stdin> is a valid configuration\nallocate: evicts nothing\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := NewSchedulerCommand()
			var out, errs bytes.Buffer
			cmd.SetIn(strings.NewReader(tc.given))
			cmd.SetOut(&out)
			cmd.SetErr(&errs)
			cmd.SetArgs([]string{"config", "check", "-"})
			if code := Execute(cmd); code != tc.code {
				t.Errorf("exit code %d, want %d", code, tc.code)
			}
			if diff := cmp.Diff(tc.stdout, out.String()); diff != "" {
				t.Errorf("stdout (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.stderr, errs.String()); diff != "" {
				t.Errorf("stderr (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMayEvict(t *testing.T) {
	policy := func(plugins ...conf.Plugin) *conf.Configuration {
		return &conf.Configuration{Tiers: []conf.Tier{{Plugins: plugins}}}
	}
	registry, err := newProgram([]Option{withThirdParty()}).registry()
	if err != nil {
		t.Fatal(err)
	}
	all := policy(conf.Plugin{Name: "priority"}, conf.Plugin{Name: "gang"}, conf.Plugin{Name: "conformance"}, conf.Plugin{Name: "drf"},
		conf.Plugin{Name: "predicates"}, conf.Plugin{Name: "proportion"}, conf.Plugin{Name: "nodeorder"}, conf.Plugin{Name: "acme"})
	for name, tc := range map[string]struct {
		action string
		given  *conf.Configuration
		want   string
	}{
		"allocate": {action: "allocate", given: all, want: "evicts nothing"},
		"backfill": {action: "backfill", given: all, want: "evicts nothing"},
		"preempt":  {action: "preempt", given: all, want: "may evict, for jobs of the same queue, what these plugins permit: priority, drf, acme"},
		"reclaim":  {action: "reclaim", given: all, want: "may evict, for jobs of other queues, what these plugins permit: proportion, acme"},
		"reclaim that no plugin permits": {
			action: "reclaim",
			given:  policy(conf.Plugin{Name: "proportion", Disabled: []conf.Point{conf.Reclaimable}}, conf.Plugin{Name: "priority"}),
			want:   "may evict, for jobs of other queues, nothing, since no plugin permits it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := mayEvict(tc.action, tc.given, registry.Catalog()); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestANameThatIsTakenStopsTheStart(t *testing.T) {
	twice := func(p *program) {
		spec := framework.PluginSpec{New: func(*conf.Decoder, framework.Handle) (framework.Plugin, error) { return fakePlugin{}, nil }}
		WithPlugin("acme", spec)(p)
		WithPlugin("acme", spec)(p)
	}
	code, _, stderr := execute([]Option{twice}, "config", "check", "any")
	if want := "error: plugin \"acme\" is registered twice\n"; code != 1 || stderr != want {
		t.Errorf("exit code %d and stderr %q, want 1 and %q", code, stderr, want)
	}
}
