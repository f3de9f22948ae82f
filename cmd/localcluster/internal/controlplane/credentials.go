// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"net"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/batch-scheduler/batch-scheduler/cmd/localcluster/internal/certs"
	"github.com/batch-scheduler/batch-scheduler/cmd/localcluster/internal/statedir"
)

// ContextName is the name of cluster, user and context in all kubeconfigs of the local cluster.
const ContextName = "localcluster"

// Files in the state directory.
const (
	caFile         = "ca.crt"
	authorityFile  = "ca.pem" // with its key
	servingFile    = "apiserver.crt"
	servingKeyFile = "apiserver.key"
	accountKeyFile = "sa.key"
)

// serviceCIDR is the range of service addresses; the first one is the API server's, with the name kubernetes.default.
const (
	serviceCIDR    = "10.0.0.0/16"
	serviceAddress = "10.0.0.1"
)

// credentials are the keys of a control plane, and what clients need to access its API server.
type credentials struct {
	dir        *statedir.Dir
	url        string // of the API server
	authority  *certs.Authority
	admin      *rest.Config
	kubeconfig []byte // of an administrator
}

// newCredentials writes the key files of the components and creates the administrator's credentials. The authority and
// the key of service account tokens are kept across restarts, so that credentials stay valid.
func newCredentials(dir *statedir.Dir, url string) (*credentials, error) {
	c, now := &credentials{dir: dir, url: url}, time.Now()
	data, err := dir.Keep(authorityFile, func() ([]byte, error) { return certs.NewAuthority(now) })
	if err != nil {
		return nil, err
	}
	if c.authority, err = certs.LoadAuthority(data, now); err != nil {
		return nil, err
	}
	if _, err = dir.Keep(accountKeyFile, certs.ServiceAccountKey); err != nil {
		return nil, err
	}
	if err = c.writeServingFiles(); err != nil {
		return nil, err
	}
	return c, c.createAdmin()
}

// writeServingFiles writes the certificates with which the API server serves.
func (c *credentials) writeServingFiles() error {
	serving, err := c.authority.Server(
		[]string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		[]net.IP{net.ParseIP("127.0.0.1"), net.ParseIP(serviceAddress)},
	)
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{
		caFile:         c.authority.Certificate(),
		servingFile:    serving.Certificate,
		servingKeyFile: serving.Key,
	} {
		if _, err = c.dir.Write(name, data); err != nil {
			return err
		}
	}
	return nil
}

// createAdmin creates the credentials of the administrator.
func (c *credentials) createAdmin() (err error) {
	if c.kubeconfig, err = c.kubeconfigFor("admin", "system:masters"); err != nil {
		return err
	}
	c.admin, err = clientcmd.RESTConfigFromKubeConfig(c.kubeconfig)
	if err != nil {
		return fmt.Errorf("reading back the kubeconfig: %w", err)
	}
	c.admin.QPS = -1
	c.admin.ContentType = runtime.ContentTypeProtobuf
	c.admin.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	c.admin.WarningHandler = rest.NoWarnings{}
	return nil
}

// kubeconfigFor returns a kubeconfig for the given user.
func (c *credentials) kubeconfigFor(user string, groups ...string) ([]byte, error) {
	pair, err := c.authority.Client(user, groups...)
	if err != nil {
		return nil, err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[ContextName] = &clientcmdapi.Cluster{
		Server:                   c.url,
		CertificateAuthorityData: c.authority.Certificate(),
	}
	config.AuthInfos[ContextName] = &clientcmdapi.AuthInfo{
		ClientCertificateData: pair.Certificate,
		ClientKeyData:         pair.Key,
	}
	config.Contexts[ContextName] = &clientcmdapi.Context{Cluster: ContextName, AuthInfo: ContextName}
	config.CurrentContext = ContextName
	data, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("writing the kubeconfig of %s: %w", user, err)
	}
	return data, nil
}

// writeKubeconfig writes a kubeconfig for a component into the state directory and returns its path.
func (c *credentials) writeKubeconfig(user string) (string, error) {
	data, err := c.kubeconfigFor(user)
	if err != nil {
		return "", err
	}
	return c.dir.Write(user[len("system:"):]+".kubeconfig", data)
}
