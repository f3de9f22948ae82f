// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/batch-scheduler/batch-scheduler/cmd/kubectl-batch/internal/othergroups"
	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	batchfake "github.com/batch-scheduler/batch-scheduler/pkg/client/clientset/versioned/fake"
)

// pretended is a cluster in memory.
type pretended struct {
	core  *fake.Clientset
	batch *batchfake.Clientset
	other *dynamicfake.FakeDynamicClient // has groups of other APIs, of which none is served at first
}

func (p *pretended) namespace() (string, error) { return "team", nil }
func (p *pretended) connect() (clients, error) {
	return clients{p.core, p.batch, othergroups.Reader{Dynamic: p.other, Discovery: p.core.Discovery()}}, nil
}

// object serves Jobs alone.
func (p *pretended) object(ctx context.Context, kind, namespace, name string) (*unstructured.Unstructured, error) {
	if !isAny(kind, "job", "jobs", "job.batch") {
		return nil, fmt.Errorf("the server doesn't have a resource type %q", kind)
	}
	job, err := p.core.BatchV1().Jobs(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(job)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(batchv1.SchemeGroupVersion.WithKind("Job"))
	return object, nil
}

func (p *pretended) now() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

func anHourAgo() metav1.Time { return metav1.NewTime(time.Date(2026, 1, 1, 11, 0, 0, 0, time.UTC)) }

// newPretended has a group "train" of two pods of Job "train", a group "odd" whose pod belongs to a ReplicaSet, a
// group "bare" with a pod without owner, and two queues.
func newPretended() *pretended {
	group := func(name string, labels map[string]string) *v1alpha1.PodGroup {
		return &v1alpha1.PodGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: "uid-group", CreationTimestamp: anHourAgo(), Labels: labels},
			Spec:       v1alpha1.PodGroupSpec{MinMember: 2, Queue: "research"},
			Status:     v1alpha1.PodGroupStatus{Phase: v1alpha1.PodGroupPending},
		}
	}
	pod := func(name, group, version, kind string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: "uid-pod", CreationTimestamp: anHourAgo(), Labels: map[string]string{v1alpha1.LabelPodGroup: group}}}
		if kind != "" {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: group, UID: "uid-owner", Controller: new(true)}}
		}
		return p
	}
	p := &pretended{
		core: fake.NewClientset(
			job("train"), job("other"),
			pod("train-0", "train", "batch/v1", "Job"), pod("train-1", "train", "batch/v1", "Job"),
			pod("odd-0", "odd", "apps/v1", "ReplicaSet"), pod("bare-0", "bare", "", ""), pod("lonely", "", "", ""),
		),
		batch: batchfake.NewSimpleClientset(
			group("train", map[string]string{"tier": "gold"}), group("odd", nil), group("bare", nil),
			&v1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "research"}, Spec: v1alpha1.QueueSpec{Weight: 3}},
			&v1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "default"}, Spec: v1alpha1.QueueSpec{Weight: 1}},
		),
	}
	p.batch.PrependReactor("list", "*", p.selectByName)
	p.other = otherGroups()
	return p
}

// selectByName answers lists of one name, because the tracker knows no field selectors.
func (p *pretended) selectByName(action k8stesting.Action) (bool, runtime.Object, error) {
	name, one := action.(k8stesting.ListAction).GetListRestrictions().Fields.RequiresExactMatch("metadata.name")
	if !one {
		return false, nil, nil
	}
	object, err := p.batch.Tracker().Get(action.GetResource(), action.GetNamespace(), name)
	switch object := object.(type) {
	case *v1alpha1.PodGroup:
		return true, &v1alpha1.PodGroupList{Items: []v1alpha1.PodGroup{*object}}, err
	case *v1alpha1.Queue:
		return true, &v1alpha1.QueueList{Items: []v1alpha1.Queue{*object}}, err
	}
	if action.GetResource().Resource == "queues" {
		return true, &v1alpha1.QueueList{}, nil
	}
	return true, &v1alpha1.PodGroupList{}, nil
}

// run runs one command line and returns what it has printed, with its error in the last line.
func run(t *testing.T, c cluster, input string, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	cmd := newCommand(genericiooptions.IOStreams{In: strings.NewReader(input), Out: &out, ErrOut: &out}, c)
	cmd.SetArgs(args)
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		return out.String() + "error: " + oneLine(err) + "\n"
	}
	return out.String()
}

// writes returns what was written, in order.
func (p *pretended) writes() []string {
	var list []string
	for _, action := range slices.Concat(p.core.Actions(), p.batch.Actions(), p.other.Actions()) {
		switch action.GetVerb() {
		case "get", "list", "watch":
			continue
		}
		line := action.GetVerb() + " " + action.GetResource().Resource
		if named, ok := action.(k8stesting.DeleteAction); ok {
			line += " " + named.GetName()
		}
		list = append(list, line)
	}
	return list
}

// refuse has a verb fail with an error.
func (p *pretended) refuse(verb, resource string, err error) {
	react := func(k8stesting.Action) (bool, runtime.Object, error) { return true, nil, err }
	p.core.PrependReactor(verb, resource, react)
	p.batch.PrependReactor(verb, resource, react)
}
