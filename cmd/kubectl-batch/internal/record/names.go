// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"

	v1 "k8s.io/api/core/v1"
)

// namer returns the names that are written. With a key, it replaces each name by a part of its HMAC-SHA256, so that equal
// names stay equal, also in later records with the same key. Labels of nodes and what selects them go through the same
// function: a selector of a node by its name still selects it.
type namer struct{ key []byte }

// hashed is how many bytes of the hash are written. Two of a million names are equal with a probability of 1 to 30 million.
const hashed = 8

// unhashed is a name that stays as it is: that of the queue of jobs that name none.
const unhashed = "default"

func (n namer) name(s string) string {
	if len(n.key) == 0 || s == "" || s == unhashed {
		return s
	}
	mac := hmac.New(sha256.New, n.key)
	mac.Write([]byte(s))
	return hex.EncodeToString(mac.Sum(nil)[:hashed])
}

func (n namer) names(list []string) []string {
	if list == nil {
		return nil
	}
	named := make([]string, len(list))
	for i, s := range list {
		named[i] = n.name(s)
	}
	return named
}

func (n namer) labels(labels map[string]string) map[string]string {
	named := make(map[string]string, len(labels))
	for key, value := range labels {
		named[key] = n.name(value)
	}
	return named
}

func (n namer) selector(selector map[string][]string) map[string][]string {
	if selector == nil {
		return nil
	}
	named := make(map[string][]string, len(selector))
	for key, values := range selector {
		named[key] = n.names(values)
	}
	return named
}

func (n namer) taints(taints []v1.Taint) []v1.Taint {
	var named []v1.Taint
	for _, t := range taints {
		named = append(named, v1.Taint{Key: t.Key, Value: n.name(t.Value), Effect: t.Effect})
	}
	return named
}

func (n namer) tolerations(tolerations []v1.Toleration) []v1.Toleration {
	var named []v1.Toleration
	for _, t := range tolerations {
		t.Value = n.name(t.Value)
		named = append(named, t)
	}
	return named
}
