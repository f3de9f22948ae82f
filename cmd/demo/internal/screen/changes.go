// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"fmt"
	"strings"
	"time"

	"github.com/batch-scheduler/batch-scheduler/cmd/demo/internal/snapshot"
	"github.com/batch-scheduler/batch-scheduler/internal/text"
	"github.com/batch-scheduler/batch-scheduler/test/capacity"
)

// Changes prints what differs from what it has printed before. The zero value has printed nothing.
type Changes struct {
	printed map[string]string
}

// Lines returns the lines about all that has changed since they were last asked for.
func (c *Changes) Lines(s snapshot.Snapshot, elapsed time.Duration, width int) []string {
	now := sentences(s)
	var lines []string
	for _, sentence := range now {
		if c.printed[sentence.subject] != sentence.text {
			lines = append(lines, paragraph(clock(elapsed), sentence, width)...)
		}
	}
	c.printed = map[string]string{}
	for _, sentence := range now {
		c.printed[sentence.subject] = sentence.text
	}
	return lines
}

type sentence struct {
	subject, text string
}

func sentences(s snapshot.Snapshot) []sentence {
	var list []sentence
	for _, g := range s.Groups {
		list = append(list, sentence{"PodGroup " + g.Name, describe(g)})
	}
	for _, w := range merge(s.Work) {
		list = append(list, sentence{w.Kind + " " + w.Name, state(w)})
	}
	for _, q := range s.Queues {
		list = append(list, sentence{"queue " + q.Name, shares(q)})
	}
	return list
}

func describe(g snapshot.Group) string {
	text := fmt.Sprintf("%s in %s: %d of %d pods bound, min %d", phase(g), g.Queue, g.Bound, g.Members, g.Min)
	if g.Reason != "" {
		text += "; " + g.Reason + ": " + g.Message
	}
	return text
}

func phase(g snapshot.Group) string {
	if g.Phase == "" {
		return "new"
	}
	return g.Phase
}

func shares(q snapshot.Queue) string {
	all := q.Deserved.DeepCopy()
	if all == nil {
		all = q.Allocated.DeepCopy()
	}
	capacity.Add(all, q.Allocated)
	var parts []string
	for _, name := range shared(all) {
		parts = append(parts, fmt.Sprintf("%s %s of %s deserved", short(name), text.Amount(q.Allocated[name]), text.Amount(q.Deserved[name])))
	}
	if len(parts) == 0 {
		parts = []string{"nothing deserved, nothing allocated"}
	}
	return fmt.Sprintf("weight %d; %s", q.Weight, strings.Join(parts, ", "))
}

// paragraph puts the time before a sentence and breaks it into lines.
func paragraph(at string, s sentence, width int) []string {
	const margin = 8
	lines := text.Wrap(s.subject+" "+s.text, width-margin)
	for i, line := range lines {
		if i > 0 {
			at = ""
		}
		lines[i] = fmt.Sprintf("%*s  %s", margin-2, at, line)
	}
	return lines
}
