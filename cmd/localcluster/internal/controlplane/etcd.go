package controlplane

import (
	"fmt"
	"net/url"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

const (
	etcdSocket   = "etcd.sock"
	etcdPeer     = "peer.sock"
	etcdPatience = 30 * time.Second
	etcdQuota    = 8 << 30 // bytes
)

// startEtcd starts etcd and returns when it serves. It listens on unix sockets in the state
// directory only, because it knows no users: who reaches it reads everything.
func (p *ControlPlane) startEtcd() error {
	c := embed.NewConfig()
	c.Name = "localcluster"
	c.Dir = p.config.Dir.Join("etcd")
	c.ListenClientUrls = []url.URL{{Scheme: "unix", Path: p.config.Dir.Join(etcdSocket)}}
	// The peer listener takes its path from Host. The advertised URLs keep their defaults:
	// they must name host and port, and nobody dials them, as there is one member.
	c.ListenPeerUrls = []url.URL{{Scheme: "unix", Host: p.config.Dir.Join(etcdPeer)}}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.TickMs, c.ElectionMs = 10, 100 // a lone member is elected sooner
	c.UnsafeNoFsync = true           // nothing here outlives the process
	c.QuotaBackendBytes = etcdQuota
	c.LogLevel = "error"
	c.LogOutputs = []string{p.config.LogFile}

	server, err := embed.StartEtcd(c)
	if err != nil {
		return fmt.Errorf("starting etcd: %w", err)
	}
	p.stops = append(p.stops, server.Close)
	select {
	case <-server.Server.ReadyNotify():
		return nil
	case err := <-server.Err():
		return fmt.Errorf("etcd: %w", err)
	case <-time.After(etcdPatience):
		return fmt.Errorf("etcd: not ready after %s", etcdPatience)
	}
}
