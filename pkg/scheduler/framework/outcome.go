// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"fmt"
	"strings"
	"time"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// Outcome is what a session has found out about a job that still waits.
type Outcome struct {
	// Job is why the gang has not started; nil if it has.
	Job *api.Verdict
	// Tasks is why members of a signature wait; members without an entry share Job.
	Tasks map[*api.Signature]*api.Verdict
	// BlockedByBudgets is how many pods disruption budgets keep from being evicted for the job.
	BlockedByBudgets int
	// DegradedFor is set of degraded gangs: they have run for more than this time with fewer members than they need.
	DegradedFor time.Duration

	// shared outcomes belong to all jobs of a job class. They do not change, and stay the same as long as a refusal
	// holds.
	shared bool
	texts  texts
}

// texts are the words of a shared outcome. They are made when they are needed, once for all jobs.
type texts struct {
	message, nearest, plugins string
	domain                    api.DomainName
	known                     bool
}

// Shared reports whether the outcome belongs to all jobs of a job class. Such an outcome does not change: if a later
// session has the same object for a job, it has the same words.
func (o *Outcome) Shared() bool { return o.shared }

// Message returns the text of one of the verdicts.
func (o *Outcome) Message(v *api.Verdict, dims *api.Dimensions) string {
	if o.shared && v == o.Job {
		return o.words(dims).message
	}
	text := v.Message(dims)
	if o.BlockedByBudgets > 0 && v.Nodes.Total > 0 {
		text += fmt.Sprintf("; %d pods that could be evicted are protected by PodDisruptionBudgets", o.BlockedByBudgets)
	}
	return text
}

// Nearest returns the text about the nearest node for the job, as a suffix of its message.
func (o *Outcome) Nearest(dims *api.Dimensions) string {
	if o.shared {
		return o.words(dims).nearest
	}
	return o.Job.NearestMessage(dims)
}

// Plugins returns the names, with commas between them, of the plugins that refuse the job.
func (o *Outcome) Plugins(dims *api.Dimensions) string {
	if o.shared {
		return o.words(dims).plugins
	}
	return strings.Join(o.Job.Plugins(), ",")
}

// Domain returns the topology domain that the message for the job is about; empty if there is none.
func (o *Outcome) Domain(dims *api.Dimensions) api.DomainName {
	if o.shared {
		return o.words(dims).domain
	}
	return o.Job.NearestDomain()
}

func (o *Outcome) words(dims *api.Dimensions) *texts {
	if !o.texts.known {
		o.texts = texts{o.Job.Message(dims), o.Job.NearestMessage(dims), strings.Join(o.Job.Plugins(), ","), o.Job.NearestDomain(), true}
	}
	return &o.texts
}
