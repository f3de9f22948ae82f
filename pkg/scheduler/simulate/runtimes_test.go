// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"strings"
	"testing"
)

// TestRunTimesOfWhatWaits: the text has the run time of each PodGroup that waits.
func TestRunTimesOfWhatWaits(t *testing.T) {
	t.Parallel()
	objects := dir(t, node("n1", "1"), "apiVersion: scheduling.batch-scheduler.dev/v1alpha1\nkind: Queue\nmetadata: {name: q}\nspec: {executionTime: {default: 60, maximum: 3600}}\n",
		"apiVersion: scheduling.batch-scheduler.dev/v1alpha1\nkind: PodGroup\nmetadata: {name: long, namespace: default}\nspec: {queue: q, maximumExecutionTimeSeconds: 7200, expectedExecutionTimeSeconds: 5400}\n",
		"apiVersion: scheduling.batch-scheduler.dev/v1alpha1\nkind: PodGroup\nmetadata: {name: none, namespace: default}\nspec: {queue: q}\n",
	)
	text := written(t, run(t, snapshot(t, objects), ""), "txt")
	for _, want := range []string{
		"default/long (queue q, 0 pods, run time limit 2h, expected 1h30m): ExecutionTimeTooLong",
		"default/none (queue q, 0 pods, run time limit 1m): NotEnoughPods",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the text does not contain %q:\n%s", want, text)
		}
	}
}
