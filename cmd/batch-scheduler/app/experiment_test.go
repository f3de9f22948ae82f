// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
)

// testdata has small traces.
const testdata = "../../../pkg/scheduler/simulate/trace/testdata"

// tree returns the files below a directory, by name. The manifest is left out: it names the version and the options.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() == "manifest.json" {
			return err
		}
		data, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		files[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// gangs is a trace with two queues, gangs on GPUs, and more requests than 3 nodes with 8 GPUs have.
func gangs(t *testing.T) string {
	t.Helper()
	var given strings.Builder
	for i := range 120 {
		fmt.Fprintf(&given, `{"t": %d, "submit": {"name": "job-%d", "queue": "q%d", "user": "u%d", "min": %d, "request": {"nvidia.com/gpu": "%d"}, "duration": %d}}`+"\n",
			i*300, i, i%2, i%7, 1+i%11/9, 1+i%3*i%7, 600+i*977%4000)
	}
	return file(t, "gangs.jsonl", given.String())
}

// policyFile writes a file with the built-in policy and a line more.
func policyFile(t *testing.T, name, line string) string {
	t.Helper()
	return file(t, name, conf.DefaultYAML()+line+"\n")
}

// TestSimulateComparesPolicies is SI5, with a small trace.
func TestSimulateComparesPolicies(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "results")
	a, b := policyFile(t, "a.yaml", "starvationAfter: 0"), policyFile(t, "b.yaml", "starvationAfter: 5m")
	code, stdout, stderr := execute(nil, "simulate", "--trace", gangs(t), "--nodes", "count=3,nvidia.com/gpu=8",
		"--config", a, "--compare", b, "--compare", a, "--until", "20h", "-o", dir)
	if code != 0 || stderr != "" {
		t.Fatalf("exit code %d, stderr %q", code, stderr)
	}
	files := tree(t, dir)
	for _, name := range []string{"report.html", "summary.txt", "comparisons.json", "a/jobs.csv", "b/queues.csv", "a-2/cluster.csv"} {
		if files[name] == "" {
			t.Errorf("there is no file %s", name)
		}
	}
	for _, want := range []string{"\nMean wait ", "\np95 wait of gangs ", "\nb compared with a: ", "\na-2 compared with a: 0 jobs wait less, 120 as long, 0 longer\n", "95 % interval ", "\nLose most "} {
		if !strings.Contains(stdout, want) {
			t.Errorf("the output has no %q:\n%s", want, stdout)
		}
	}
	if losers := strings.Count(stdout, "NotEnoughResources"); losers != 10 {
		t.Errorf("%d jobs that lose most are listed with their reason, want 10:\n%s", losers, stdout)
	}
	page := files["report.html"]
	for _, want := range []string{"Mean wait", "p95 wait of gangs", "Wait by size", "Jobs that lose most", "b compared with a"} {
		if !strings.Contains(page, want) {
			t.Errorf("the report has no %q", want)
		}
	}
	if len(page) > 2<<20 {
		t.Errorf("the report has %d bytes", len(page))
	}
	if diff := cmp.Diff(files["a/jobs.csv"], files["a-2/jobs.csv"]); diff != "" {
		t.Errorf("one policy has two results:\n%s", diff)
	}
	if stdout != files["summary.txt"] {
		t.Error("summary.txt is not what is printed")
	}
}

// TestEqualInputGivesEqualFiles is SI2: a trace of each format gives the same files as its conversion, on one processor and on
// many. It is not parallel, because it sets the number of processors.
func TestEqualInputGivesEqualFiles(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	for name, given := range map[string][]string{
		"small.swf":            {"--nodes=4"},
		"openb_pods.csv":       {"--nodes=" + testdata + "/openb_nodes.csv"},
		"small.trace":          {"--nodes=count=3,nvidia.com/gpu=8", "--steps-per-second=0.7"},
		"cluster_job_log.json": {"--nodes=count=3,nvidia.com/gpu=8"},
		"pai_job_table.csv":    {"--nodes=" + testdata + "/pai_machine_spec.csv"},
		"job_info_df.csv":      {"--nodes=" + testdata + "/node_info_df.csv"},
		"record.jsonl":         {},
		"week.jsonl":           {"--nodes=count=4,cpu=64,nvidia.com/gpu=8,label:gpu-model=A100"},
	} {
		t.Run(name, func(t *testing.T) {
			trace := filepath.Join(testdata, name)
			converted := filepath.Join(t.TempDir(), strings.TrimSuffix(name, filepath.Ext(name))+".jsonl")
			args := []string{"simulate", "--trace", trace, "--convert", converted}
			if name == "small.trace" {
				args = append(args, given[1])
			}
			if code, stdout, stderr := execute(nil, args...); code != 0 || stdout+stderr != "" {
				t.Fatalf("exit code %d, output %q", code, stdout+stderr)
			}
			var want map[string]string
			for _, processors := range []int{1, 16} {
				runtime.GOMAXPROCS(processors)
				for _, source := range []string{trace, converted} {
					dir := t.TempDir()
					args := append([]string{"simulate", "--trace", source, "-o", dir, "--arrivals=1.3", "--replicas=3", "--compare", policyFile(t, "b.yaml", "starvationAfter: 1m")}, given...)
					if code, _, stderr := execute(nil, args...); code != 0 {
						t.Fatalf("exit code %d, stderr %q", code, stderr)
					}
					got := tree(t, dir)
					if want == nil {
						want = got
					}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("%s with %d processors (-first +now):\n%s", filepath.Base(source), processors, diff)
					}
				}
			}
		})
	}
}

