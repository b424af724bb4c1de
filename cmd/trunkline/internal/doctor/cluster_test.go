package doctor

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"
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
