// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package prometheus evaluates queries like a Prometheus server, on series that a test adds or scrapes.
package prometheus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// Store holds series. It is not safe for concurrent use.
type Store struct {
	engine *promql.Engine
	series map[string]*series // by labels
}

type series struct {
	labels  labels.Labels
	samples []chunks.Sample
}

// NewStore returns an empty store with the defaults of a server.
func NewStore() *Store {
	return &Store{
		engine: promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute, LookbackDelta: 5 * time.Minute}),
		series: map[string]*series{},
	}
}

// Add appends a sample to a series. The samples of a series must be added in the order of their times.
func (s *Store) Add(l labels.Labels, at time.Time, value float64) {
	key := l.String()
	if s.series[key] == nil {
		s.series[key] = &series{labels: l}
	}
	s.series[key].samples = append(s.series[key].samples, sample{at.UnixMilli(), value})
}

// Scrape adds the metrics that a target served, with the labels that a server adds.
func (s *Store) Scrape(text []byte, at time.Time, target map[string]string) error {
	parser := textparse.NewPromParser(text, labels.NewSymbolTable(), false)
	for {
		entry, err := parser.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("reading what was scraped: %w", err)
		case entry != textparse.EntrySeries:
			continue
		}
		var l labels.Labels
		parser.Labels(&l)
		builder := labels.NewBuilder(l)
		for name, value := range target {
			builder.Set(name, value)
		}
		_, _, value := parser.Series()
		s.Add(builder.Labels(), at, value)
	}
}

// Query evaluates an expression that yields a vector or a number.
func (s *Store) Query(ctx context.Context, expression string, at time.Time) (promql.Vector, error) {
	query, err := s.engine.NewInstantQuery(ctx, s, nil, expression, at)
	if err != nil {
		return nil, err
	}
	defer query.Close()
	result := query.Exec(ctx)
	if result.Err != nil {
		return nil, result.Err
	}
	switch value := result.Value.(type) {
	case promql.Vector:
		return slices.Clone(value), nil // Close reuses it
	case promql.Scalar:
		return promql.Vector{{T: value.T, F: value.V}}, nil
	}
	return nil, fmt.Errorf("%s yields a %s", expression, result.Value.Type())
}

// Querier implements storage.Queryable.
func (s *Store) Querier(int64, int64) (storage.Querier, error) {
	return &storage.MockQuerier{SelectMockFunction: s.choose}, nil
}

func (s *Store) choose(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	var found chosen
	for _, one := range s.series {
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(one.labels.Get(m.Name)) }) {
			found.left = append(found.left, storage.NewListSeries(one.labels, one.samples))
		}
	}
	slices.SortFunc(found.left, func(a, b storage.Series) int { return labels.Compare(a.Labels(), b.Labels()) })
	return &found
}

// chosen implements storage.SeriesSet.
type chosen struct {
	now  storage.Series
	left []storage.Series
}

func (c *chosen) Next() bool {
	if len(c.left) == 0 {
		return false
	}
	c.now, c.left = c.left[0], c.left[1:]
	return true
}

func (c *chosen) At() storage.Series                { return c.now }
func (c *chosen) Err() error                        { return nil }
func (c *chosen) Warnings() annotations.Annotations { return nil }

// sample implements chunks.Sample for a number.
type sample struct {
	at    int64 // milliseconds
	value float64
}

func (s sample) T() int64                      { return s.at }
func (s sample) F() float64                    { return s.value }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }
