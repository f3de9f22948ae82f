// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/batch-scheduler/batch-scheduler/test/scheduler"
)

// scraper reads the metrics of the scheduler as a collector does: over TLS that it verifies,
// with the token of an account that has the role shipped for it.
type scraper struct{ *scheduler.Reader }

// newScraper prepares a scraper and returns the arguments that the scheduler needs for it.
func (h *harness) newScraper() (scraper, []string) {
	h.t.Helper()
	reader, err := scheduler.NewReader(h.ctx, h.cluster, h.dir, "batch-scheduler-metrics-reader")
	h.must(err)
	return scraper{reader}, reader.Args
}

// read returns all metrics of the scheduler, by name.
func (s scraper) read(h *harness) (families, error) {
	body, err := s.Get(h.ctx, "/metrics")
	if err != nil {
		return nil, err
	}
	return parse(body)
}

// apiServerMetrics returns all metrics of the API server.
func (h *harness) apiServerMetrics() (families, error) {
	body, err := h.client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(h.ctx)
	if err != nil {
		return nil, err
	}
	return parse(body)
}

// families are metrics by name.
type families map[string]*dto.MetricFamily

func parse(text []byte) (families, error) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	return parser.TextToMetricFamilies(bytes.NewReader(text))
}

// count sums the counter over all series whose labels are as asked for.
func (f families) count(name string, asked func(labels map[string]string) bool) int {
	sum := 0.0
	for _, m := range f[name].GetMetric() {
		labels := map[string]string{}
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		if asked(labels) {
			sum += m.GetCounter().GetValue()
		}
	}
	return int(sum)
}
