// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

const file = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: new}\nspec: {parallelism: 2, template: {spec: {restartPolicy: Never}}}\n"

func TestWrites(t *testing.T) {
	t.Parallel()
	invalid := apierrors.NewInvalid(v1alpha1.Kind("PodGroup"), "new", nil)
	for name, test := range map[string]struct {
		line   string
		refuse string // verb and resource
		err    error
		want   []string
		says   string // part of what is printed
	}{
		"submit":                               {line: "submit --name new --image i", want: []string{"create jobs", "create podgroups"}, says: "kubectl batch why new -n team"},
		"submit a file":                        {line: "submit -f -", want: []string{"create jobs", "create podgroups"}, says: "job.batch/new created"},
		"submit as the server would":           {line: "submit --name new --image i --dry-run=server", want: []string{"create jobs", "create podgroups"}, says: "(server dry run)"},
		"the Job is refused":                   {line: "submit --name new --image i", refuse: "create jobs", err: errors.New("quota"), want: []string{"create jobs"}, says: "error: quota"},
		"the group is refused":                 {line: "submit --name new --image i", refuse: "create podgroups", err: invalid, want: []string{"create jobs", "delete jobs new", "create podgroups"}, says: "is invalid"},
		"the group is refused, in a dry run":   {line: "submit --name new --image i --dry-run=server", refuse: "create podgroups", err: invalid, want: []string{"create jobs", "create podgroups"}, says: "is invalid"},
		"cancel":                               {line: "cancel train", want: []string{"delete jobs train", "delete podgroups train"}, says: "job.batch/train deleted"},
		"cancel a pod without owner":           {line: "cancel bare", want: []string{"delete pods bare-0", "delete podgroups bare"}, says: "pod/bare-0 deleted"},
		"cancel what is going":                 {line: "cancel train", refuse: "delete jobs", err: apierrors.NewNotFound(v1alpha1.Resource("jobs"), "train"), want: []string{"delete jobs train", "delete podgroups train"}, says: "job.batch/train is already deleted"},
		"cancel without permission":            {line: "cancel train", refuse: "delete jobs", err: apierrors.NewForbidden(v1alpha1.Resource("jobs"), "train", errors.New("no")), want: []string{"delete jobs train"}, says: "submit and cancel require the role edit"},
		"cancel, and another has the name now": {line: "cancel train", refuse: "delete jobs", err: apierrors.NewConflict(v1alpha1.Resource("jobs"), "train", errors.New("UID")), want: []string{"delete jobs train", "delete podgroups train"}, says: "job.batch/train is already deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newPretended()
			if verb, resource, refused := strings.Cut(test.refuse, " "); refused {
				c.refuse(verb, resource, test.err)
			}
			got := run(t, c, file, strings.Split(test.line, " ")...)
			if diff := cmp.Diff(test.want, c.writes()); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			if !strings.Contains(got, test.says) {
				t.Errorf("want %q in:\n%s", test.says, got)
			}
		})
	}
}

// TestTheGroupGoesWithItsJob looks at what the garbage collector looks at.
func TestTheGroupGoesWithItsJob(t *testing.T) {
	t.Parallel()
	c := newPretended()
	run(t, c, "", "submit", "--name", "new", "--image", "i")
	group, err := c.batch.SchedulingV1alpha1().PodGroups("team").Get(t.Context(), "new", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	job, err := c.core.BatchV1().Jobs("team").Get(t.Context(), "new", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "new", UID: job.UID}}
	if diff := cmp.Diff(want, group.OwnerReferences); diff != "" {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
}

func TestSubmitWarnsOfAMissingQueue(t *testing.T) {
	t.Parallel()
	const created = "job.batch/new created\npodgroup.scheduling.batch-scheduler.dev/new created\nTo see its state: kubectl batch why new -n team\n"
	for name, test := range map[string]struct {
		flags   string
		refuse  string // a verb on queues
		warning string
	}{
		"a queue that exists":      {flags: "--queue research"},
		"the default queue":        {},
		"a similar queue":          {flags: "--queue reserch", warning: "Warning: queue \"reserch\" does not exist (did you mean \"research\"?); the pods are pending until it does\n"},
		"no similar queue":         {flags: "--queue vision", warning: "Warning: queue \"vision\" does not exist; the pods are pending until it does\n"},
		"queues may not be read":   {flags: "--queue reserch", refuse: "get"},
		"queues may not be listed": {flags: "--queue reserch", refuse: "list", warning: "Warning: queue \"reserch\" does not exist; the pods are pending until it does\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newPretended()
			if test.refuse != "" {
				c.refuse(test.refuse, "queues", apierrors.NewForbidden(v1alpha1.Resource("queues"), "", errors.New("no")))
			}
			got := run(t, c, "", strings.Fields("submit --name new --image i "+test.flags)...)
			if diff := cmp.Diff(test.warning+created, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
