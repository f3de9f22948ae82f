// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

const namespace = "batch_scheduler"

// stability is the level of all metrics, as Kubernetes defines it: names and labels may change in any release.
const stability = "ALPHA"

// Description describes one metric. docs/metrics.md is generated from them.
type Description struct {
	Name, Type, Help string
	Stability        string
	Labels           []Label
}

// Label tells the series of a metric apart.
type Label struct {
	Name    string
	Meaning string   // where values come from, if they cannot be listed
	Values  []string // all that there can be
}

// Descriptions lists all metrics of a scheduler.
func Descriptions() []Description {
	_, made := newMetrics(nil)
	return made
}

func actionLabel() Label {
	return Label{Name: "action", Meaning: "an action of the configuration, or one that always runs: `nominated`, `reservation`, `degraded`"}
}

func pluginLabel() Label {
	return Label{Name: "plugin", Meaning: "a plugin, or what takes the place of one: `" + api.RefusedByModel + "`, `" + api.RefusedByResources +
		"`, `" + api.RefusedByReservation + "`"}
}

func refusalLabel() Label {
	return Label{Name: "reason", Meaning: "a reason of the condition PodGroupScheduled, a reason why a node is not available " +
		"(such as `InsufficientResources` or `Taint`), or a vote: `QueueOverused`, `VictimRejected`, `PlanRejected`, " +
		"`PlanInfeasible`, `EvictionNotAllowed`, `PodNotEvictable`"}
}

func decisionLabel() Label {
	return Label{Name: "kind", Values: []string{api.Allocate.String(), api.Pipeline.String(), api.Evict.String()}}
}

func bindLabel() Label {
	return Label{Name: "result", Values: []string{string(BindSucceeded), string(BindRefused), string(BindUnknown)}}
}

func causeLabel() Label {
	l := Label{Name: "cause"}
	for _, cause := range api.EvictionCauses() {
		l.Values = append(l.Values, cause.String())
	}
	return l
}

func evictionLabel() Label {
	return Label{Name: "result", Values: []string{string(Evicted), string(EvictionRefused)}}
}

func extentLabel() Label {
	return Label{Name: "extent", Values: []string{extentGang, extentSurplus}}
}

func verbLabel() Label {
	return Label{Name: "verb", Meaning: "as RBAC rules name it"}
}

func writtenLabel() Label {
	return Label{Name: "resource", Meaning: "as RBAC rules name it, with its subresource"}
}

func codeLabel() Label {
	return Label{Name: "code", Meaning: "the HTTP status, 0 if there was no answer"}
}

func watchedLabel() Label {
	return Label{Name: "resource", Meaning: "a resource that the scheduler watches"}
}

func schedulerNameLabel() Label {
	return Label{Name: "scheduler_name", Meaning: "a name of this scheduler, see the flag --scheduler-name"}
}

func reloadLabel() Label {
	return Label{Name: "result", Values: []string{string(reloadSucceeded), string(reloadFailed)}}
}

func kindLabel() Label {
	return Label{Name: "kind", Values: []string{"node", "pod", "job", "queue"}}
}

func queueLabel() Label {
	return Label{Name: "queue", Meaning: "a Queue of the cluster"}
}

func resourceLabel() Label {
	return Label{Name: "resource", Meaning: "cpu, memory, or an extended resource that a node, pod or Queue names"}
}

func phaseLabel() Label {
	return Label{Name: "phase", Values: []string{string(v1alpha1.PodGroupPending), string(v1alpha1.PodGroupRunning),
		string(v1alpha1.PodGroupUnknown), string(v1alpha1.PodGroupFinished), string(v1alpha1.PodGroupFailed)}}
}

func reasonLabel() Label {
	return Label{Name: "reason", Meaning: "a reason of the condition PodGroupScheduled, see [concepts](concepts.md)"}
}

// maker makes metrics, and remembers what it has made.
type maker struct {
	factory promauto.Factory
	made    []Description
}

func newMaker(registerer prometheus.Registerer) *maker {
	return &maker{factory: promauto.With(registerer)}
}

func (m *maker) counter(name, help string, labels ...Label) *prometheus.CounterVec {
	v := m.factory.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: served(help)}, m.note("counter", name, help, labels))
	each(labels, func(values []string) { v.WithLabelValues(values...) })
	return v
}

func (m *maker) gauge(name, help string, labels ...Label) *prometheus.GaugeVec {
	return m.factory.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: served(help)}, m.note("gauge", name, help, labels))
}

func (m *maker) histogram(name, help string, buckets []float64, labels ...Label) *prometheus.HistogramVec {
	v := m.factory.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: served(help), Buckets: buckets},
		m.note("histogram", name, help, labels))
	each(labels, func(values []string) { v.WithLabelValues(values...) })
	return v
}

// counted is a counter that is not registered: a collector shows what it holds.
func (m *maker) counted(name, help string, labels ...Label) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: served(help)}, m.note("counter", name, help, labels))
}

// collected is a histogram that is not registered: a collector shows what it holds.
func (m *maker) collected(name, help string, buckets []float64, labels ...Label) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: served(help), Buckets: buckets},
		m.note("histogram", name, help, labels))
}

// desc describes a gauge that a collector creates for each scrape.
func (m *maker) desc(name, help string, labels ...Label) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), served(help), m.note("gauge", name, help, labels), nil)
}

// served returns a help text with the stability level, in the form of Kubernetes.
func served(help string) string { return "[" + stability + "] " + help }

// note remembers a metric and returns the names of its labels.
func (m *maker) note(kind, name, help string, labels []Label) []string {
	m.made = append(m.made, Description{Name: prometheus.BuildFQName(namespace, "", name), Type: kind, Help: help, Stability: stability, Labels: labels})
	var names []string
	for _, l := range labels {
		names = append(names, l.Name)
	}
	return names
}

// each calls visit for every combination of the values of the labels, if all are known: rates need a first
// value of zero.
func each(labels []Label, visit func(values []string), chosen ...string) {
	if len(chosen) == len(labels) {
		visit(chosen)
		return
	}
	for _, value := range labels[len(chosen)].Values {
		each(labels, visit, append(chosen[:len(chosen):len(chosen)], value)...)
	}
}
