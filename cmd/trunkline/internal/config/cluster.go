package config

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"trunkline/engine/cluster/node"
)

// Cluster is the section of several servers with one journal.
type Cluster struct {
	Mode, Name, Node string

	ListenAddr    string
	PeerAddr      string
	AdvertiseAddr string
	Routes        []string
	SecretFile    string
	TLSCertFile   string
	TLSKeyFile    string
	TLSCAFile     string
	Dir           string

	Partitions      int
	Replicas        int
	Lease           time.Duration
	ElectionTimeout time.Duration
	JoinTimeout     time.Duration

	NATSURL             []string
	NATSCredsFile       string
	NATSSystemCredsFile string
	NATSAcceptLazySync  bool
}

// The values of cluster.mode.
const (
	clusterOff      = "off"
	ClusterEmbedded = "embedded"
	ClusterNATS     = "nats"
)

// Bounds of the cluster section.
const (
	// minNodes is the least number of nodes of which one may be lost.
	minNodes = 3
	maxNodes = 64
	// maxReplicas is the most that a stream has.
	maxReplicas = 5
	// maxPartitions is the most that a client may have to be connected to.
	maxPartitions = 64
	minElection   = 100 // milliseconds
	// minSecret is in bytes. Who connects to a node may try secrets without asking it again.
	minSecret = 32
	// maxCredentials bounds a file with the credentials of a NATS account, which may list many
	// subjects.
	maxCredentials = 64 << 10
)

// Names of settings that messages have.
const (
	keyClusterListen = "cluster.listen_addr"
	keyPeer          = "cluster.peer_addr"
	keyAdvertise     = "cluster.advertise_addr"
	keyRoutes        = "cluster.routes"
	keySecret        = "cluster.secret_file"
	keyNATSURL       = "cluster.nats_url"
	keyNATSCreds     = "cluster.nats_creds_file"
	keyNATSSystem    = "cluster.nats_system_creds_file"
	keyLazySync      = "cluster.nats_accept_lazy_sync"
)

var clusterSettings = []setting{
	{key: "cluster.mode", def: clusterOff, oneOf: []string{clusterOff, ClusterEmbedded, ClusterNATS},
		help: "off: one server has the journal; embedded: the servers replicate it among each other; nats: NATS servers of yours do"},
	{key: "cluster.name", def: "",
		help: "name of the cluster, the same on all nodes: letters, digits, - and _"},
	{key: "cluster.node", def: "",
		help: "id of this node, another one on each: letters, digits, . - and _; empty: the name of the host"},
	{key: keyClusterListen, def: "127.0.0.1:50070",
		help: "host:port for the other nodes; beyond loopback it needs a secret or TLS"},
	{key: keyPeer, def: "127.0.0.1:50071",
		help: "host:port for clients that other nodes forward to this one; beyond loopback it needs a secret or TLS"},
	{key: keyAdvertise, def: "",
		help: "host:port at which other nodes reach cluster.peer_addr; empty: as that is bound"},
	{key: keyRoutes, def: "", optional: true,
		help: "all nodes, this one too, comma separated: id=host:port; the same list on each"},
	{key: keySecret, def: "",
		help: "file with a secret of the nodes, 32 random bytes or more, by which they know each other and encrypt; in place of certificates"},
	{key: "cluster.tls_cert_file", def: "",
		help: "certificate of this node for both sides of TLS 1.3, PEM; mode nats: for servers that ask for one"},
	{key: "cluster.tls_key_file", def: "",
		help: "private key of that certificate, PEM"},
	{key: "cluster.tls_ca_file", def: "",
		help: "certificate authorities of nodes and of no one else, PEM; mode nats: of the servers, which makes TLS required"},
	{key: "cluster.dir", def: "",
		help: "directory of this node's copy of the journal; empty: cluster in store.dir"},
	{key: "cluster.partitions", def: 1, min: 1, max: maxPartitions,
		help: "parts of the journal, each owned by one node; fixed when the cluster is made, and the same on all nodes"},
	{key: "cluster.replicas", def: minNodes, min: minNodes, max: maxReplicas,
		help: "nodes that keep each change, an odd number; it is durable once a majority of them has synced it"},
	{key: "cluster.lease_ms", def: 1000, min: 100, max: 60_000,
		help: "how long the owner of the journal keeps it that is not heard of; the same on all nodes"},
	{key: "cluster.election_timeout_ms", def: 0, min: 0, max: 60_000,
		help: "silence of a leader after which the nodes elect another, 100 or more, the same on all nodes; 0: that of NATS, 4 to 9 s"},
	{key: "cluster.join_timeout_secs", def: 60, min: 1, max: maxSecs,
		help: "how long a starting node waits for a majority of the others"},
	{key: keyNATSURL, def: "", optional: true,
		help: "NATS servers of yours, comma separated: nats://host:port or tls://host:port"},
	{key: keyNATSCreds, def: "",
		help: "file with what identifies this process to them: a credentials file, the seed of an nkey, or user:password"},
	{key: keyNATSSystem, def: "",
		help: "the same for their system account, which alone shows whether they sync each write"},
	{key: keyLazySync, def: false,
		help: "use NATS servers that acknowledge a write before they sync it, or that cannot be asked; a power loss may then lose what was answered"},
}

