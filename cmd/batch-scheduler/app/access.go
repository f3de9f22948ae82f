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

// access decides who may read what is not open to all.
type access struct {
	authn authenticator.Request
	authz authorizer.Authorizer
}

// newAccess leaves both decisions to the API server: it reviews the bearer token of a request, and
// then whether its user may get the path, as a rule for nonResourceURLs allows it. Answers are kept
// for some seconds.
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

// protect serves only those who may. Others get 401 if it is not known who they are, 403 if they
// may not, and 500 if that cannot be found out.
func (a *access) protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		who, known, err := a.authn.AuthenticateRequest(req)
		if err != nil || !known {
			if err != nil {
				klog.FromContext(req.Context()).V(2).Info("Request is not authenticated", "path", req.URL.Path, "err", err)
			}
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "Unauthorized: give the bearer token of a service account", http.StatusUnauthorized)
			return
		}
		decision, _, err := a.authz.Authorize(req.Context(), authorizer.AttributesRecord{
			User: who.User,
			Verb: "get",
			Path: req.URL.Path,
		})
		switch {
		case decision == authorizer.DecisionAllow:
			next.ServeHTTP(w, req)
		case err != nil:
			klog.FromContext(req.Context()).Error(err, "Cannot find out whether a request is allowed",
				"path", req.URL.Path, "user", who.User.GetName())
			http.Error(w, "Internal Server Error: the API server could not be asked", http.StatusInternalServerError)
		default:
			http.Error(w, "Forbidden: needs a role with verb get on this path (nonResourceURLs)", http.StatusForbidden)
		}
	})
}
