// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/client/clientset/versioned"
	"github.com/batch-scheduler/batch-scheduler/pkg/client/informers/externalversions"
	listers "github.com/batch-scheduler/batch-scheduler/pkg/client/listers/scheduling/v1alpha1"
)

// observer watches pods, nodes, groups and queues of a cluster.
type observer struct {
	pods   corelisters.PodLister
	nodes  corelisters.NodeLister
	groups listers.PodGroupLister
	queues listers.QueueLister

	changed chan struct{} // holds a value when something has changed

	mu   sync.Mutex
	last time.Time // of a change
}

func newObserver(ctx context.Context, client kubernetes.Interface, batch versioned.Interface) (*observer, error) {
	core, ours := informers.NewSharedInformerFactory(client, 0), externalversions.NewSharedInformerFactory(batch, 0)
	v := &observer{
		pods:    core.Core().V1().Pods().Lister(),
		nodes:   core.Core().V1().Nodes().Lister(),
		groups:  ours.Scheduling().V1alpha1().PodGroups().Lister(),
		queues:  ours.Scheduling().V1alpha1().Queues().Lister(),
		changed: make(chan struct{}, 1),
		last:    time.Now(),
	}
	for _, informer := range []cache.SharedIndexInformer{
		core.Core().V1().Pods().Informer(),
		core.Core().V1().Nodes().Informer(),
		ours.Scheduling().V1alpha1().PodGroups().Informer(),
		ours.Scheduling().V1alpha1().Queues().Informer(),
	} {
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { v.note() },
			UpdateFunc: func(any, any) { v.note() },
			DeleteFunc: func(any) { v.note() },
		})
		if err != nil {
			return nil, err
		}
	}
	core.Start(ctx.Done())
	ours.Start(ctx.Done())
	core.WaitForCacheSync(ctx.Done())
	ours.WaitForCacheSync(ctx.Done())
	return v, nil
}

func (v *observer) note() {
	v.mu.Lock()
	v.last = time.Now()
	v.mu.Unlock()
	select {
	case v.changed <- struct{}{}:
	default:
	}
}

// unchanged returns for how long nothing has changed.
func (v *observer) unchanged() time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	return time.Since(v.last)
}

// snapshot draws all jobs, a line each and sorted, such as
//
//	a: Running Scheduled; master 1 running; worker 2 running, 1 waiting NotEnoughResources
//
// that is the phase and reason of its groups, then what its pods do, set by set. Groups and
// pods without the label that tests give them are left out. With a node label, running pods
// are counted by its values: "9 running (zone-a 3, zone-b 6)".
func (v *observer) snapshot(by string) string {
	jobs := map[string]*expectation{}
	at := func(o metav1.Object) *expectation {
		name := o.GetLabels()[jobLabel]
		if jobs[name] == nil {
			jobs[name] = &expectation{groups: counts{}, sets: map[string]counts{}, places: map[string]counts{}}
		}
		return jobs[name]
	}
	groups, _ := v.groups.List(labels.Everything()) // listers of informers do not fail
	for _, g := range groups {
		at(g).groups[strings.TrimSpace(string(g.Status.Phase)+" "+scheduled(g).Reason)]++
	}
	pods, _ := v.pods.List(labels.Everything())
	for _, p := range pods {
		at(p).add(p, v.place(p, by))
	}
	delete(jobs, "")
	var lines []string
	for name, s := range jobs {
		lines = append(lines, name+": "+s.String())
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func (v *observer) place(p *corev1.Pod, by string) string {
	if by == "" || p.Spec.NodeName == "" {
		return ""
	}
	node, err := v.nodes.Get(p.Spec.NodeName)
	if err != nil {
		return "nowhere"
	}
	return node.Labels[by]
}

// scheduled is the condition of a group, empty if it has none yet.
func scheduled(g *v1alpha1.PodGroup) metav1.Condition {
	if c := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionPodGroupScheduled); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// doing says in a word or two what becomes of a pod.
func doing(p *corev1.Pod) string {
	switch {
	case p.DeletionTimestamp != nil:
		return "ending"
	case p.Status.Phase == corev1.PodPending && p.Spec.NodeName != "":
		return "bound"
	case p.Status.Phase == corev1.PodPending:
		return strings.TrimSpace("waiting " + podScheduled(p).Reason)
	case p.Status.Reason != "":
		return strings.ToLower(string(p.Status.Phase)) + " " + p.Status.Reason
	}
	return strings.ToLower(string(p.Status.Phase))
}

func podScheduled(p *corev1.Pod) corev1.PodCondition {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			return c
		}
	}
	return corev1.PodCondition{}
}

// expectation is what a picture shows of one job.
type expectation struct {
	groups counts
	sets   map[string]counts // by name
	places map[string]counts // of what runs, by set
}

func (s *expectation) add(p *corev1.Pod, place string) {
	set, what := p.Labels[setLabel], doing(p)
	if s.sets[set] == nil {
		s.sets[set], s.places[set] = counts{}, counts{}
	}
	s.sets[set][what]++
	if place != "" && what == "running" {
		s.places[set][place]++
	}
}

func (s *expectation) String() string {
	var parts []string
	if len(s.groups) == 1 && s.groups.sum() == 1 {
		parts = slices.Collect(maps.Keys(s.groups)) // "1" would say nothing
	} else if len(s.groups) > 0 {
		parts = append(parts, s.groups.String())
	}
	for _, name := range slices.Sorted(maps.Keys(s.sets)) {
		text := strings.TrimSpace(name + " " + s.sets[name].String())
		if places := s.places[name]; len(places) > 0 {
			text += " (" + places.names() + ")"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

// counts counts things by name.
type counts map[string]int

func (t counts) sum() int {
	sum := 0
	for _, n := range t {
		sum += n
	}
	return sum
}

// String is "3 running, 9 waiting NotEnoughResources".
func (t counts) String() string {
	return t.join(func(name string, n int) string { return fmt.Sprint(n, " ", name) })
}

// names is "zone-a 3, zone-b 6".
func (t counts) names() string {
	return t.join(func(name string, n int) string { return fmt.Sprint(name, " ", n) })
}

func (t counts) join(text func(string, int) string) string {
	var parts []string
	for _, name := range slices.SortedFunc(maps.Keys(t), cmp.Compare[string]) {
		parts = append(parts, text(name, t[name]))
	}
	return strings.Join(parts, ", ")
}

// canonical brings a wanted picture, as cases write it, into the form of a drawn one.
func canonical(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// differs returns an error with the difference, nil if there is none.
func differs(want, got string) error {
	if diff := gocmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
		return fmt.Errorf("(-want +got):\n%s", diff)
	}
	return nil
}