// clusterNames has the patterns of names: of a cluster and of a node. Compiled when first asked
// for, so that commands without settings do not pay for it at start.
var clusterNames = sync.OnceValues(func() (cluster, id *regexp.Regexp) {
	return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`), regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
})

// On reports whether the server is one of several.
func (l *Cluster) On() bool { return l.Mode != clusterOff }

// ID returns cluster.node or its default.
func (l *Cluster) ID() (string, error) {
	if l.Node != "" {
		return l.Node, nil
	}
	return os.Hostname()
}

// checkCluster refuses what a node cannot do.
func (c *Config) checkCluster() problems {
	l := &c.Cluster
	if !l.On() {
		return nil
	}
	var p problems
	if c.Store.Mode != StoreAlways {
		p.add(
			"cannot use cluster.mode = %q: store.mode is %s, and what several nodes share is always synced",
			l.Mode,
			c.Store.Mode,
		)
	}
	cluster, id := clusterNames()
	if !cluster.MatchString(l.Name) {
		p.add("cannot use cluster.name = %q: want 1 to 64 letters, digits, - and _, a letter or digit first", l.Name)
	}
	if name, err := l.ID(); err != nil || !id.MatchString(name) {
		p.add("cannot use cluster.node = %q: want 1 to 64 letters, digits, . - and _, a letter or digit first", name)
	}
	if l.Replicas%2 == 0 {
		p.add("cannot use cluster.replicas = %d: an even number survives no more losses than one less", l.Replicas)
	}
	if l.ElectionTimeout > 0 && l.ElectionTimeout < minElection*time.Millisecond {
		p.add(
			"cannot use cluster.election_timeout_ms = %d: want 0, or %d or more",
			l.ElectionTimeout.Milliseconds(),
			minElection,
		)
	}
	p = append(p, l.checkAddrs()...)
	if l.Mode == ClusterNATS {
		return append(p, l.checkNATS()...)
	}
	return append(p, l.checkEmbedded()...)
}

// checkAddrs checks the addresses for other nodes, and what secures them.
func (l *Cluster) checkAddrs() problems {
	var p problems
	addrs := map[string]string{keyPeer: l.PeerAddr}
	if l.Mode == ClusterEmbedded {
		addrs[keyClusterListen] = l.ListenAddr
	}
	for _, key := range slices.Sorted(maps.Keys(addrs)) {
		addr := addrs[key]
		if err := isAddress(addr); err != nil {
			p.add("cannot use %s = %q: %v", key, addr, err)
		} else if loop, _ := isLoopback(addr); !loop && l.SecretFile == "" {
			if missing := l.Access().missingTLS(); len(missing) > 0 {
				p.add("cannot use %s = %q: an address beyond loopback needs %s, or TLS: %s", key, addr, keySecret, notSet(missing))
			}
		}
	}
	host, _, err := net.SplitHostPort(l.PeerAddr)
	switch {
	case l.AdvertiseAddr != "":
		if err := isAddress(l.AdvertiseAddr); err != nil {
			p.add("cannot use %s = %q: %v", keyAdvertise, l.AdvertiseAddr, err)
		}
	case err == nil && (host == "" || isUnspecified(host)):
		p.add("cannot use %s = %q: %s is not set, and other nodes need one address", keyPeer, l.PeerAddr, keyAdvertise)
	}
	return p
}

func (l *Cluster) checkEmbedded() problems {
	p := l.Access().checkTLS()
	if l.SecretFile != "" && l.hasTLS() {
		p.add("cannot use %s and cluster.tls_cert_file together: nodes know each other by one of them", keySecret)
	}
	if l.hasTLS() && l.TLSCAFile == "" {
		p.add(
			"cannot use cluster.tls_cert_file: cluster.tls_ca_file is not set, and nodes check each other's certificates",
		)
	}
	routes, err := l.routes()
	if err != nil {
		p.add("cannot use %s: %v", keyRoutes, err)
		return p
	}
	if len(routes) < max(minNodes, l.Replicas) {
		p.add("cannot use %s: %d nodes, and cluster.replicas = %d needs as many", keyRoutes, len(routes), l.Replicas)
	}
	if own, err := l.ID(); err == nil && !slices.ContainsFunc(routes, func(r node.Route) bool { return r.Node == own }) {
		p.add("cannot use %s: this node, %q, is not in it", keyRoutes, own)
	}
	return p
}

func (l *Cluster) hasTLS() bool { return l.TLSCertFile != "" && l.TLSKeyFile != "" }

// Access returns the settings of TLS in the form of other sections, with the address of a node.
func (l *Cluster) Access() *Access {
	a := &Access{Section: "cluster", TLSCertFile: l.TLSCertFile, TLSKeyFile: l.TLSKeyFile, TLSClientCAFile: l.TLSCAFile, ca: "tls_ca_file"}
	if l.Mode == ClusterEmbedded {
		a.ListenAddr = []string{l.ListenAddr}
	}
	return a
}

// routes parses cluster.routes.
func (l *Cluster) routes() ([]node.Route, error) {
	if len(l.Routes) > maxNodes {
		return nil, fmt.Errorf("%d nodes, at most %d", len(l.Routes), maxNodes)
	}
	_, valid := clusterNames()
	out := make([]node.Route, 0, len(l.Routes))
	for _, entry := range l.Routes {
		id, addr, ok := strings.Cut(entry, "=")
		if !ok || !valid.MatchString(id) {
			return nil, fmt.Errorf("%q: want id=host:port", entry)
		}
		if err := isAddress(addr); err != nil {
			return nil, fmt.Errorf("%q: %w", entry, err)
		}
		if host, _, _ := net.SplitHostPort(addr); host == "" || isUnspecified(host) {
			return nil, fmt.Errorf("%q: want an address that other nodes reach", entry)
		}
		for _, other := range out {
			if other.Node == id || strings.EqualFold(other.Addr, addr) {
				return nil, fmt.Errorf("%q: %s=%s is in the list too", entry, other.Node, other.Addr)
			}
		}
		out = append(out, node.Route{Node: id, Addr: addr})
	}
	return out, nil
}

func isUnspecified(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && ip.IsUnspecified()
}

// isAddress checks the form of a host:port that others are to find.
func isAddress(addr string) error {
	if _, err := isLoopback(addr); err != nil {
		return err
	}
	if _, port, _ := net.SplitHostPort(addr); strings.Trim(port, "0") == "" {
		return errors.New("want a port above 0, which other nodes know")
	}
	return nil
}

func (l *Cluster) checkNATS() problems {
	var p problems
	if (l.TLSCertFile == "") != (l.TLSKeyFile == "") {
		p.add("cannot use one of cluster.tls_cert_file and cluster.tls_key_file without the other")
	}
	if len(l.NATSURL) == 0 {
		p.add("cannot use cluster.mode = %q: %s is not set", l.Mode, keyNATSURL)
	}
	if len(l.NATSURL) > maxNodes {
		p.add("cannot use %s: %d servers, at most %d", keyNATSURL, len(l.NATSURL), maxNodes)
	}
	for _, text := range l.NATSURL {
		u, err := url.Parse(text)
		switch {
		case err != nil: // its text has the URL, maybe with a password
			p.add("cannot use %s: an entry is no URL; want nats://host:port or tls://host:port", keyNATSURL)
		case u.User != nil:
			p.add(
				"cannot use %s: the one of %s has a user in it, which everyone sees; put that into %s",
				keyNATSURL,
				u.Host,
				keyNATSCreds,
			)
		case u.Scheme != "nats" && u.Scheme != "tls" || u.Hostname() == "" || cmp.Or(u.Path, u.RawQuery, u.Fragment) != "":
			p.add("cannot use %s = %q: want nats://host:port or tls://host:port", keyNATSURL, text)
		}
	}
	if l.NATSSystemCredsFile == "" && !l.NATSAcceptLazySync {
		p.add(
			"cannot use cluster.mode = %q: whether the servers sync each write is visible to their system account alone; set %s, or accept a loss with %s=true",
			l.Mode,
			keyNATSSystem,
			keyLazySync,
		)
	}
	return p
}

// ClusterNode returns what a node with a server of its own needs, without its Logger. It reads the
// secret and the certificates.
func (c *Config) ClusterNode() (n node.Config, err error) {
	l := &c.Cluster
	n = node.Config{
		Cluster: l.Name, Listen: l.ListenAddr, Partitions: l.Partitions, ElectionTimeout: l.ElectionTimeout,
		Dir: cmp.Or(l.Dir, filepath.Join(c.Store.Dir, "cluster")),
	}
	if n.Node, err = l.ID(); err != nil {
		return n, err
	}
	if n.Routes, err = l.routes(); err != nil {
		return n, err
	}
	if n.Secret, err = secretIn(keySecret, l.SecretFile, minSecret); err != nil {
		return n, err
	}
	if n.TLS, err = l.Access().TLS(); err == nil && n.TLS != nil {
		n.TLS.RootCAs = n.TLS.ClientCAs
	}
	return n, err
}

// ClusterPeers returns both sides of TLS for connections that nodes forward, nil for none. It reads
// the secret and the certificates.
func (c *Config) ClusterPeers() (*tls.Config, error) {
	l := &c.Cluster
	secret, err := secretIn(keySecret, l.SecretFile, minSecret)
	if err != nil {
		return nil, err
	}
	if secret != "" {
		return node.SecretTLS(secret, []node.Route{{Addr: cmp.Or(l.AdvertiseAddr, l.PeerAddr)}})
	}
	if !l.hasTLS() || l.TLSCAFile == "" {
		return nil, nil
	}
	t, err := l.Access().TLS()
	if err == nil {
		t.RootCAs = t.ClientCAs
	}
	return t, err
}

// ClusterServers returns what a node needs to use NATS servers. It reads the credentials and the
// certificates.
func (c *Config) ClusterServers(log *slog.Logger) (s node.Servers, err error) {
	l := &c.Cluster
	s = node.Servers{Cluster: l.Name, URLs: l.NATSURL, Replicas: l.Replicas, AcceptLazySync: l.NATSAcceptLazySync, Logger: log}
	if s.Node, err = l.ID(); err != nil {
		return s, err
	}
	if s.Credentials, err = secretOf(keyNATSCreds, l.NATSCredsFile, 1, maxCredentials); err != nil {
		return s, err
	}
	if s.System, err = secretOf(keyNATSSystem, l.NATSSystemCredsFile, 1, maxCredentials); err != nil {
		return s, err
	}
	if l.TLSCAFile == "" && !l.hasTLS() {
		return s, nil
	}
	s.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	if l.TLSCAFile != "" {
		if s.TLS.RootCAs, err = l.Access().authorities(); err != nil {
			return s, err
		}
	}
	if l.hasTLS() {
		pair, err := l.Access().KeyPair()
		if err != nil {
			return s, err
		}
		s.TLS.Certificates = []tls.Certificate{pair}
	}
	return s, nil
}
