// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package results

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/replay"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/trace"
)

// Manifest states where results come from: equal manifests have equal results.
type Manifest struct {
	Version  string `json:"version"`
	Workload string `json:"workload"`
	// Trace is the hash of the trace in the format jsonl, before its arrivals are scaled; so it does not depend on the format
	// of the file.
	Trace string `json:"traceSHA256"`
	Jobs  int    `json:"jobs"`
	// Cluster is the hash of the given nodes, Queues, PriorityClasses and Topologies as JSON.
	Cluster  string           `json:"clusterSHA256"`
	Nodes    int              `json:"nodes"`
	Policies []PolicyManifest `json:"policies"`
	Options  OptionsManifest  `json:"options"`
}

// PolicyManifest is a policy and the hash of its text.
type PolicyManifest struct {
	Name string `json:"name"`
	Hash string `json:"sha256"`
}

// OptionsManifest are the options that results depend on. Times are as in flags.
type OptionsManifest struct {
	DefaultQueue  string  `json:"defaultQueue"`
	GangGrace     string  `json:"gangGrace"`
	EvictionGrace string  `json:"evictionGrace"`
	StartDelay    string  `json:"startDelay"`
	Restart       string  `json:"restart"`
	Until         string  `json:"until"`
	Arrivals      float64 `json:"arrivals"`
	Replicas      int     `json:"replicas"`
	Seed          uint64  `json:"seed"`
}

// HashTrace returns the hash of a trace.
func HashTrace(t *trace.Trace) (string, error) { return hash(t.WriteJSONL) }

// HashCluster returns the hash of the objects of an input.
func HashCluster(in *replay.Input) (string, error) {
	return hash(func(w io.Writer) error {
		return json.NewEncoder(w).Encode([]any{in.Nodes, in.Queues, in.PriorityClasses, in.Topologies})
	})
}

// HashText returns the hash of a text.
func HashText(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

func hash(write func(io.Writer) error) (string, error) {
	h := sha256.New()
	if err := write(h); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
