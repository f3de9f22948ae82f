// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// writeTrace writes the fixture of the trace as files for "batch-scheduler simulate --objects".
func writeTrace(traceDir, dir string) error {
	b, _, err := traces(traceDir)
	if err != nil {
		return err
	}
	if b.skip != "" {
		return errors.New(b.skip)
	}
	return b.build().write(dir)
}

func (w *fixture) write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	kind := func(version, name string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: version, Kind: name} }
	ours := v1alpha1.SchemeGroupVersion.String()
	class := schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: low}, Value: priorityOf(low)}
	for name, list := range map[string]any{
		"nodes":           v1.NodeList{TypeMeta: kind("v1", "NodeList"), Items: values(w.nodes)},
		"pods":            v1.PodList{TypeMeta: kind("v1", "PodList"), Items: values(w.pods)},
		"podgroups":       v1alpha1.PodGroupList{TypeMeta: kind(ours, "PodGroupList"), Items: values(w.groups)},
		"queues":          v1alpha1.QueueList{TypeMeta: kind(ours, "QueueList"), Items: values(w.queues)},
		"priorityclasses": schedulingv1.PriorityClassList{TypeMeta: kind("scheduling.k8s.io/v1", "PriorityClassList"), Items: []schedulingv1.PriorityClass{class}},
	} {
		data, err := json.Marshal(list)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name+".json"), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
