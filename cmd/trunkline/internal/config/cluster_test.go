package config

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/engine/cluster/node"
)

const threeRoutes = "a=127.0.0.1:7001,b=127.0.0.1:7002,c=127.0.0.1:7003"

// nodeArgs returns the flags of a node, then those of sets, which win.
func nodeArgs(sets ...string) []string {
	all := append([]string{"cluster.mode=embedded", "cluster.name=prod", "cluster.node=a", "cluster.listen_addr=127.0.0.1:7001", "cluster.routes=" + threeRoutes}, sets...)
	return setFlags(all)
}

func natsArgs(sets ...string) []string {
	all := append([]string{"cluster.mode=nats", "cluster.name=prod", "cluster.node=a", "cluster.nats_url=nats://127.0.0.1:4222", "cluster.nats_system_creds_file=s"}, sets...)
	return setFlags(all)
}

func setFlags(sets []string) (args []string) {
	for _, s := range sets {
		args = append(args, "--set", s)
	}
	return args
}

func TestClusterRefusals(t *testing.T) {
	f := func(args []string, want string) {
		t.Helper()
		_, err := load(t, args, nil, "")
		if want == "" && err != nil {
			t.Errorf("%v: %v", args, err)
		}
		if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
	f(nodeArgs(), "")
	f(setFlags([]string{"cluster.name=!", "cluster.routes=x"}), "") // off: the rest does not count
	f(setFlags([]string{"cluster.mode=on"}), "want one of off, embedded, nats")
	f(append(nodeArgs(), "--dev"), "store.mode is memory")
	f(nodeArgs("store.mode=interval"), "always synced")
	f(nodeArgs("cluster.name="), `cluster.name = ""`)
	f(nodeArgs("cluster.name="+strings.Repeat("n", 64)), "")
	f(nodeArgs("cluster.name="+strings.Repeat("n", 65)), "cluster.name")
	for _, bad := range []string{"a b", "a.b", "-a", "a/b", "ä", "a\nb"} {
		f(nodeArgs("cluster.name="+bad), "cluster.name")
	}
	f(nodeArgs("cluster.node=a b"), "cluster.node")
	f(nodeArgs("cluster.node=d"), `this node, "d", is not in it`)
	f(nodeArgs("cluster.replicas=4"), "an even number")
	f(nodeArgs("cluster.replicas=5"), "3 nodes, and cluster.replicas = 5 needs as many")
	f(nodeArgs("cluster.replicas=2"), "from 3 to 5")
	f(nodeArgs("cluster.peer_addr=0.0.0.0:50071", "cluster.secret_file=x"), "cluster.advertise_addr is not set")
	f(nodeArgs("cluster.peer_addr=0.0.0.0:50071"), "needs cluster.secret_file, or TLS")
	f(nodeArgs("cluster.peer_addr=127.0.0.1:0"), "a port above 0")
	f(nodeArgs("cluster.lease_ms=99"), "from 100 to 60000")
	f(nodeArgs("cluster.election_timeout_ms=99"), "want 0, or 100 or more")
	f(nodeArgs("cluster.election_timeout_ms=100"), "")
	f(nodeArgs("cluster.routes="), "0 nodes")
	f(nodeArgs("cluster.routes=a=127.0.0.1:7001,b=127.0.0.1:7002"), "2 nodes")
	f(nodeArgs("cluster.routes=127.0.0.1:7001,b=127.0.0.1:7002,c=127.0.0.1:7003"), "want id=host:port")
	f(nodeArgs("cluster.routes="+threeRoutes+",a=127.0.0.1:7004"), "a=127.0.0.1:7001 is in the list too")
	f(nodeArgs("cluster.routes="+threeRoutes+",d=127.0.0.1:7003"), "c=127.0.0.1:7003 is in the list too")
	f(nodeArgs("cluster.routes="+threeRoutes+",d=0.0.0.0:7004"), "that other nodes reach")
	f(nodeArgs("cluster.routes="+threeRoutes+",d=:7004"), "that other nodes reach")
	f(nodeArgs("cluster.routes="+threeRoutes+",d=127.0.0.1:0"), "a port above 0")
	f(nodeArgs("cluster.routes="+threeRoutes+",d=127.0.0.1"), "want host:port")
	f(nodeArgs("cluster.routes="+manyRoutes(maxNodes)), "")
	f(nodeArgs("cluster.routes="+manyRoutes(maxNodes+1)), "65 nodes, at most 64")
	f(nodeArgs("cluster.listen_addr=127.0.0.1:00"), "a port above 0")
	f(nodeArgs("cluster.listen_addr=unix:///s"), "cluster.listen_addr")
}

func manyRoutes(n int) string {
	out := []string{"a=127.0.0.1:7001"}
	for i := 1; i < n; i++ {
		out = append(out, fmt.Sprintf("n%d=127.0.0.1:%d", i, 8000+i))
	}
	return strings.Join(out, ",")
}

func TestRoutesBeyondLoopbackFailClosed(t *testing.T) {
	f := func(ok bool, sets ...string) {
		t.Helper()
		for _, addr := range []string{"0.0.0.0:7001", "10.0.0.1:7001", ":7001", "[::]:7001", "db.example:7001"} {
			_, err := load(t, nodeArgs(append([]string{"cluster.listen_addr=" + addr}, sets...)...), nil, "")
			if (err == nil) != ok {
				t.Errorf("%s with %v: %v", addr, sets, err)
			}
		}
	}
	f(false)
	f(false, "cluster.tls_cert_file=c", "cluster.tls_key_file=k")
	f(false, "cluster.tls_ca_file=ca")
	f(true, "cluster.secret_file=s")
	f(true, "cluster.tls_cert_file=c", "cluster.tls_key_file=k", "cluster.tls_ca_file=ca")
	if _, err := load(t, nodeArgs("cluster.secret_file=s", "cluster.tls_cert_file=c", "cluster.tls_key_file=k", "cluster.tls_ca_file=ca"), nil, ""); err == nil || !strings.Contains(err.Error(), "together") {
		t.Errorf("a secret and certificates: %v", err)
	}
	if _, err := load(t, nodeArgs("cluster.tls_cert_file=c", "cluster.tls_key_file=k"), nil, ""); err == nil || !strings.Contains(err.Error(), "cluster.tls_ca_file is not set") {
		t.Errorf("TLS without authorities: %v", err)
	}
}

func TestNATSRefusals(t *testing.T) {
	f := func(want string, sets ...string) {
		t.Helper()
		_, err := load(t, natsArgs(sets...), nil, "")
		if want == "" && err != nil {
			t.Errorf("%v: %v", sets, err)
		}
		if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v: %v, want %q", sets, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v: the password is in %q", sets, err)
		}
	}
	f("")
	f("system account alone; set cluster.nats_system_creds_file", "cluster.nats_system_creds_file=")
	f("", "cluster.nats_system_creds_file=", "cluster.nats_accept_lazy_sync=true")
	f("cluster.nats_url is not set", "cluster.nats_url=")
	f("put that into cluster.nats_creds_file", "cluster.nats_url=nats://me:hunter2@10.0.0.1:4222")
	f("no URL", "cluster.nats_url=nats://me:hunter2@10.0.0.1:4222%zz")
	f("want nats://", "cluster.nats_url=http://10.0.0.1:4222")
	f("want nats://", "cluster.nats_url=10.0.0.1")
	f("want nats://", "cluster.nats_url=nats://10.0.0.1/x")
	f("", "cluster.nats_url=tls://10.0.0.1:4222,nats://10.0.0.2")
	f("one of cluster.tls_cert_file and cluster.tls_key_file", "cluster.tls_cert_file=c")
	f("", "cluster.tls_ca_file=c")
}

