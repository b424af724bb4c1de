package doctor

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"trunkline/engine/journal"
	"trunkline/engine/journal/embedded"
	"trunkline/engine/obs"
	"trunkline/handlers/ops"
)

// node answers as the server of a node does, at an address of its own.
func (r *rig) node(greeting string) string {
	r.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte(greeting + "\r\n"))
			_ = c.Close()
		}
	}()
	r.t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return l.Addr().String()
}

// closedAddress returns an address at which none answers.
func closedAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestNodesOfACluster(t *testing.T) {
	r := newRig(t)
	r.want(r.run(), "cluster", keyCluster, Skipped, "alone")
	b := r.node(`INFO {"server_name":"b","cluster":"prod"}`)
	c, own := closedAddress(t), closedAddress(t)
	run := func(routes string, sets ...string) *Report {
		args := []string{"--set", "cluster.mode=embedded", "--set", "cluster.name=prod", "--set", "cluster.node=a", "--set", "store.mode=always",
			"--set", "store.dir=" + t.TempDir(), "--set", "cluster.listen_addr=" + own, "--set", "cluster.routes=" + routes}
		return r.run(append(args, sets...)...)
	}
	got := run("a=" + own + ",b=" + b + ",c=" + c)
	r.want(got, "cluster", "cluster.routes", OK, "a, this node, is not started")
	r.want(got, "cluster", "cluster.routes", OK, "b answers at "+b)
	r.want(got, "cluster", "cluster.routes", Warning, "c does not answer")
	got = run("a=" + own + ",c=" + b + ",b=" + c)
	r.want(got, "cluster", "cluster.routes", Failed, `is "b", not "c"`)
	got = run("a="+own+",b="+b+",c="+c, "--set", "cluster.secret_file="+filepath.Join(t.TempDir(), "missing"))
	r.want(got, "cluster", "cluster", Failed, "cannot read cluster.secret_file")
}

func TestNATSServersOfACluster(t *testing.T) {
	r := newRig(t)
	args := []string{"--set", "cluster.mode=nats", "--set", "cluster.name=prod", "--set", "cluster.node=a", "--set", "store.mode=always",
		"--set", "store.dir=" + t.TempDir(), "--set", "cluster.nats_url=nats://" + closedAddress(t), "--set", "cluster.nats_accept_lazy_sync=true"}
	r.want(r.run(args...), "cluster", "cluster.nats_url", Failed, "cannot use the servers of cluster")
	secret := write(t, filepath.Join(t.TempDir(), "creds"), "hunter2")
	got := r.run(append(args, "--set", "cluster.nats_creds_file="+secret)...)
	r.want(got, "cluster", "cluster.nats_url", Failed, "want a credentials file")
	for _, f := range got.Checks {
		if strings.Contains(f.Evidence, "hunter2") {
			t.Errorf("a secret is in %+v", f)
		}
	}
}

// TestNamedOfACluster: config check reads files and asks no other node.
func TestNamedOfACluster(t *testing.T) {
	r := newRig(t)
	own, b := closedAddress(t), r.node(`INFO {"server_name":"x","cluster":"other"}`)
	dir := t.TempDir()
	args := []string{"--set", "cluster.mode=embedded", "--set", "cluster.name=prod", "--set", "cluster.node=a", "--set", "store.mode=always",
		"--set", "store.dir=" + dir, "--set", "cluster.listen_addr=" + own, "--set", "cluster.routes=a=" + own + ",b=" + b + ",c=127.0.0.1:9"}
	got := named(t, args...)
	if !got.OK {
		t.Errorf("%+v", got)
	}
	r.want(got, "cluster", "cluster.dir", OK, "could be made")
	r.want(got, "listeners", "cluster.listen_addr", OK, "is free")
	file := write(t, filepath.Join(dir, "file"), "x")
	r.want(named(t, append(args, "--set", "cluster.dir="+file+"/below")...), "cluster", "cluster.dir", Failed, "not a directory")
	cert, key := certificate(t, time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour), nil, loopback)
	got = named(t, append(args, "--set", "cluster.tls_cert_file="+cert, "--set", "cluster.tls_key_file="+key, "--set", "cluster.tls_ca_file="+cert)...)
	r.want(got, "tls.expiry", "cluster.tls_cert_file", Failed, "expired at")
	r.want(got, "tls.clients", "cluster.tls_ca_file", Failed, "expired at")
	args = []string{"--set", "cluster.mode=nats", "--set", "cluster.name=prod", "--set", "cluster.node=a", "--set", "store.mode=always",
		"--set", "store.dir=" + dir, "--set", "cluster.nats_url=nats://" + b, "--set", "cluster.nats_system_creds_file=" + file}
	r.want(named(t, args...), "cluster", "cluster.nats_url", Skipped, "no server is asked")
	r.want(named(t, append(args, "--set", "cluster.nats_creds_file="+file+"x")...), "cluster", "cluster", Failed, "cannot read cluster.nats_creds_file")
}

