// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model/modeltest"
)

// refusing is a plugin that refuses at all points whose refusals are counted.
var refusing = testPlugin{name: "no", open: func(ssn *Session) {
	no := func(*api.Claim) bool { return false }
	ssn.AddPlanFns("no", PlanFns{PreFilter: no, Validate: no})
	ssn.AddEvictionAllowedFn("no", func(*api.JobInfo) bool { return false })
	ssn.AddNonEvictableFn("no", func(*api.TaskInfo) bool { return true })
	ssn.AddOverusedFn("no", func(*api.QueueInfo, *api.Claim) bool { return true })
	ssn.AddPreemptableFn("no", func(*api.Claim, api.Unit) api.Vote { return api.Reject })
	ssn.AddReclaimableFn("no", func(*api.Claim, api.Unit) api.Vote { return api.Reject })
}}

func TestRefusalsAreLogged(t *testing.T) {
	all := map[int][]string{
		1: {
			`"msg"="Plan dropped" JOB "plugin"="no" "reason"="PlanRejected"`,
		},
		4: {
			`"msg"="Plugin refused" JOB "plugin"="no" "point"="PreFilterPlan" "reason"="PlanInfeasible"`,
			`"msg"="Plugin refused" JOB "plugin"="no" "point"="EvictionAllowed" "reason"="EvictionNotAllowed"`,
			`"msg"="Plugin refused" POD "plugin"="no" "point"="NonEvictable" "reason"="PodNotEvictable"`,
			`"msg"="Plugin refused" JOB "queue"={"name"="default"} "plugin"="no" "point"="Overused" "reason"="QueueOverused"`,
			`"msg"="Plugin refused" JOB VICTIM POD "pods"=1 "plugin"="no" "point"="Preemptable" "reason"="VictimRejected"`,
			`"msg"="Plugin refused" JOB VICTIM POD "pods"=1 "plugin"="no" "point"="Reclaimable" "reason"="VictimRejected"`,
			`"msg"="Statement rolled back" JOB "placed"=1 "evicted"=0 "kept"=0`,
		},
	}
	for verbosity, lines := range map[int][]string{0: nil, 1: all[1], 3: all[1], 4: append(all[1], all[4]...), 5: append(all[1], all[4]...)} {
		t.Run(fmt.Sprintf("V(%d)", verbosity), func(t *testing.T) {
			c := NewCluster()
			c.Events().SetNode(Node("n", 4))
			c.Events().SetPod(Pod("a", 1))
			c.Events().Recompute()
			var got []string
			log := funcr.New(func(_, args string) {
				_, line, _ := strings.Cut(args, " ")
				got = append(got, placeholders.Replace(line))
			}, funcr.Options{Verbosity: verbosity})
			ssn := profileOf(t, nil, []testPlugin{refusing}).Open(c, &effects{}, log)
			refuseAll(ssn)
			session := strings.NewReplacer(fmt.Sprintf(`"session"=%q `, ssn.ID), "")
			for i := range got {
				got[i] = session.Replace(got[i])
			}
			if diff := cmp.Diff(lines, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

var placeholders = strings.NewReplacer(`"job"={"name"="a" "namespace"="ns"}`, "JOB", `"victim"={"name"="a" "namespace"="ns"}`, "VICTIM",
	`"pod"={"name"="a" "namespace"="ns"}`, "POD")

// refuseAll asks each point once, and rolls a statement back.
func refuseAll(ssn *Session) {
	j := ssn.Jobs()[0]
	claim, unit := api.NewClaim(j, j.Tasks), api.NewUnit(j, j.Tasks)
	ssn.ValidatePlan(claim)
	ssn.PreFilterPlan(claim)
	ssn.EvictionAllowed(j)
	ssn.NonEvictable(j.Tasks[0])
	ssn.Overused(j.Queue, claim)
	ssn.Preemptable(claim, unit)
	ssn.Reclaimable(claim, unit)
	stmt := ssn.Statement()
	stmt.Pipeline(j.Tasks[0], ssn.Cluster().Node("n"))
	stmt.Discard()
	stmt.Discard()
}
