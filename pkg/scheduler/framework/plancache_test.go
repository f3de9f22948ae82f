// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"testing"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

func TestIndexIsRebuiltWithTheCluster(t *testing.T) {
	profile, err := NewRegistry().NewProfile(&conf.Configuration{}, Handle{})
	if err != nil {
		t.Fatal(err)
	}
	model := func(nodes ...string) *model.Cluster {
		c := model.NewCluster(model.Options{})
		for _, name := range nodes {
			c.Events().SetNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		return c
	}
	profile.Open(model("a", "b", "c"), nil, logr.Discard()).Close()

	ssn := profile.Open(model("d"), nil, logr.Discard())
	defer ssn.Close()
	feasible := ssn.Nodes().Feasible(&api.Signature{})
	if !feasible.Has(0) || feasible.Has(1) {
		t.Error("the index is that of the former cluster")
	}
}