func TestSimulateSweep(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		sweep string
		dirs  []string
	}{
		"a key of the policy":     {"starvationAfter=0,1m,30m", []string{"starvationAfter=0", "starvationAfter=1m", "starvationAfter=30m"}},
		"an argument of a plugin": {"nodeorder/mostrequested.weight=0,5", []string{"nodeorder.mostrequested.weight=0", "nodeorder.mostrequested.weight=5"}},
		"an argument it has not":  {"nodeorder/leastrequested.weight=0,1", []string{"nodeorder.leastrequested.weight=0", "nodeorder.leastrequested.weight=1"}},
		"a key that has defaults": {"expect=0,10m", []string{"expect=0", "expect=10m"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "results")
			code, stdout, stderr := execute(nil, "simulate", "--trace", gangs(t), "--nodes", "count=3,nvidia.com/gpu=8", "--sweep", tc.sweep, "-o", dir)
			if code != 0 || stderr != "" {
				t.Fatalf("exit code %d, stderr %q", code, stderr)
			}
			files := tree(t, dir)
			for _, d := range tc.dirs {
				if files[d+"/jobs.csv"] == "" {
					t.Errorf("there is no file %s/jobs.csv", d)
				}
			}
			key, _, _ := strings.Cut(tc.sweep, "=")
			if !strings.HasPrefix(stdout, key+" ") || strings.Count(stdout, " *\n") == 0 || !strings.Contains(files["report.html"], "Sweep of "+key) || files["sweep.json"] == "" {
				t.Errorf("the output is\n%s", stdout)
			}
		})
	}
}

func TestSimulateReplicas(t *testing.T) {
	t.Parallel()
	trace := gangs(t)
	run := func(seed string) string {
		code, stdout, stderr := execute(nil, "simulate", "--trace", trace, "--nodes", "count=3,nvidia.com/gpu=8", "--replicas=3", "--seed", seed)
		if code != 0 || stderr != "" {
			t.Fatalf("exit code %d, stderr %q", code, stderr)
		}
		return stdout
	}
	first := run("1")
	if !strings.Contains(first, "\nMean (least to most) of 3 replicas ") {
		t.Errorf("the output is\n%s", first)
	}
	if again := run("1"); again != first {
		t.Errorf("one seed gives two results:\n%s", cmp.Diff(first, again))
	}
	if run("7") == first {
		t.Error("another seed gives the same result")
	}
}

// TestInvalidTracesWriteNothing is SI6.
func TestInvalidTracesWriteNothing(t *testing.T) {
	t.Parallel()
	good := ""
	for i := range 6 {
		good += fmt.Sprintf(`{"t": %d, "submit": {"name": "j%d", "request": {"cpu": "1"}, "duration": 5}}`+"\n", i, i)
	}
	openb, err := os.ReadFile(filepath.Join(testdata, "openb_pods.csv"))
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ file, given, want string }{
		"a malformed line":    {"t.jsonl", good + `{"t": 6, "submit": {"name": "x" "y"}}`, `:7: invalid character '"' after object key:value pair`},
		"an unknown field":    {"t.jsonl", good + `{"t": 6, "submit": {"name": "x", "durration": 7}}`, `:7: unknown field "durration"; did you mean "duration"?`},
		"an unknown column":   {"openb.csv", strings.Replace(string(openb), "cpu_milli", "cpu_mili", 1), `:1: there is no column "cpu_milli"; is it "cpu_mili"?`},
		"a negative time":     {"t.jsonl", good + `{"t": -6, "cancel": "j1"}`, ":7: t: must not be negative, but is -6"},
		"a negative run time": {"t.jsonl", good + `{"t": 6, "submit": {"name": "x", "duration": -1}}`, ":7: submit.duration: must not be negative, but is -1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := file(t, tc.file, tc.given)
			for _, more := range [][]string{{"--nodes=2", "-o"}, {"--convert"}} {
				target := filepath.Join(t.TempDir(), "results")
				code, stdout, stderr := execute(nil, append(append([]string{"simulate", "--trace", path}, more...), target)...)
				if want := "error: --trace: " + path + tc.want + "\n"; code != 1 || stdout != "" || stderr != want {
					t.Errorf("exit code %d, stdout %q, stderr\n%s, want 1, nothing and\n%s", code, stdout, stderr, want)
				}
				if _, err := os.Stat(target); err == nil {
					t.Errorf("%v: something was written", more)
				}
			}
		})
	}
}

