// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/features"
)

// WorkloadAPIVersion is the version of the Workload API that this version of Kubernetes serves.
const WorkloadAPIVersion = "scheduling.k8s.io/v1alpha2"

// Features are optional features of Kubernetes. The zero value is what Kubernetes enables by default.
type Features struct {
	// WorkloadAPI serves WorkloadAPIVersion and enables its feature gate, GenericWorkload.
	WorkloadAPI bool

	// Gates are feature gates, such as "WorkloadWithJob=true". They apply to all components.
	Gates []string
}

// Validate returns an error unless the gates exist and can be combined. It changes no gate.
func (f Features) Validate() error {
	gates := utilfeature.DefaultMutableFeatureGate.DeepCopy()
	if err := gates.Set(f.gates()); err != nil {
		return fmt.Errorf("--feature-gates: %w", err)
	}
	switch enabled := gates.Enabled(features.GenericWorkload); {
	case f.WorkloadAPI && !enabled:
		return errors.New("--workload-api requires the feature gate GenericWorkload")
	case enabled && !f.WorkloadAPI: // the API server would wait for informers of the API, and never be ready
		return errors.New("--feature-gates: GenericWorkload requires --workload-api")
	}
	return nil
}

// gates returns the gates in the syntax of --feature-gates. A later one overrides an earlier one.
func (f Features) gates() string {
	gates := f.Gates
	if f.WorkloadAPI {
		gates = slices.Concat([]string{string(features.GenericWorkload) + "=true"}, f.Gates)
	}
	return strings.Join(gates, ",")
}

// apiServerArgs returns the flags of kube-apiserver. The other components share its feature gates, which are variables of
// this process.
func (f Features) apiServerArgs() []string {
	var args []string
	if gates := f.gates(); gates != "" {
		args = append(args, "--feature-gates="+gates)
	}
	if f.WorkloadAPI {
		args = append(args, "--runtime-config="+WorkloadAPIVersion+"=true")
	}
	return args
}
