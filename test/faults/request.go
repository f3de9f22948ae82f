// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"net/http"

	"k8s.io/apimachinery/pkg/util/sets"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// Kind is the kind of a request in rules.
type Kind string

// The kinds.
const (
	Bind   Kind = "bind"
	Evict  Kind = "evict"  // including dry runs
	Status Kind = "status" // writes of a status
	Event  Kind = "event"
	Get    Kind = "get" // of one object
	Watch  Kind = "watch"
	Other  Kind = "other"
)

// request is what the proxy reads from a request.
type request struct {
	kind Kind
	path string // identifies the object
}

func read(r *http.Request) request {
	resolver := apirequest.RequestInfoFactory{
		APIPrefixes:          sets.NewString("api", "apis"),
		GrouplessAPIPrefixes: sets.NewString("api"),
	}
	info, err := resolver.NewRequestInfo(r)
	if err != nil || !info.IsResourceRequest {
		return request{Other, r.URL.Path}
	}
	return request{kindOf(info), r.URL.Path}
}

func kindOf(info *apirequest.RequestInfo) Kind {
	switch {
	case info.Verb == "watch":
		return Watch
	case info.Verb == "get" && info.Resource == "pods":
		return Get
	case info.Subresource == "binding":
		return Bind
	case info.Subresource == "eviction":
		return Evict
	case info.Subresource == "status":
		return Status
	case info.Resource == "events":
		return Event
	}
	return Other
}
