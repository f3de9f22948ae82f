// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"
)

// restart is the flag --restart: what a run keeps that did not complete.
type restart struct{ checkpoint time.Duration }

var _ pflag.Value = &restart{}

// Set implements pflag.Value.
func (r *restart) Set(text string) error {
	interval, isCheckpoint := strings.CutPrefix(text, "checkpoint=")
	if text == "lost" {
		r.checkpoint = 0
		return nil
	}
	d, err := time.ParseDuration(interval)
	if !isCheckpoint || err != nil || d <= 0 {
		return errors.New("must be lost, or checkpoint= and a time, such as checkpoint=30m")
	}
	r.checkpoint = d
	return nil
}

// String implements pflag.Value.
func (r *restart) String() string {
	if r.checkpoint == 0 {
		return "lost"
	}
	return "checkpoint=" + r.checkpoint.String()
}

// Type implements pflag.Value.
func (*restart) Type() string { return "string" }

// sweep is the flag --sweep: a key of the policy, or PLUGIN/ARGUMENT, and its values.
type sweep struct {
	key    string
	values []string
}

var _ pflag.Value = &sweep{}

// Set implements pflag.Value.
func (s *sweep) Set(text string) error {
	key, values, ok := strings.Cut(text, "=")
	s.key, s.values = key, strings.Split(values, ",")
	if !ok || key == "" || len(s.values) < 2 {
		return errors.New("must be a key and at least two values, such as starvationAfter=1m,5m,30m")
	}
	seen := map[string]bool{}
	for _, v := range s.values {
		if v == "" || seen[v] {
			return fmt.Errorf("the value %q is empty or there twice", v)
		}
		seen[v] = true
	}
	return nil
}

// String implements pflag.Value.
func (s *sweep) String() string {
	if s.key == "" {
		return ""
	}
	return s.key + "=" + strings.Join(s.values, ",")
}

// Type implements pflag.Value.
func (*sweep) Type() string { return "string" }

// policies returns the policy with each of the values.
func (s *sweep) policies(base variant) ([]variant, error) {
	var list []variant
	for _, value := range s.values {
		name := s.key + "=" + value
		text, err := s.set(base.text, value)
		if err != nil {
			return nil, fmt.Errorf("--sweep %s: %w", name, err)
		}
		list = append(list, variant{strings.ReplaceAll(name, "/", "."), text})
	}
	return list, nil
}

// set returns the text of a policy with another value.
func (s *sweep) set(text []byte, value string) ([]byte, error) {
	var policy map[string]any
	if err := yaml.Unmarshal(text, &policy); err != nil {
		return nil, err
	}
	plugin, argument, isArgument := strings.Cut(s.key, "/")
	if isArgument {
		arguments, err := argumentsOf(policy, plugin)
		if err != nil {
			return nil, err
		}
		arguments[argument] = value
		return yaml.Marshal(policy)
	}
	var scalar any
	if err := yaml.Unmarshal([]byte(value), &scalar); err != nil {
		return nil, err
	}
	switch scalar.(type) {
	case map[string]any, []any:
		return nil, fmt.Errorf("%q is not a scalar", value)
	}
	if policy == nil {
		policy = map[string]any{}
	}
	policy[s.key] = scalar
	return yaml.Marshal(policy)
}

// argumentsOf returns the arguments of a plugin, which the caller may change.
func argumentsOf(policy map[string]any, name string) (map[string]any, error) {
	tiers, _ := policy["tiers"].([]any)
	for _, tier := range tiers {
		fields, _ := tier.(map[string]any)
		plugins, _ := fields["plugins"].([]any)
		for _, plugin := range plugins {
			p, _ := plugin.(map[string]any)
			if p["name"] != name {
				continue
			}
			arguments, _ := p["arguments"].(map[string]any)
			if arguments == nil {
				arguments = map[string]any{}
				p["arguments"] = arguments
			}
			return arguments, nil
		}
	}
	return nil, fmt.Errorf("the policy has no plugin %q", name)
}
