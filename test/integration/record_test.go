// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/batch-scheduler/batch-scheduler/cmd/localcluster/annotation"
	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/trace"
	"github.com/batch-scheduler/batch-scheduler/test/scheduler"
)

// plantedSecret is in all fields of pods in which secrets are found.
const plantedSecret = "planted-c2VjcmV0"

// TestRecord is SI7: it records a busy cluster, and replays the record with the same policy. The same jobs must start, and use
// the cluster as much.
func TestRecord(t *testing.T) {
	h := newHarness(t, noControllers)
	const cpus = 6 * 8
	h.do(nodes("n", 6, "8cpu", func(n *corev1.Node) { n.Annotations = map[string]string{"a": plantedSecret} }),
		queue("research", 2), queue("product", 1))
	for i := range 6 {
		other := newPod(fmt.Sprint("agent-", i), "500m", withSecrets)
		other.Spec.SchedulerName, other.Spec.NodeName = "another-scheduler", fmt.Sprint("n", i+1)
		other.Spec.Containers[0].Resources.Requests = resources("0.5cpu")
		h.create([]*corev1.Pod{other})
	}
	h.start()
	h.do(recordedGang("early", "research", 4, "2cpu", "1h"), recordedGang("deleted", "product", 1, "4cpu", "1h"),
		recordedGang("huge", "research", 1, "64cpu", "1s"))
	h.eventually(h.hasStarted("early"))
	h.eventually(h.hasStarted("deleted"))
	used := newUsed(h)

	user := h.newPlugin("--as", "ada", "--as-group", "system:authenticated")
	user.fails("record --for 1s", "cannot list resource", "it requires a ClusterRoleBinding to the role batch-scheduler-record")
	h.grantTo("batch-scheduler-record", "", rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "ada"})
	user.eventuallyPrints("record --for 1ms", `"end":true`)
	file := filepath.Join(h.dir, "day.jsonl")
	recording := user.follow("record", "-o", file)
	recording.await(regexp.MustCompile(`Recording 6 nodes, 3 queues and 3 jobs`))

	h.playLoad()
	anonymous, _ := user.run("record", "--for", "1ms", "--anonymise", "key")
	printed := recording.end()
	ended := time.Now()
	if !strings.Contains(printed, "1 jobs left out") && strings.Contains(printed, "Note:") {
		t.Errorf("record has notes:\n%s", printed)
	}
	for _, name := range []string{"research", "huge", `"n1"`, plantedSecret} {
		if strings.Contains(anonymous, name) || !strings.Contains(anonymous, `"end":true`) {
			t.Errorf("%s is in the record with hashed names:\n%s", name, anonymous)
		}
	}
	data, err := os.ReadFile(file)
	h.must(err)
	if bytes.Contains(data, []byte("planted")) || bytes.Contains(data, []byte("env")) || bytes.Contains(data, []byte("command")) {
		t.Errorf("the record has a secret:\n%s", data)
	}
	tr, err := trace.Read("jsonl", file, bytes.NewReader(data), trace.Options{})
	h.must(err)

	started, utilisation := h.replayed(file)
	if diff := cmp.Diff(used.started(), started); diff != "" {
		t.Errorf("jobs that start (-cluster +replay):\n%s", diff)
	}
	want := used.part(ended.Add(-tr.Record.End), ended) / cpus
	t.Logf("%d jobs in %v; utilisation of CPUs: %.2f %% in the cluster, %.2f %% in the replay", len(tr.Jobs), tr.Record.End, 100*want, 100*utilisation)
	if math.Abs(utilisation-want) > .02 {
		t.Errorf("the utilisation is %.4f in the cluster and %.4f in the replay", want, utilisation)
	}
	if t.Failed() {
		t.Logf("the record:\n%s", data)
	}
}

// playLoad submits jobs for half a minute, changes nodes and a queue, deletes a job that runs and one that waits, and returns
// when the others have ended: a replay does not know when a job ends that has not ended in the record.
func (h *harness) playLoad() {
	h.t.Helper()
	random := rand.New(rand.NewSource(2))
	ticker := time.NewTicker(500 * time.Millisecond)
	defer ticker.Stop()
	submitted := 0
	for i := range 60 {
		in, size := []string{"research", "product"}[random.Intn(2)], 1+random.Intn(5)
		h.do(recordedGang(fmt.Sprintf("job-%02d", i), in, size, []string{"1cpu", "2cpu"}[random.Intn(2)],
			fmt.Sprintf("%dms", 2000+random.Intn(5000))))
		submitted += size
		switch i {
		case 10:
			h.cordon("n6", true)
			h.do(recordedGang("cancelled", "product", 1, "63cpu", "1s"))
		case 20:
			h.do(removeGang("deleted"))
			h.cordon("n6", false)
			h.do(queue("product", 3), removeGang("cancelled"))
		}
		<-ticker.C
	}
	h.eventually(func() error {
		all, err := h.view.pods.Pods(namespace).List(labels.Everything())
		ended := 0
		for _, pod := range all {
			if strings.HasPrefix(pod.Name, "job-") && pod.Status.Phase == corev1.PodSucceeded {
				ended++
			}
		}
		if err == nil && ended != submitted {
			return fmt.Errorf("%d of %d pods have ended", ended, submitted)
		}
		return err
	})
}

// recordedGang is a gang whose pods run for a time.
func recordedGang(name, queue string, size int, request, runFor string) row {
	return gang(name, int32(size), pods(size, request, withSecrets, annotated(annotation.RunFor, runFor)), in(queue))
}