func TestExperimentErrors(t *testing.T) {
	t.Parallel()
	trace := file(t, "jobs.jsonl", twoJobs)
	policy := policyFile(t, "p.yaml", "")
	const help = "; see batch-scheduler simulate --help\n"
	for name, tc := range map[string]struct {
		given []string
		want  string
	}{
		"both":               {[]string{"--sweep=expect=0,1m", "--compare", policy}, "error: --sweep: cannot be combined with --compare" + help},
		"no replica":         {[]string{"--replicas=0"}, "error: --replicas: must be at least 1, not 0" + help},
		"a negative delay":   {[]string{"--start-delay=-1s"}, "error: --start-delay: must not be negative, but is -1s" + help},
		"an unknown plugin":  {[]string{"--sweep=nodeoder/x=0,1"}, "error: --sweep nodeoder/x=0: the policy has no plugin \"nodeoder\"\n"},
		"no scalar":          {[]string{"--sweep=expect={a: b},1m"}, "error: --sweep expect={a: b}: \"{a: b}\" is not a scalar\n"},
		"an unknown restart": {[]string{"--restart=never"}, `error: invalid argument "never" for "--restart" flag: must be lost, or checkpoint= and a time, such as checkpoint=30m` + help},
		"one value":          {[]string{"--sweep=expect=1m"}, `error: invalid argument "expect=1m" for "--sweep" flag: must be a key and at least two values, such as starvationAfter=1m,5m,30m` + help},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := execute(nil, append([]string{"simulate", "--trace", trace, "--nodes=2"}, tc.given...)...)
			if diff := cmp.Diff(tc.want, stderr); diff != "" || code != 1 || stdout != "" {
				t.Errorf("exit code %d, stdout %q, stderr (-want +got):\n%s", code, stdout, diff)
			}
		})
	}
	code, _, stderr := execute(nil, "simulate", "--trace", trace, "--nodes=2", "--sweep=starvationAftr=1m,2m")
	if code != 1 || !strings.Contains(stderr, "starvationAfter") || !strings.Contains(stderr, "starvationAftr=1m") {
		t.Errorf("exit code %d, stderr %q: it should suggest starvationAfter", code, stderr)
	}
}

func TestConvertToStandardOutput(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := execute(nil, "simulate", "--trace", filepath.Join(testdata, "small.swf"), "--convert", "-")
	want := `{"t":0,"note":"1 left out: jobs without processors"}
{"t":0,"note":"1 left out: jobs without run time"}
{"t":10,"submit":{"name":"1","queue":"queue-1","min":2,"replicas":2,"request":{"cpu":"1"},"duration":100,"limit":200}}
{"t":20,"submit":{"name":"2","min":3,"replicas":3,"request":{"cpu":"1"},"duration":50,"limit":50}}
`
	if diff := cmp.Diff(want, stdout); diff != "" || code != 0 || stderr != "" {
		t.Errorf("exit code %d, stderr %q, stdout (-want +got):\n%s", code, stderr, diff)
	}
}

func TestManifest(t *testing.T) {
	t.Parallel()
	manifest := func(args ...string) string {
		dir := t.TempDir()
		if code, _, stderr := execute(nil, append([]string{"simulate", "--trace", filepath.Join(testdata, "small.swf"), "-o", dir}, args...)...); code != 0 {
			t.Fatal(stderr)
		}
		data, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	first := manifest("--nodes=4")
	if again := manifest("--nodes=4"); again != first {
		t.Errorf("equal input has two manifests:\n%s", cmp.Diff(first, again))
	}
	for _, args := range [][]string{
		{"--nodes=5"}, {"--nodes=4", "--seed=2"}, {"--nodes=4", "--arrivals=2"}, {"--nodes=4", "--restart=checkpoint=1m"},
		{"--nodes=4", "--config", policyFile(t, "p.yaml", "starvationAfter: 1m")},
	} {
		if manifest(args...) == first {
			t.Errorf("%v has the manifest of other input", args)
		}
	}
	if !strings.Contains(first, `"traceSHA256": "`) {
		t.Errorf("the manifest is\n%s", first)
	}
}