func TestClusterNode(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := mustLoad(t, nodeArgs("cluster.secret_file="+file, "cluster.election_timeout_ms=500", "store.dir=d"), nil, "")
	if _, err := c.ClusterNode(); err == nil || !strings.Contains(err.Error(), "cluster.secret_file") {
		t.Errorf("no secret: %v", err)
	}
	secret := strings.Repeat("s3cret, ", minSecret/8)
	secret = secret[:minSecret-1] + "!"
	write(secret[1:] + "\n")
	if _, err := c.ClusterNode(); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("a secret of %d bytes: %v", minSecret-1, err)
	}
	write(" " + secret + "\n")
	n, err := c.ClusterNode()
	if err != nil {
		t.Fatal(err)
	}
	if n.Cluster != "prod" || n.Node != "a" || n.Listen != "127.0.0.1:7001" || n.Secret != secret || n.TLS != nil ||
		n.Dir != filepath.Join("d", "cluster") || n.Partitions != 1 || n.ElectionTimeout != 500*time.Millisecond ||
		!slices.Contains(n.Routes, node.Route{Node: "c", Addr: "127.0.0.1:7003"}) {
		t.Errorf("%+v", n)
	}
	shown, err := json.Marshal(c.Rows())
	if err != nil || strings.Contains(string(shown), secret) {
		t.Errorf("%v, the secret is shown: %s", err, shown)
	}
}

func TestTheIDOfANodeIsTheHostByDefault(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Skip(err)
	}
	c := mustLoad(t, nodeArgs("cluster.node=", "cluster.routes="+threeRoutes+","+host+"=127.0.0.1:7009"), nil, "")
	if n, err := c.ClusterNode(); err != nil || n.Node != host {
		t.Errorf("%q, %v, want %q", n.Node, err, host)
	}
}

func TestClusterServers(t *testing.T) {
	dir := t.TempDir()
	creds, system := filepath.Join(dir, "creds"), filepath.Join(dir, "system")
	c := mustLoad(t, natsArgs("cluster.nats_creds_file="+creds, "cluster.nats_system_creds_file="+system, "cluster.replicas=5"), nil, "")
	if _, err := c.ClusterServers(nil); err == nil || !strings.Contains(err.Error(), "cluster.nats_creds_file") {
		t.Errorf("no file: %v", err)
	}
	for name, text := range map[string]string{creds: "me:hunter2\n", system: "sys:hunter3"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := c.ClusterServers(nil)
	if err != nil || s.Credentials != "me:hunter2" || s.System != "sys:hunter3" || s.Replicas != 5 || s.TLS != nil || s.Node != "a" || s.Cluster != "prod" {
		t.Errorf("%+v, %v", s, err)
	}
	if err := os.WriteFile(creds, make([]byte, maxCredentials+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.ClusterServers(nil); err == nil {
		t.Error("credentials above the limit were read")
	}
}
