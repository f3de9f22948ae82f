// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// reviewServer answers the reviews of an API server with the users "good" and "other", whose tokens have the same
// names. Only the first may get /metrics.
func reviewServer(t *testing.T) kubernetes.Interface {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /apis/authentication.k8s.io/v1/tokenreviews", func(w http.ResponseWriter, req *http.Request) {
		answer(t, w, req, func(review *authenticationv1.TokenReview) {
			review.Status.Authenticated = review.Spec.Token == "good" || review.Spec.Token == "other"
			review.Status.User.Username = review.Spec.Token
		})
	})
	mux.HandleFunc("POST /apis/authorization.k8s.io/v1/subjectaccessreviews", func(w http.ResponseWriter, req *http.Request) {
		answer(t, w, req, func(review *authorizationv1.SubjectAccessReview) {
			what := review.Spec.NonResourceAttributes
			review.Status.Allowed = review.Spec.User == "good" && what != nil && what.Path == "/metrics" && what.Verb == "get"
		})
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	kube, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return kube
}

// answer returns a review with its status set.
func answer[T any](t *testing.T, w http.ResponseWriter, req *http.Request, complete func(*T)) {
	var review T
	if err := json.NewDecoder(req.Body).Decode(&review); err != nil {
		t.Error(err)
	}
	complete(&review)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	if err := json.NewEncoder(w).Encode(review); err != nil {
		t.Error(err)
	}
}

// TestAccessDelegatesToTheAPIServer checks the wiring of newAccess; serving_test.go has the responses to all outcomes.
func TestAccessDelegatesToTheAPIServer(t *testing.T) {
	access, err := newAccess(reviewServer(t))
	if err != nil {
		t.Fatal(err)
	}
	handler := access.protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "metrics") }))
	for name, tc := range map[string]struct {
		given string
		want  int
	}{
		"a user with the role":    {given: "Bearer good", want: http.StatusOK},
		"a user without the role": {given: "Bearer other", want: http.StatusForbidden},
		"an unknown token":        {given: "Bearer bad", want: http.StatusUnauthorized},
		"no token":                {given: "", want: http.StatusUnauthorized},
		"a password":              {given: "Basic Z29vZDpnb29k", want: http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
			if tc.given != "" {
				req.Header.Set("Authorization", tc.given)
			}
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, req)
			if w.Code != tc.want {
				t.Errorf("got code %d, want %d: %s", w.Code, tc.want, w.Body)
			}
		})
	}
}
