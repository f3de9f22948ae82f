// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

const auditPolicyFile = "audit-policy.yaml"

// auditPolicy records who requests what and when, one line for each completed request. Bodies are not recorded.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

// auditArgs writes the policy and returns the flags of kube-apiserver for the audit log; none if there is no log. Lines
// are written in batches, so that requests do not wait for the disk.
func auditArgs(c Config) ([]string, error) {
	if c.AuditLog == "" {
		return nil, nil
	}
	policy, err := c.Dir.Write(auditPolicyFile, []byte(auditPolicy))
	return []string{
		"--audit-policy-file=" + policy,
		"--audit-log-path=" + c.AuditLog,
		"--audit-log-mode=batch",
		"--audit-log-batch-buffer-size=100000",
	}, err
}