func removeGang(name string) row {
	return func(h *harness) {
		h.must(h.batch.SchedulingV1alpha1().PodGroups(namespace).Delete(h.ctx, name, metav1.DeleteOptions{}))
		h.must(h.client.CoreV1().Pods(namespace).Delete(h.ctx, name+"-0", metav1.DeleteOptions{}))
	}
}

// withSecrets puts secrets into a pod.
func withSecrets(p *corev1.Pod) {
	p.Annotations["a"] = plantedSecret
	p.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "planted-pull"}}
	p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "planted-volume"}}}}
	c := &p.Spec.Containers[0]
	c.Command, c.Args = []string{plantedSecret}, []string{"--token", plantedSecret}
	c.Env = []corev1.EnvVar{{Name: "PLANTED", Value: plantedSecret}, {Name: "B", ValueFrom: &corev1.EnvVarSource{
		SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "planted-ref"}, Key: "k"},
	}}}
}

func (h *harness) cordon(node string, cordoned bool) {
	h.t.Helper()
	patch := fmt.Sprintf(`{"spec":{"unschedulable":%t}}`, cordoned)
	_, err := h.client.CoreV1().Nodes().Patch(h.ctx, node, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	h.must(err)
}

// hasStarted returns a condition: the first pod of a gang has a node.
func (h *harness) hasStarted(name string) func() error {
	return func() error {
		pod, err := h.view.pods.Pods(namespace).Get(name + "-0")
		if err == nil && pod.Spec.NodeName == "" {
			return fmt.Errorf("%s has not started", name)
		}
		return err
	}
}

// replayed replays a record with the built-in policy, and returns the jobs that start and the part of the CPUs that is used.
func (h *harness) replayed(file string) (started map[string]bool, utilisation float64) {
	h.t.Helper()
	binary, err := scheduler.Build(h.ctx, true)
	h.must(err)
	dir := filepath.Join(h.dir, "results")
	out, err := exec.CommandContext(h.ctx, binary, "simulate", "--trace", file, "-o", dir).CombinedOutput()
	if err != nil {
		h.t.Fatalf("simulate: %v: %s", err, out)
	}
	table, err := os.Open(filepath.Join(dir, "jobs.csv"))
	h.must(err)
	defer table.Close()
	rows, err := csv.NewReader(table).ReadAll()
	h.must(err)
	columns := map[string]int{}
	for i, name := range rows[0] {
		columns[name] = i
	}
	started = map[string]bool{}
	for _, row := range rows[1:] {
		started[row[columns["job_id"]]] = row[columns["starting_time"]] != ""
	}
	data, err := os.ReadFile(filepath.Join(dir, "summary.json"))
	h.must(err)
	var summary struct {
		Utilisation []struct {
			Resource string  `json:"resource"`
			Part     float64 `json:"part"`
		} `json:"utilisation"`
	}
	h.must(json.Unmarshal(data, &summary))
	for _, u := range summary.Utilisation {
		if u.Resource == "cpu" {
			utilisation = u.Part
		}
	}
	return started, utilisation
}

// used is what pods hold of the cluster over time, as the API server shows it.
type used struct {
	mu   sync.Mutex
	pods map[types.UID]*held
}

// held is what a pod holds, from when to when.
type held struct {
	job      string // namespace/name; empty for pods of others
	cpus     float64
	from, to time.Time // zero if it has not begun or not ended
}

func newUsed(h *harness) *used {
	h.t.Helper()
	u := &used{pods: map[types.UID]*held{}}
	factory := informers.NewSharedInformerFactory(h.client, 0)
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { u.see(o.(*corev1.Pod), false) },
		UpdateFunc: func(_, o any) { u.see(o.(*corev1.Pod), false) },
		DeleteFunc: func(o any) {
			if p, ok := o.(*corev1.Pod); ok {
				u.see(p, true)
			}
		},
	})
	h.must(err)
	factory.Start(h.ctx.Done())
	factory.WaitForCacheSync(h.ctx.Done())
	return u
}

func (u *used) see(p *corev1.Pod, gone bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	known := u.pods[p.UID]
	if known == nil {
		known = &held{cpus: p.Spec.Containers[0].Resources.Requests.Cpu().AsApproximateFloat64()}
		if p.Labels[v1alpha1.LabelPodGroup] != "" {
			known.job = p.Namespace + "/" + p.Labels[v1alpha1.LabelPodGroup]
		}
		u.pods[p.UID] = known
	}
	if p.Spec.NodeName != "" && known.from.IsZero() {
		known.from = time.Now()
	}
	if (gone || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed) && known.to.IsZero() {
		known.to = time.Now()
	}
}

// started returns for each job whether it has started.
func (u *used) started() map[string]bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	started := map[string]bool{}
	for _, p := range u.pods {
		if p.job != "" {
			started[p.job] = !p.from.IsZero()
		}
	}
	return started
}

// part returns how many CPUs are held on average.
func (u *used) part(from, to time.Time) float64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	sum := 0.0
	for _, p := range u.pods {
		if p.from.IsZero() {
			continue
		}
		begin, end := p.from, p.to
		if begin.Before(from) {
			begin = from
		}
		if end.IsZero() || end.After(to) {
			end = to
		}
		sum += p.cpus * max(0, end.Sub(begin).Seconds())
	}
	return sum / to.Sub(from).Seconds()
}
