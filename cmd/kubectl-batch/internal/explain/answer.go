// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/cmd/kubectl-batch/internal/show"
)

// Answer is what Text says, for programs.
type Answer struct {
	Namespace string `json:"namespace"`
	PodGroup  string `json:"podGroup,omitempty"`
	Source    string `json:"source,omitempty"` // of the PodGroup, as in groupSources of the policy
	Pod       string `json:"pod,omitempty"`    // of a pod without a PodGroup
	Queue     string `json:"queue"`

	Phase        string       `json:"phase,omitempty"`
	PendingSince *metav1.Time `json:"pendingSince,omitempty"`
	Pods         PodCounts    `json:"pods"`
	MinMember    int32        `json:"minMember,omitempty"`

	Reason  string   `json:"reason"` // as in the condition, "none" or "none yet"
	Message string   `json:"message,omitempty"`
	Nearest string   `json:"nearest,omitempty"`
	Advice  string   `json:"advice,omitempty"`
	Plugins []string `json:"plugins,omitempty"`

	Domain *show.HeldDomain `json:"domain,omitempty"` // that the PodGroup waits for

	Position string `json:"position,omitempty"` // in the order of the queue
	Evicted  string `json:"evicted,omitempty"`  // the last eviction
	Warning  string `json:"warning,omitempty"`  // what an eviction would mean

	TimeLimitSeconds int64 `json:"timeLimitSeconds,omitempty"` // of each pod

	MaximumExecutionTimeSeconds  int64        `json:"maximumExecutionTimeSeconds,omitempty"` // by all that declares one
	ExpectedExecutionTimeSeconds int64        `json:"expectedExecutionTimeSeconds,omitempty"`
	StartTime                    *metav1.Time `json:"startTime,omitempty"`
	EstimatedStartTime           *metav1.Time `json:"estimatedStartTime,omitempty"`
	LatestStartTime              *metav1.Time `json:"latestStartTime,omitempty"`

	Members    []MemberAnswer   `json:"members,omitempty"`
	QueueUsage *show.QueueUsage `json:"queueUsage,omitempty"`
	History    []HistoryEntry   `json:"history"`
	Unread     []string         `json:"unread,omitempty"`
}

// PodCounts are the pods of a PodGroup by what has become of them.
type PodCounts struct {
	Running   int `json:"running"`
	Pending   int `json:"pending"`
	Succeeded int `json:"succeeded"`
	Failed    int `json:"failed"`
}

// MemberAnswer is about the pods that the reason of their PodGroup does not cover and that have a reason in common.
type MemberAnswer struct {
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"` // of the first
	Pods    int    `json:"pods"`
}

// HistoryEntry is something that happened.
type HistoryEntry struct {
	Time metav1.Time `json:"time"`
	Text string      `json:"text"`
}

// NewAnswer returns what Text says of facts, and all of the history.
func NewAnswer(f *Facts) Answer {
	a := Answer{Queue: f.queueName(), History: []HistoryEntry{}, Unread: f.Unread}
	c := count(f.Pods)
	a.Pods = PodCounts{Running: c.running, Pending: c.waiting, Succeeded: c.succeeded, Failed: c.failed}
	var v verdict
	if g := f.Group; g != nil {
		a.Source = f.source().String()
		a.Namespace, a.PodGroup, a.MinMember, a.Phase = g.Namespace, g.Name, max(g.Spec.MinMember, 1), string(g.Status.Phase)
		if f.isPending() {
			since := f.waitingSince()
			a.PendingSince = &since
		}
		v, a.Plugins, a.Domain = f.groupReason(), g.Status.UnschedulablePlugins, f.Domain
		a.StartTime, a.EstimatedStartTime, a.LatestStartTime = g.Status.StartTime, g.Status.EstimatedStartTime, g.Status.LatestStartTime
		a.Position, a.Evicted, a.Warning = show.Position(g, f.Queue), evicted(g), strings.Join(warnings(f), " ")
		for _, e := range f.exceptions() {
			a.Members = append(a.Members, MemberAnswer{Reason: e.reason, Message: e.message, Pods: e.count})
		}
	} else {
		p := &f.Pods[0]
		a.Namespace, a.Pod, a.Phase = p.Namespace, p.Name, string(p.Status.Phase)
		if waits(p) {
			a.PendingSince = &p.CreationTimestamp
		}
		v = f.podReason(p)
	}
	a.Reason, a.Advice = v.reason, v.advice
	a.TimeLimitSeconds = int64(f.timeLimit().Seconds())
	run := runTimeOf(f)
	a.MaximumExecutionTimeSeconds, a.ExpectedExecutionTimeSeconds = int64(run.Maximum.Seconds()), int64(run.Expected.Seconds())
	a.Message, a.Nearest = nearest(v.message)
	if f.Queue != nil {
		usage := show.Usage(f.Queue)
		a.QueueUsage = &usage
	}
	for _, m := range historyOf(f) {
		a.History = append(a.History, HistoryEntry{Time: metav1.NewTime(m.at.UTC().Truncate(time.Second)), Text: m.text})
	}
	return a
}
