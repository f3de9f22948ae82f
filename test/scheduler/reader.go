// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	certutil "k8s.io/client-go/util/cert"

	"github.com/batch-scheduler/batch-scheduler/test/cluster"
)

// Reader reads the HTTP endpoints of a scheduler with its own service account.
type Reader struct {
	// Args make a scheduler serve on the reader's address with its certificate.
	Args []string

	// Address is the host and port; Token is that of the account.
	Address, Token string

	client *http.Client
}

const reader = "reader"

// NewReader creates an account with a ClusterRole, and a certificate in a directory. A cluster can have one reader.
func NewReader(ctx context.Context, c *cluster.Cluster, dir, role string) (*Reader, error) {
	cert, key, err := certutil.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(cert)
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	if err = os.WriteFile(certFile, cert, 0o600); err != nil {
		return nil, err
	}
	if err = os.WriteFile(keyFile, key, 0o600); err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	token, err := readerToken(ctx, c, filepath.Join(dir, "reader.kubeconfig"), role)
	if err != nil {
		return nil, fmt.Errorf("creating an account that reads what the scheduler serves: %w", err)
	}
	return &Reader{
		Args:    []string{"--bind-address=127.0.0.1", "--secure-port=" + port, "--tls-cert-file=" + certFile, "--tls-private-key-file=" + keyFile},
		client:  &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}},
		Address: net.JoinHostPort("127.0.0.1", port),
		Token:   token,
	}, nil
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, _ := net.SplitHostPort(l.Addr().String()) // a valid address
	return port, l.Close()
}

func readerToken(ctx context.Context, c *cluster.Cluster, path, role string) (string, error) {
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		return "", err
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: reader}}
	if _, err = client.CoreV1().ServiceAccounts(Namespace).Create(ctx, account, metav1.CreateOptions{}); err != nil {
		return "", err
	}
	_, err = client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: reader},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: Namespace, Name: reader}},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	if err = c.ServiceAccountKubeconfig(ctx, Namespace, reader, path); err != nil {
		return "", err
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return "", err
	}
	return config.BearerToken, os.Remove(path)
}

// Get returns the response of the scheduler for a path, and an error unless the code is 200.
func (r *Reader) Get(ctx context.Context, path string) ([]byte, error) {
	code, body, err := r.Ask(ctx, path, r.Token)
	if err == nil && code != http.StatusOK {
		err = fmt.Errorf("%s: %d %s: %s", path, code, http.StatusText(code), body)
	}
	return body, err
}

// Ask returns the response for another client, with a token or, if that is empty, without.
func (r *Reader) Ask(ctx context.Context, path, token string) (code int, body []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+r.Address+path, nil)
	if err != nil {
		return 0, nil, err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := r.client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	body, err = io.ReadAll(response.Body)
	return response.StatusCode, body, err
}

// Metrics returns the scheduler's metrics by series: the name and labels as printed.
func (r *Reader) Metrics(ctx context.Context) (map[string]float64, error) {
	body, err := r.Get(ctx, "/metrics")
	if err != nil {
		return nil, err
	}
	metrics := map[string]float64{}
	for line := range strings.Lines(string(body)) {
		line = strings.TrimSpace(line)
		i := strings.LastIndexByte(line, ' ')
		if i < 0 || strings.HasPrefix(line, "#") {
			continue
		}
		if metrics[line[:i]], err = strconv.ParseFloat(line[i+1:], 64); err != nil {
			return nil, fmt.Errorf("metric %q: %w", line, err)
		}
	}
	return metrics, nil
}
