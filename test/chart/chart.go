// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package chart renders the Helm chart as Helm does, with its own code.
package chart

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Release is what Helm would install.
type Release struct {
	// Definitions are the objects of crds/. Helm installs them first, and never changes or deletes them.
	Definitions []*unstructured.Unstructured

	// Objects are in the order of their files.
	Objects []*unstructured.Unstructured

	// Notes are what the user is shown at the end.
	Notes string
}

// Render renders the chart in a directory for a namespace, with values besides its own. Values that its schema
// refuses are an error.
func Render(dir, namespace string, values map[string]any) (*Release, error) {
	chart, err := loader.LoadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("reading chart %s: %w", dir, err)
	}
	options := common.ReleaseOptions{Name: chart.Name(), Namespace: namespace, IsInstall: true}
	all, err := util.ToRenderValues(chart, values, options, nil)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(chart, all)
	if err != nil {
		return nil, err
	}
	release := &Release{}
	for _, definition := range chart.CRDObjects() {
		if release.Definitions, err = decode(release.Definitions, string(definition.File.Data)); err != nil {
			return nil, fmt.Errorf("%s: %w", definition.Filename, err)
		}
	}
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if path.Base(name) == "NOTES.txt" {
			release.Notes = files[name]
			continue
		}
		if release.Objects, err = decode(release.Objects, files[name]); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return release, nil
}

// decode adds the objects of a YAML text.
func decode(to []*unstructured.Unstructured, text string) ([]*unstructured.Unstructured, error) {
	for document := range strings.SplitSeq(text, "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict([]byte(document), &object.Object); err != nil {
			return nil, err
		}
		if object.Object != nil {
			to = append(to, object)
		}
	}
	return to, nil
}
