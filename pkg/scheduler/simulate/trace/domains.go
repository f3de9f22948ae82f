// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// domains is a level of a specification of nodes: so many of them in a row are one domain.
type domains struct {
	label string
	nodes int
}

// addDomains adds a level, which must be within the levels before it.
func addDomains(levels []domains, label, value string) ([]domains, error) {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 {
		return nil, fmt.Errorf("domain:%s: %q is not a number of nodes", label, value)
	}
	if len(levels) > 0 {
		if wider := levels[len(levels)-1]; wider.nodes%n != 0 {
			return nil, fmt.Errorf("domain:%s: %d nodes of domain:%s are not a multiple of %d", label, wider.nodes, wider.label, n)
		}
	}
	return append(levels, domains{label, n}), nil
}

// of returns the value of the label of the node with a number, such as rack-007. Nodes with a name of their own have it before.
func (d domains) of(number int, name string) string {
	value := d.label[strings.LastIndex(d.label, "/")+1:]
	if name != defaultNodeName {
		value = name + "-" + value
	}
	return fmt.Sprintf("%s-%03d", value, number/d.nodes)
}

// Topology returns a Topology of the levels in specifications of nodes, which must be the same in each that has any; nil if
// there are none. The specifications are valid.
func Topology(specs []string) (*v1alpha1.Topology, error) {
	var levels []string
	for _, spec := range specs {
		var own []string
		for part := range strings.SplitSeq(spec, ",") {
			key, _, _ := strings.Cut(part, "=")
			if label, ok := strings.CutPrefix(key, "domain:"); ok {
				own = append(own, label)
			}
		}
		if levels != nil && own != nil && !slices.Equal(levels, own) {
			return nil, fmt.Errorf("the nodes have different domains: %s, and %s", strings.Join(levels, ", "), strings.Join(own, ", "))
		}
		if own != nil {
			levels = own
		}
	}
	if levels == nil {
		return nil, nil
	}
	t := &v1alpha1.Topology{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "topology-default"}}
	for _, label := range levels {
		t.Spec.Levels = append(t.Spec.Levels, v1alpha1.TopologyLevel{NodeLabel: label})
	}
	return t, nil
}

// setDomains sets the labels of a node by its number.
func setDomains(n *v1.Node, levels []domains, number int, name string) {
	for _, d := range levels {
		n.Labels[d.label] = d.of(number, name)
	}
}

// Constraint is the topology constraint of a job, as in the specification of a PodGroup.
type Constraint struct {
	Topology  string `json:"name,omitempty"`
	Required  string `json:"required,omitempty"`
	Preferred string `json:"preferred,omitempty"`
}

// check returns an error unless a level is required or preferred.
func (c *Constraint) check() error {
	if c != nil && c.Required == "" && c.Preferred == "" {
		return errors.New("needs a level: required, preferred, or both")
	}
	return nil
}

// Rule is a constraint for gangs of at least From pods.
type Rule struct {
	From int
	Constraint
}

// ParseRule parses a rule, such as "required=rack,from=8". Without from, it is for all gangs of two pods or more.
func ParseRule(text string) (Rule, error) {
	r := Rule{From: 2}
	for part := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(part, "=")
		switch key {
		case "from":
			n, err := strconv.Atoi(value)
			if err != nil || n < 1 {
				return r, fmt.Errorf("from: %q is not a number of pods", value)
			}
			r.From = n
		case "name":
			r.Topology = value
		case "required":
			r.Required = value
		case "preferred":
			r.Preferred = value
		default:
			return r, fmt.Errorf("%q is none of required=LEVEL, preferred=LEVEL, name=TOPOLOGY and from=PODS", part)
		}
	}
	return r, r.check()
}

// Constrain gives each job without a constraint that of the rule for gangs of its size: the one with the largest From that is
// not above it.
func Constrain(t *Trace, rules []Rule) {
	rules = slices.Clone(rules)
	slices.SortStableFunc(rules, func(a, b Rule) int { return cmp.Compare(b.From, a.From) })
	for i := range t.Jobs {
		j := &t.Jobs[i]
		if at := slices.IndexFunc(rules, func(r Rule) bool { return r.From <= j.Gang() }); at >= 0 && j.Topology == nil {
			j.Topology = &rules[at].Constraint
		}
	}
}
