// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	topologyTutorial = "docs/tutorials/topology.md"
	racksPicture     = "docs/images/racks.svg"
)

// TestRacksPicture compares the picture of the tutorial with its commands, which put the nodes into racks, and with what they
// print, which TestTutorials compares with a cluster.
func TestRacksPicture(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join(root, racksPicture))
	if err != nil {
		t.Fatal(err)
	}
	var picture drawing
	if err = xml.Unmarshal(data, &picture); err != nil {
		t.Fatal(err)
	}
	got := picture.nodes(t, "")
	slices.Sort(got)
	if diff := cmp.Diff(nodesInRacks(t), got); diff != "" {
		t.Errorf("nodes (-%s +%s):\n%s", topologyTutorial, racksPicture, diff)
	}
}

// drawing is a part of a picture: a block, a rack or a node. Its own texts are its name and, for a node, the pod there.
type drawing struct {
	Class string    `xml:"class,attr"` // of a node: the gang, which gives its colour
	Texts []string  `xml:"text"`
	Parts []drawing `xml:"g"`
}

// nodes returns a line for each node of the drawing: its rack, its name and the pod there.
func (d *drawing) nodes(t *testing.T, path string) []string {
	t.Helper()
	if len(d.Texts) == 2 {
		if gang, _, _ := strings.Cut(d.Texts[1], "-"); gang != d.Class {
			t.Errorf("%s: the colour of %s is that of %q", racksPicture, d.Texts[1], d.Class)
		}
		return []string{path + d.Texts[0] + " " + d.Texts[1]}
	}
	var all []string
	for i := range d.Parts {
		name := ""
		if len(d.Texts) > 0 {
			_, name, _ = strings.Cut(d.Texts[0], " ")
			name += " "
		}
		all = append(all, d.Parts[i].nodes(t, path+name)...)
	}
	return all
}

// nodesInRacks returns the same lines from the commands and outputs of the tutorial.
func nodesInRacks(t *testing.T) []string {
	t.Helper()
	labels := regexp.MustCompile(`^kubectl label node cpu-\{(\d+)\.\.(\d+)\} example.com/block=(\w+) example.com/rack=(\w+)$`)
	placement := regexp.MustCompile(`^(\w+-\d+) +(cpu-\d+)$`)
	racks, pods := map[string]string{}, map[string]string{}
	for _, line := range lines(t, filepath.Join(root, topologyTutorial)) {
		if match := labels.FindStringSubmatch(line); match != nil {
			first, _ := strconv.Atoi(match[1])
			last, _ := strconv.Atoi(match[2])
			for i := first; i <= last; i++ {
				racks[fmt.Sprint("cpu-", i)] = match[3] + " " + match[4]
			}
		}
		if match := placement.FindStringSubmatch(line); match != nil {
			pods[match[2]] = match[1]
		}
	}
	if len(racks) == 0 || len(pods) == 0 {
		t.Fatalf("%s labels %d nodes, and shows where %d pods run", topologyTutorial, len(racks), len(pods))
	}
	var all []string
	for node, rack := range racks {
		pod := pods[node]
		if pod == "" {
			pod = "free"
		}
		all = append(all, rack+" "+node+" "+pod)
	}
	slices.Sort(all)
	return all
}
