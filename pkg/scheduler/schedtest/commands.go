// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package schedtest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// A command of a script returns its output. Names that do not exist fail the test.
type command func(c *Scenario, words []string) (string, error)

// commands are the commands of scripts:
//
//	node n1 4cpu 16Gi label=zone=a taint=k=v:NoSchedule unschedulable notready
//	queue q 1 capability=4cpu,8Gi guarantee=1cpu
//	group q/a 2               a PodGroup with minMember 2
//	pods q/a 3 1cpu 1Gi       members of it; with on=n1 they run there; with gated, label=k=v, priority=9
//	plain web 2 1cpu          pods without group; queue=q
//	foreign web 2 1cpu on=n1  pods of another scheduler
//	cycle                     runs a cycle and prints the transcript
//	waits                     prints the jobs that wait and their reasons
//	phase q/a                 prints the phase of a PodGroup
//	held q                    prints what a queue has allocated
//	confirm, refuse           deliver bind results, of the named pods or all
//	start, succeed, fail      change the phase of pods, the named ones or all
//	release, delete           start and complete the deletion of pods
//	recreate, ungate PODS     and relabel POD key=value
//	delete-group, delete-node, delete-queue NAME
func commands() map[string]command {
	return map[string]command{
		"node":    nodeCommand,
		"queue":   queueCommand,
		"group":   groupCommand,
		"pods":    podsCommand(More),
		"plain":   podsCommand(Plain),
		"foreign": podsCommand(Foreign),

		"cycle": func(c *Scenario, words []string) (string, error) { return c.Cycle(), none(words) },
		"waits": func(c *Scenario, words []string) (string, error) { return c.Waits(), none(words) },
		"phase": printing((*Scenario).Phase),
		"held":  printing((*Scenario).Held),

		"confirm":  toPods((*Scenario).ConfirmBinds),
		"refuse":   toPods((*Scenario).FailBinds),
		"start":    toPods((*Scenario).Start),
		"succeed":  toPods((*Scenario).Succeed),
		"fail":     toPods((*Scenario).Fail),
		"release":  toPods((*Scenario).Release),
		"delete":   toPods((*Scenario).Delete),
		"recreate": toPods((*Scenario).Recreate),
		"ungate":   toPods((*Scenario).Ungate),
		"relabel":  relabelCommand,

		"delete-group": toOne((*Scenario).DeleteGroup),
		"delete-node":  toOne((*Scenario).DeleteNode),
		"delete-queue": toOne((*Scenario).DeleteQueue),
	}
}

func none(words []string) error {
	if len(words) > 0 {
		return fmt.Errorf("takes no words, has %q", words)
	}
	return nil
}

func one(words []string) (string, error) {
	if len(words) != 1 {
		return "", errors.New("takes one name")
	}
	return words[0], nil
}

func printing(ask func(*Scenario, string) string) command {
	return func(c *Scenario, words []string) (string, error) {
		name, err := one(words)
		if err != nil {
			return "", err
		}
		return ask(c, name), nil
	}
}

func toPods(do func(*Scenario, ...string)) command {
	return func(c *Scenario, words []string) (string, error) {
		do(c, words...)
		return "", nil
	}
}

func toOne(do func(*Scenario, string)) command {
	return func(c *Scenario, words []string) (string, error) {
		name, err := one(words)
		if err != nil {
			return "", err
		}
		do(c, name)
		return "", nil
	}
}

func relabelCommand(s *Scenario, words []string) (string, error) {
	if len(words) != 2 {
		return "", errors.New("takes a pod and key=value")
	}
	key, value, _ := strings.Cut(words[1], "=")
	s.Relabel(words[0], key, value)
	return "", nil
}

// settingsOf splits words into positional arguments and settings "name" or "name=value" of the given names.
func settingsOf(words []string, names ...string) (plain []string, set map[string][]string) {
	set = map[string][]string{}
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		if slices.Contains(names, name) {
			set[name] = append(set[name], value)
		} else {
			plain = append(plain, word)
		}
	}
	return plain, set
}

