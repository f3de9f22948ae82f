// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"slices"
)

// OtherPods are the pods of a gang beside those that a verdict is about, by request.
type OtherPods struct {
	Kinds []PodCount
	More  int32 // pods beyond maxOtherPods requests
}

// PodCount is a number of pods with one request.
type PodCount struct {
	Request Resource
	Count   int32
}

// maxOtherPods bounds how many different requests a message names.
const maxOtherPods = 3

// Add adds one pod. The order of the first pods with each request is the order of the message.
func (o *OtherPods) Add(request Resource) {
	at := slices.IndexFunc(o.Kinds, func(k PodCount) bool { return k.Request.Equal(request) })
	switch {
	case at >= 0:
		o.Kinds[at].Count++
	case len(o.Kinds) < maxOtherPods:
		o.Kinds = append(o.Kinds, PodCount{request, 1})
	default:
		o.More++
	}
}

// needs words how many pods are missing and how many of them could start.
func (v *Verdict) needs(dims *Dimensions) string {
	text := fmt.Sprintf("needs %d more %s of %s", v.Missing, plural(int(v.Missing), "pod", "pods"), v.requestText(dims))
	separator := " and "
	if v.Startable > 0 && v.Domain == nil {
		text += fmt.Sprintf(", %d of them could start now", v.Startable)
		separator = ", and "
	}
	for _, k := range v.Others.Kinds {
		other := ""
		if k.Request.Equal(v.Request) {
			other = "other "
		}
		text += fmt.Sprintf("%s%d %s%s of %s", separator, k.Count, other, plural(int(k.Count), "pod", "pods"), dims.Format(k.Request))
		separator = " and "
	}
	if v.Others.More > 0 {
		text += fmt.Sprintf(" and %d other %s", v.Others.More, plural(int(v.Others.More), "pod", "pods"))
	}
	if v.Domain != nil {
		text += v.Domain.message()
	}
	return text
}

func (v *Verdict) requestText(dims *Dimensions) string {
	switch {
	case v.Devices == "":
		return dims.Format(v.Request)
	case requestsNothing(v.Request):
		return v.Devices
	}
	return dims.Format(v.Request) + " + " + v.Devices
}
