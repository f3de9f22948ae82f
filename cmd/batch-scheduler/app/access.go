// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
)

// access authenticates and authorizes requests for protected endpoints.
type access struct {
	authn authenticator.Request
	authz authorizer.Authorizer
}

// newAccess delegates both decisions to the API server: a TokenReview of the bearer token, then a SubjectAccessReview
// of whether its user may get the path (a rule for nonResourceURLs allows it). Results are cached for 10 seconds.
func newAccess(kube kubernetes.Interface) (*access, error) {
	backoff := &wait.Backoff{Duration: 500 * time.Millisecond, Factor: 1.5, Jitter: 0.2, Steps: 5}
	authn, _, err := authenticatorfactory.DelegatingAuthenticatorConfig{
		TokenAccessReviewClient:  kube.AuthenticationV1(),
		TokenAccessReviewTimeout: 10 * time.Second,
		WebhookRetryBackoff:      backoff,
		CacheTTL:                 10 * time.Second,
	}.New()
	if err != nil {
		return nil, err
	}
	authz, err := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: kube.AuthorizationV1(),
		AllowCacheTTL:             10 * time.Second,
		DenyCacheTTL:              10 * time.Second,
		WebhookRetryBackoff:       backoff,
	}.New()
	if err != nil {
		return nil, err
	}
	return &access{authn: authn, authz: authz}, nil
}

// protect wraps a handler. It responds with 401 to unauthenticated requests, with 403 to users that are not authorized,
// and with 500 if the API server cannot decide.
func (a *access) protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		response, authenticated, err := a.authn.AuthenticateRequest(req)
		if err != nil || !authenticated {
			if err != nil {
				klog.FromContext(req.Context()).V(2).Info("Request not authenticated", "path", req.URL.Path, "err", err)
			}
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "Unauthorized: give the bearer token of a service account", http.StatusUnauthorized)
			return
		}
		decision, _, err := a.authz.Authorize(req.Context(), authorizer.AttributesRecord{
			User: response.User,
			Verb: "get",
			Path: req.URL.Path,
		})
		switch {
		case decision == authorizer.DecisionAllow:
			next.ServeHTTP(w, req)
		case err != nil:
			klog.FromContext(req.Context()).Error(err, "Authorization of a request failed",
				"path", req.URL.Path, "user", response.User.GetName())
			http.Error(w, "Internal Server Error: the authorization check at the API server failed", http.StatusInternalServerError)
		default:
			http.Error(w, "Forbidden: needs a role with verb get on this path (nonResourceURLs)", http.StatusForbidden)
		}
	})
}