func nodeCommand(s *Scenario, words []string) (string, error) {
	plain, set := settingsOf(words, "label", "taint", "unschedulable", "notready")
	if len(plain) < 2 {
		return "", errors.New("takes a name and amounts")
	}
	var options []NodeOption
	for _, pair := range set["label"] {
		key, value, _ := strings.Cut(pair, "=")
		options = append(options, Label(key, value))
	}
	for _, text := range set["taint"] {
		options = append(options, Taint(text))
	}
	if set["unschedulable"] != nil {
		options = append(options, Unschedulable())
	}
	if set["notready"] != nil {
		options = append(options, NotReady())
	}
	if old := s.nodes[plain[0]]; old != nil { // an update of the node, not a new one
		s.EditNode(plain[0], func(n *v1.Node) {
			n.Status.Allocatable = s.amounts("node "+n.Name, strings.Join(plain[1:], " "))
			n.Status.Allocatable[v1.ResourcePods] = *mustParse("110")
			n.Spec, n.Status.Conditions = v1.NodeSpec{}, nil
			for _, option := range options {
				option.changeNode(n)
			}
		})
		return "", nil
	}
	s.Add(Node(plain[0], strings.Join(plain[1:], " "), options...))
	return "", nil
}

func queueCommand(s *Scenario, words []string) (string, error) {
	plain, set := settingsOf(words, "capability", "guarantee", "notreclaimable")
	if len(plain) != 2 {
		return "", errors.New("takes a name and a weight")
	}
	weight, err := strconv.ParseInt(plain[1], 10, 32)
	if err != nil {
		return "", err
	}
	list := func(text string) string { return strings.ReplaceAll(text, ",", " ") }
	var options []QueueOption
	for _, text := range set["capability"] {
		options = append(options, Capability(list(text)))
	}
	for _, text := range set["guarantee"] {
		options = append(options, Guarantee(list(text)))
	}
	if set["notreclaimable"] != nil {
		options = append(options, NotReclaimable())
	}
	if s.queues[plain[0]] != nil {
		s.EditQueue(plain[0], func(q *v1alpha1.Queue) {
			q.Spec = v1alpha1.QueueSpec{Weight: int32(weight)}
			for _, option := range options {
				option(s, q)
			}
		})
		return "", nil
	}
	s.Add(Queue(plain[0], int32(weight), options...))
	return "", nil
}

func groupCommand(s *Scenario, words []string) (string, error) {
	if len(words) != 2 {
		return "", errors.New("takes queue/name and minMember")
	}
	minMember, err := strconv.ParseInt(words[1], 10, 32)
	if err != nil {
		return "", err
	}
	s.Add(Group(words[0], int32(minMember)))
	return "", nil
}

// podsCommand parses "name count amounts settings" and adds the row.
func podsCommand(row func(string, ...Part) Row) command {
	return func(c *Scenario, words []string) (string, error) {
		plain, set := settingsOf(words, "on", "gated", "label", "priority", "queue")
		if len(plain) < 2 {
			return "", errors.New("takes a name, a count and amounts")
		}
		count, err := strconv.Atoi(plain[1])
		if err != nil {
			return "", err
		}
		parts, err := podParts(set)
		if err != nil {
			return "", err
		}
		c.Add(row(plain[0], append(parts, membersOf(count, strings.Join(plain[2:], " "), set))...))
		return "", nil
	}
}

func membersOf(count int, request string, set map[string][]string) Part {
	switch {
	case set["on"] != nil:
		return Running(count, request, set["on"][0])
	case set["gated"] != nil:
		return Gated(count, request)
	}
	return Pending(count, request)
}

func podParts(set map[string][]string) ([]Part, error) {
	var parts []Part
	for _, pair := range set["label"] {
		key, value, _ := strings.Cut(pair, "=")
		parts = append(parts, Label(key, value))
	}
	for _, number := range set["priority"] {
		n, err := strconv.ParseInt(number, 10, 32)
		if err != nil {
			return nil, err
		}
		parts = append(parts, Priority(int32(n)))
	}
	for _, queue := range set["queue"] {
		parts = append(parts, OfQueue(queue))
	}
	return parts, nil
}
