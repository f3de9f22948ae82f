// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package certs creates the certificates of one local cluster: an authority that exists as long as the cluster's
// state, and the certificates of the API server and of its clients.
package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// lifetime is the validity of every certificate. A local cluster is not meant to run that long.
const lifetime = 365 * 24 * time.Hour

// skew is how long before its creation a certificate is valid, for clients with a slow clock.
const skew = time.Hour

// Authority signs the certificates of one cluster.
type Authority struct {
	now         time.Time
	certificate *x509.Certificate
	key         crypto.Signer
	pem         []byte
}

// Pair is a certificate and its private key, both PEM encoded.
type Pair struct {
	Certificate []byte
	Key         []byte
}

// NewAuthority returns a new authority, PEM encoded: its certificate, valid from one hour before now for a year, and
// its key.
func NewAuthority(now time.Time) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("creating the key of the certificate authority: %w", err)
	}
	template, err := newTemplate(now, pkix.Name{CommonName: "localcluster-ca"})
	if err != nil {
		return nil, err
	}
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("signing the certificate authority: %w", err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding the key of the certificate authority: %w", err)
	}
	return append(encode("CERTIFICATE", der), encode("PRIVATE KEY", keyDER)...), nil
}

// LoadAuthority parses the result of NewAuthority. Certificates that it signs are valid from one hour before now for
// a year, but not longer than its own certificate.
func LoadAuthority(data []byte, now time.Time) (*Authority, error) {
	pair, err := tls.X509KeyPair(data, data)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate authority: %w", err)
	}
	if now.After(pair.Leaf.NotAfter) {
		return nil, fmt.Errorf("the certificate authority is valid until %s only: begin with an empty state directory", pair.Leaf.NotAfter)
	}
	return &Authority{
		now: now, certificate: pair.Leaf, key: pair.PrivateKey.(crypto.Signer), pem: encode("CERTIFICATE", pair.Certificate[0]),
	}, nil
}

// Certificate returns the authority's own certificate, PEM encoded, with which clients verify the API server and the
// API server its clients.
func (a *Authority) Certificate() []byte {
	return a.pem
}

// Server returns a pair for a server with the given names and addresses.
func (a *Authority) Server(names []string, addresses []net.IP) (Pair, error) {
	template, err := newTemplate(a.now, pkix.Name{CommonName: "kube-apiserver"})
	if err != nil {
		return Pair{}, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	template.DNSNames = names
	template.IPAddresses = addresses
	return a.sign(template)
}

// Client returns a pair that authenticates the given user and groups to the API server.
func (a *Authority) Client(user string, groups ...string) (Pair, error) {
	template, err := newTemplate(a.now, pkix.Name{CommonName: user, Organization: groups})
	if err != nil {
		return Pair{}, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.sign(template)
}

// ServiceAccountKey returns a new key for service account tokens, PEM encoded in the only form ("EC PRIVATE KEY")
// that kube-apiserver reads for both signing and verifying.
func ServiceAccountKey() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("creating the service account key: %w", err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding the service account key: %w", err)
	}
	return encode("EC PRIVATE KEY", der), nil
}

func newTemplate(now time.Time, subject pkix.Name) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("creating a serial number: %w", err)
	}
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		NotBefore:    now.Add(-skew),
		NotAfter:     now.Add(lifetime),
	}, nil
}

func (a *Authority) sign(template *x509.Certificate) (Pair, error) {
	name := template.Subject.CommonName
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("creating the key of %s: %w", name, err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("signing the certificate of %s: %w", name, err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Pair{}, fmt.Errorf("encoding the key of %s: %w", name, err)
	}
	return Pair{Certificate: encode("CERTIFICATE", der), Key: encode("PRIVATE KEY", keyDER)}, nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
