// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package apicall holds what every component that writes to the API server needs: the timeout of
// a call, and how to read an error.
package apicall

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Timeout bounds one call of the API server.
const Timeout = 15 * time.Second

// Permanent reports whether an error is a refusal that retries cannot overcome: missing rights,
// invalid credentials or an invalid object. It needs an administrator and is logged as an error.
func Permanent(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsInvalid(err)
}

// RetryAfter returns the delay that the API server asks for before the next attempt; zero if it
// asks for none.
func RetryAfter(err error) time.Duration {
	seconds, ok := apierrors.SuggestsClientDelay(err)
	if !ok || seconds < 0 {
		return 0
	}
	return time.Duration(seconds) * time.Second
}
