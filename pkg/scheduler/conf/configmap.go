// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/config/v1alpha1"
)

// ConfigMap is the manifest of a ConfigMap, in whose data a policy may be.
type ConfigMap struct {
	Keys     []string // of the data, in their order
	Policies []Embedded
}

// Embedded is a policy in the data of a ConfigMap.
type Embedded struct {
	Key  string
	Text []byte
	// SameLines reports whether the lines of Text have the numbers that they have in the manifest: the value is a literal
	// block. Then empty lines precede it.
	SameLines bool
}

// ReadConfigMap returns the ConfigMap that a text is the manifest of; nil if it is something else. A value is taken for a
// policy if it is the only one, or if it has fields that only a policy has.
func ReadConfigMap(text []byte) *ConfigMap {
	root, err := document(text)
	if err != nil || !isConfigMap(root) {
		return nil
	}
	c := &ConfigMap{}
	data := valueOf(root, "data")
	if data == nil || data.Kind != yaml.MappingNode {
		return c
	}
	for i := 0; i+1 < len(data.Content); i += 2 {
		key, value := data.Content[i].Value, data.Content[i+1]
		c.Keys = append(c.Keys, key)
		if value.Kind == yaml.ScalarNode && (len(data.Content) == 2 || isPolicy(value.Value)) {
			c.Policies = append(c.Policies, embedded(key, value))
		}
	}
	return c
}

func embedded(key string, value *yaml.Node) Embedded {
	if value.Style&yaml.LiteralStyle == 0 {
		return Embedded{Key: key, Text: []byte(value.Value)}
	}
	// The line of the node is that of the mark of the block, and its text begins on the next one.
	return Embedded{Key: key, Text: []byte(strings.Repeat("\n", value.Line) + value.Value), SameLines: true}
}

func isConfigMap(root *yaml.Node) bool {
	kind := valueOf(root, "kind")
	return kind != nil && kind.Value == "ConfigMap"
}

// isPolicy reports whether a text has a field that only a policy has.
func isPolicy(text string) bool {
	root, err := document([]byte(text))
	if err != nil {
		return false
	}
	kind := valueOf(root, "kind")
	return valueOf(root, "actions") != nil || valueOf(root, "tiers") != nil || kind != nil && kind.Value == v1alpha1.SchedulerConfigurationKind
}

// valueOf returns the value of a key of a mapping; nil if there is none.
func valueOf(n *yaml.Node, key string) *yaml.Node {
	if n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Kind == yaml.ScalarNode && n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}
