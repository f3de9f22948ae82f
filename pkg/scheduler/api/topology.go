// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// Topology is a topology that the API server shows.
type Topology struct {
	Name string
	UID  types.UID
	// Levels are its levels, the widest first. The slice does not change.
	Levels []*TopologyLevel
}

// TopologyLevel is a level of a topology. Nodes that have equal values of all its labels are one domain of it. A node
// that lacks one of the labels, or has an empty value, is in no domain.
type TopologyLevel struct {
	// Topology is the name of the Topology; empty if the level is the topology key of a pod affinity. A node label that is in no
	// Topology is one of that name.
	Topology string
	// Name is what messages call a domain of the level, such as "rack".
	Name string
	// Labels are keys of node labels, that of the widest level first and that of this level last.
	Labels []string
}

// AffinityLevel returns the level that a topology key of a pod affinity means.
func AffinityLevel(key string) *TopologyLevel {
	return &TopologyLevel{Name: key, Labels: []string{key}}
}

// LabelLevel returns the level that a node label is by itself.
func LabelLevel(key string) *TopologyLevel {
	return &TopologyLevel{Topology: key, Name: key, Labels: []string{key}}
}

// Path returns the name of the domain that a node with these labels is in: their values with slashes between them, which
// values do not contain. It returns false if the node is in none.
func (l *TopologyLevel) Path(labels map[string]string) (path string, ok bool) {
	buffer, ok := l.AppendPath(make([]byte, 0, 128), labels)
	return string(buffer), ok
}

// AppendPath appends the Path to a buffer, and nothing if the node is in no domain.
func (l *TopologyLevel) AppendPath(buffer []byte, labels map[string]string) (path []byte, ok bool) {
	start := len(buffer)
	for i, key := range l.Labels {
		value := labels[key]
		if value == "" {
			return buffer[:start], false
		}
		if i > 0 {
			buffer = append(buffer, '/')
		}
		buffer = append(buffer, value...)
	}
	return buffer, true
}

// Wider returns the next wider level, without a name; nil if there is none.
func (l *TopologyLevel) Wider() *TopologyLevel {
	if len(l.Labels) == 1 {
		return nil
	}
	return &TopologyLevel{Topology: l.Topology, Labels: l.Labels[:len(l.Labels)-1]}
}

// Within reports whether a level of the same topology is l or wider than it, so that each domain of l is within one of it.
func (l *TopologyLevel) Within(wider *TopologyLevel) bool {
	return l.Topology == wider.Topology && len(wider.Labels) <= len(l.Labels)
}

// Key is equal for levels that divide nodes into the same domains.
func (l *TopologyLevel) Key() string { return strings.Join(l.Labels, " ") }

// DomainName is a topology domain in text, so that reports can be compared: the name of its level, its path and the labels of
// the level with spaces between them, which none of these contains. It is empty for no domain.
type DomainName string

// Domain returns the name of the domain with a path.
func (l *TopologyLevel) Domain(path string) DomainName {
	return DomainName(l.Name + " " + path + " " + l.Key())
}

// String words the domain: rack b1/r1. It is empty for no domain.
func (d DomainName) String() string {
	fields := strings.Fields(string(d))
	return strings.Join(fields[:min(len(fields), 2)], " ")
}

// Status returns what the status of a PodGroup shows; nil for no domain.
func (d DomainName) Status() *v1alpha1.NearestDomain {
	fields := strings.Fields(string(d))
	if len(fields) == 0 {
		return nil
	}
	n := &v1alpha1.NearestDomain{Level: fields[0], Name: fields[1], NodeLabels: map[string]string{}}
	values := strings.Split(n.Name, "/")
	for i, key := range fields[2:] {
		n.NodeLabels[key] = values[i]
	}
	return n
}

// DomainCount is how many of the Need pods of a gang could start now in one topology domain, which has the name Path in
// its Level.
type DomainCount struct {
	Level           *TopologyLevel
	Path            string
	Startable, Need int
	// Members of the gang run there, so that no other domain will do.
	Occupied bool
}

func (c *DomainCount) message() string {
	where := c.Level.Name
	if c.Level.Topology == "" {
		where = "topology domain"
	}
	return fmt.Sprintf(" in one %s; %s %s has resources for %d of %d pods", where, c.Level.Name, c.Path, c.Startable, c.Need)
}

// wouldNotFit words that the domain cannot hold the gang whatever pods end.
func (c *DomainCount) wouldNotFit() string {
	if c.Occupied {
		return fmt.Sprintf("; would not fit %s %s, where its other pods run, if that were empty", c.Level.Name, c.Path)
	}
	return "; would not fit any empty " + c.Level.Name
}
