// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"net/url"
	"time"

	"go.etcd.io/etcd/server/v3/embed"

	"github.com/batch-scheduler/batch-scheduler/cmd/localcluster/internal/statedir"
)

const (
	etcdSocket  = "etcd.sock"
	etcdPeer    = "peer.sock"
	etcdTimeout = 30 * time.Second
	etcdQuota   = 8 << 30 // bytes
)

// startEtcd starts etcd and returns, when it serves, a function that stops it. It listens only on unix sockets in the
// state directory, because it has no authentication.
func startEtcd(dir *statedir.Dir, logFile string) (stop func(), err error) {
	c := embed.NewConfig()
	c.Name = "localcluster"
	c.Dir = dir.Join("etcd")
	c.ListenClientUrls = []url.URL{{Scheme: "unix", Path: dir.Join(etcdSocket)}}
	// The peer listener takes its path from Host. The advertised URLs keep their defaults: they must have host and
	// port, and they are not used by a single member.
	c.ListenPeerUrls = []url.URL{{Scheme: "unix", Host: dir.Join(etcdPeer)}}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.TickMs, c.ElectionMs = 10, 100 // speeds up the election of a single member
	c.UnsafeNoFsync = true           // the data is not needed after a crash of the machine
	c.QuotaBackendBytes = etcdQuota
	c.LogLevel = "error"
	c.LogOutputs = []string{logFile}

	server, err := embed.StartEtcd(c)
	if err != nil {
		return nil, fmt.Errorf("starting etcd: %w", err)
	}
	select {
	case <-server.Server.ReadyNotify():
		return server.Close, nil
	case err := <-server.Err():
		return nil, fmt.Errorf("etcd: %w", err)
	case <-time.After(etcdTimeout):
		return nil, fmt.Errorf("etcd: not ready after %s", etcdTimeout)
	}
}
