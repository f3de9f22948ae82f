// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"errors"
	"fmt"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/metrics"
)

// Schema maps names of series to the names of their labels.
type Schema map[string][]string

// Described is the schema of the scheduler's metrics, with the labels that a server adds.
func Described(target ...string) Schema {
	s := Schema{}
	for _, d := range metrics.Descriptions() {
		names := slices.Clone(target)
		for _, l := range d.Labels {
			names = append(names, l.Name)
		}
		if d.Type != "histogram" {
			s[d.Name] = names
			continue
		}
		s[d.Name+"_sum"], s[d.Name+"_count"] = names, names
		s[d.Name+"_bucket"] = append(slices.Clone(names), "le")
	}
	return s
}

// Schema returns the schema of the series in the store.
func (s *Store) Schema() Schema {
	schema := Schema{}
	for _, one := range s.series {
		name := one.labels.Get(labels.MetricName)
		one.labels.Range(func(l labels.Label) {
			if !slices.Contains(schema[name], l.Name) {
				schema[name] = append(schema[name], l.Name)
			}
		})
	}
	return schema
}

// Check returns an error if an expression is invalid, or names an unknown series or label.
func (s Schema) Check(expression string) error {
	parsed, err := parser.ParseExpr(expression)
	if err != nil {
		return err
	}
	var errs []error
	known := []string{labels.MetricName}
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		selector, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		if _, found := s[selector.Name]; !found {
			errs = append(errs, fmt.Errorf("there is no series %q", selector.Name))
			return nil
		}
		for _, m := range selector.LabelMatchers {
			if m.Name != labels.MetricName && !slices.Contains(s[selector.Name], m.Name) {
				errs = append(errs, fmt.Errorf("%s has no label %s", selector.Name, m.Name))
			}
		}
		known = append(known, s[selector.Name]...)
		return nil
	})
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		for _, name := range grouping(node) {
			if !slices.Contains(known, name) {
				errs = append(errs, fmt.Errorf("nothing has the label %s", name))
			}
		}
		return nil
	})
	return errors.Join(errs...)
}

// grouping returns the labels that an operator names.
func grouping(node parser.Node) []string {
	switch node := node.(type) {
	case *parser.AggregateExpr:
		return node.Grouping
	case *parser.BinaryExpr:
		if node.VectorMatching != nil {
			return slices.Concat(node.VectorMatching.MatchingLabels, node.VectorMatching.Include)
		}
	}
	return nil
}
