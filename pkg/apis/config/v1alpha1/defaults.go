// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DefaultStarvationAfter is the default of SchedulerConfiguration.StarvationAfter.
const DefaultStarvationAfter = 5 * time.Minute

// GroupingBasicJobs is the default of Grouping.Job: the pods of all Jobs start one by one.
const GroupingBasicJobs = "basic"

// SetDefaults_SchedulerConfiguration sets the fields that the file omits, those of its plugins included, and removes the
// spaces around the names of actions.
func SetDefaults_SchedulerConfiguration(c *SchedulerConfiguration) {
	if c.APIVersion == "" {
		c.APIVersion = APIVersion
	}
	if c.Kind == "" {
		c.Kind = SchedulerConfigurationKind
	}
	if c.StarvationAfter == nil {
		c.StarvationAfter = &metav1.Duration{Duration: DefaultStarvationAfter}
	}
	if c.Expect == nil {
		c.Expect = &metav1.Duration{}
	}
	if c.Reservations != nil {
		SetDefaults_Reservations(c.Reservations)
	}
	if c.Grouping.Job == "" {
		c.Grouping.Job = GroupingBasicJobs
	}
	for i, name := range c.Actions {
		c.Actions[i] = strings.TrimSpace(name)
	}
	for i := range c.Tiers {
		for j := range c.Tiers[i].Plugins {
			SetDefaults_Plugin(&c.Tiers[i].Plugins[j])
		}
	}
}

// SetDefaults_Reservations sets the fields that the file omits.
func SetDefaults_Reservations(r *Reservations) {
	if r.Depth == nil {
		r.Depth = new(int32(1))
	}
	if r.Total == nil {
		r.Total = new(int32(8))
	}
	if r.Window == nil {
		r.Window = &metav1.Duration{Duration: 24 * time.Hour}
	}
	if r.After == nil {
		r.After = &metav1.Duration{}
	}
	if r.Margin == nil {
		r.Margin = &metav1.Duration{Duration: 30 * time.Second}
	}
	if r.PreemptionDelay == nil {
		r.PreemptionDelay = &metav1.Duration{Duration: 30 * time.Second}
	}
}

// SetDefaults_Plugin enables every extension point that the file does not switch off.
func SetDefaults_Plugin(p *Plugin) {
	for _, enabled := range []**bool{
		&p.EnableJobOrder, &p.EnableJobReady, &p.EnableJobPipelined, &p.EnableTaskOrder, &p.EnablePreemptable,
		&p.EnableReclaimable, &p.EnableQueueOrder, &p.EnablePredicate, &p.EnableNodeOrder,
	} {
		if *enabled == nil {
			*enabled = new(true)
		}
	}
}