// TestSecretsOfACluster: a group may read them, as that of a mounted secret does; others may not.
func TestSecretsOfACluster(t *testing.T) {
	r := newRig(t)
	own := closedAddress(t)
	secret := write(t, filepath.Join(t.TempDir(), "secret"), strings.Repeat("s", 32))
	args := []string{"--set", "cluster.mode=embedded", "--set", "cluster.name=prod", "--set", "cluster.node=a", "--set", "store.mode=always", "--set", "cluster.secret_file=" + secret,
		"--set", "store.dir=" + t.TempDir(), "--set", "cluster.listen_addr=" + own, "--set", "cluster.routes=a=" + own + ",b=127.0.0.1:9,c=127.0.0.1:7"}
	for mode, result := range map[os.FileMode]Result{0o600: OK, 0o400: OK, 0o440: OK, 0o640: OK, 0o644: Warning, 0o660: Warning, 0o601: Warning} {
		if err := os.Chmod(secret, mode); err != nil {
			t.Fatal(err)
		}
		r.want(named(t, args...), "cluster", "cluster.secret_file", result, fmt.Sprintf("has mode %#o", mode))
	}
}

// TestRunningNodes compares what all nodes have in common, as the node here knows it.
func TestRunningNodes(t *testing.T) {
	r := newRig(t)
	own := closedAddress(t)
	at := obs.ClusterNode{Version: "v1", LeaseSeconds: 1, Seen: true}
	nodes := make([]obs.ClusterNode, 5)
	for i, change := range []func(n *obs.ClusterNode){
		func(*obs.ClusterNode) {}, func(n *obs.ClusterNode) { n.LeaseSeconds = 2 }, func(n *obs.ClusterNode) { n.ElectionSeconds = 0.5 },
		func(n *obs.ClusterNode) { n.Version = "v2" }, func(n *obs.ClusterNode) { n.Seen = false },
	} {
		nodes[i] = at
		nodes[i].Node = string(rune('a' + i))
		change(&nodes[i])
	}
	run := func(c obs.Cluster) *Report {
		answers := healthy()
		answers["/cluster"] = c
		answers["/store"] = ops.Store{Mode: "always", Cluster: &obs.Standing{Node: "a", Role: c.Role, Owner: c.Owner, Index: 7}}
		return r.run("--admin-listen", adminOf(t, answers), "--set", "cluster.mode=embedded", "--set", "cluster.name=prod", "--set", "cluster.node=a", "--set", "store.mode=always",
			"--set", "store.dir="+t.TempDir(), "--set", "cluster.listen_addr="+own, "--set", "cluster.routes=a="+own+",b=127.0.0.1:9,c=127.0.0.1:7")
	}
	got := run(obs.Cluster{Name: "prod", Node: "a", ClusterPartition: obs.ClusterPartition{Role: obs.RoleStandby, Owner: "b"}, Quorum: true, Nodes: nodes})
	r.want(got, "cluster", "cluster", OK, "b owns the journal, a is standby of it")
	r.want(got, "cluster", "cluster.routes", OK, "a, this node, runs")
	r.want(got, "cluster", "node a", OK, "are those of here")
	r.want(got, "cluster", "node b", Warning, "cluster.lease_ms is 2000 there, 1000 here")
	r.want(got, "cluster", "node c", Failed, "cluster.election_timeout_ms is 500 there, 0 here")
	r.want(got, "cluster", "node d", Warning, "its version is v2, this program is v1")
	r.want(got, "cluster", "node e", Warning, "has not announced itself lately")
	r.want(run(obs.Cluster{Node: "a", Problem: "no majority of the nodes is seen (not b, c)"}), "cluster", "cluster", Failed, "(not b, c)")
	r.want(run(obs.Cluster{Node: "a", Quorum: true}), "cluster", "cluster", Failed, "knows no owner")
	for _, f := range got.Checks {
		if f.ID == "server" && !strings.Contains(f.Evidence, "a is a standby of b, at record 7") {
			t.Errorf("%+v", f)
		}
	}
}

// TestTheDirectoryOfANode: a journal of a single server is refused at the start.
func TestTheDirectoryOfANode(t *testing.T) {
	r := newRig(t)
	own, dir := closedAddress(t), t.TempDir()
	args := []string{"--set", "cluster.mode=embedded", "--set", "cluster.name=prod", "--set", "cluster.node=a", "--set", "store.mode=always", "--set", "cluster.dir=" + t.TempDir(),
		"--set", "store.dir=" + dir, "--set", "cluster.listen_addr=" + own, "--set", "cluster.routes=a=" + own + ",b=127.0.0.1:9,c=127.0.0.1:7"}
	r.want(r.run(args...), "store.layout", keyDir, Skipped, "is not there yet")
	for _, f := range r.run(args...).Checks {
		if f.Subject == "cluster.dir" && strings.Contains(f.Evidence, "are free") {
			s, err := embedded.Open(embedded.Config{Dir: dir, Mode: journal.Always})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			r.want(r.run(args...), "store.layout", keyDir, Failed, "the journal of a single server")
			return
		}
	}
	t.Error("the disk of cluster.dir is not looked at")
}
