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

// writeKeys writes the key files of the components and creates the administrator's credentials. The authority and the
// key of service account tokens are kept across restarts, so that credentials stay valid.
func (p *ControlPlane) writeKeys() error {
	now := time.Now()
	data, err := p.config.Dir.Keep(authorityFile, func() ([]byte, error) { return certs.NewAuthority(now) })
	if err != nil {
		return err
	}
	if p.authority, err = certs.LoadAuthority(data, now); err != nil {
		return err
	}
	if _, err = p.config.Dir.Keep(accountKeyFile, certs.ServiceAccountKey); err != nil {
		return err
	}
	serving, err := p.authority.Server(
		[]string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		[]net.IP{net.ParseIP("127.0.0.1"), net.ParseIP(serviceAddress)},
	)
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{
		caFile:         p.authority.Certificate(),
		servingFile:    serving.Certificate,
		servingKeyFile: serving.Key,
	} {
		if _, err = p.config.Dir.Write(name, data); err != nil {
			return err
		}
	}
	if p.kubeconfig, err = p.kubeconfigFor("admin", "system:masters"); err != nil {
		return err
	}
	p.admin, err = clientcmd.RESTConfigFromKubeConfig(p.kubeconfig)
	if err != nil {
		return fmt.Errorf("reading back the kubeconfig: %w", err)
	}
	p.admin.QPS = -1
	p.admin.ContentType = runtime.ContentTypeProtobuf
	p.admin.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	p.admin.WarningHandler = rest.NoWarnings{}
	return nil
}

// kubeconfigFor returns a kubeconfig for the given user.
func (p *ControlPlane) kubeconfigFor(user string, groups ...string) ([]byte, error) {
	pair, err := p.authority.Client(user, groups...)
	if err != nil {
		return nil, err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[ContextName] = &clientcmdapi.Cluster{
		Server:                   p.url,
		CertificateAuthorityData: p.authority.Certificate(),
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
func (p *ControlPlane) writeKubeconfig(user string) (string, error) {
	data, err := p.kubeconfigFor(user)
	if err != nil {
		return "", err
	}
	return p.config.Dir.Write(user[len("system:"):]+".kubeconfig", data)
}
