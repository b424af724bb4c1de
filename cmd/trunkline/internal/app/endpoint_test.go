package app

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"trunkline/engine/connection"
	"trunkline/engine/obs"
	"trunkline/handlers/ipc/ipcclient"
	"trunkline/handlers/ops"
)

func TestMetricNamesAreClean(t *testing.T) {
	reg, err := obs.NewRegistry(obs.ReadBuild("", ""))
	if err != nil {
		t.Fatal(err)
	}
	cfg := settings(t, "store.mode=interval", "store.dir="+t.TempDir())
	log := slog.New(slog.DiscardHandler)
	s := &server{options: Options{Logger: log, recorder: obs.NewRecorder(0, 1)}, log: log, ready: new(ops.Readiness)}
	s.cfg.Store(cfg)
	defer s.abort()
	if err = s.openReplicas(); err != nil {
		t.Fatal(err)
	}
	if s.web, err = openWeb(&cfg.HTTP, s.options, reg); err != nil {
		t.Fatal(err)
	}
	if err = s.register(reg); err != nil {
		t.Fatal(err)
	}
	e := s.first().kernel
	if n := families(t, reg, "trunkline_store_") + families(t, reg, "trunkline_processes"); n > 0 {
		t.Errorf("%d metrics before the store is open", n)
	}
	if err := e.recover(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if err := e.rt.Store.Snapshot(); err != nil {
		t.Fatal(err)
	}
	if n, want := families(t, reg, "trunkline_store_"), len(storeMetrics)+1; n != want {
		t.Errorf("%d metrics of the store, want %d", n, want)
	}
	problems, err := testutil.GatherAndLint(reg.Gatherer())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// families counts the metrics that are shown under a prefix.
func families(t *testing.T, reg *obs.Registry, prefix string) (n int) {
	t.Helper()
	all, err := reg.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if strings.HasPrefix(f.GetName(), prefix) {
			n++
		}
	}
	return n
}

func TestSettingsReachTheParts(t *testing.T) {
	cfg := settings(t, "kernel.read_timeout_secs=7", "kernel.write_timeout_secs=0", "kernel.max_frame_bytes=5000",
		"kernel.shutdown_grace_secs=3", "kernel.dequeue_lease_secs=0", "kernel.process_retention_secs=0",
		"kernel.default_query_timeout_ms=9", "kernel.max_envelopes=11", "kernel.max_envelope_bytes=12", "kernel.envelope_retention_secs=0",
		"kernel.max_sessions=13", "kernel.max_session_bytes=14", "kernel.session_retention_secs=15",
		"kernel.idempotency_window_secs=16", "kernel.max_idempotency_keys=17", "kernel.max_idempotency_bytes=18")
	want := connection.Limits{
		IdleAfter: 7e9, FrameWithin: 7e9, DrainWithin: 3e9, FrameBytes: 5004,
		UnsentBytes: connection.DefaultUnsentBytes, ChunkBytes: connection.DefaultChunkBytes,
	}
	if got := limits(&cfg.Kernel); !reflect.DeepEqual(got, want) {
		t.Errorf("limits = %+v, want %+v", got, want)
	}
	if s := serviceConfig(cfg, Options{}); s.DefaultQueryTimeout != 9*time.Millisecond {
		t.Errorf("service config = %+v", s)
	}
	s := runtimeConfig(cfg, Options{})
	if s.DequeueLease >= 0 || s.ProcessRetention <= 0 || s.ProcessRetention > time.Millisecond {
		t.Errorf("runtime config = %+v", s)
	}
	if s.MaxEnvelopes != 11 || s.MaxEnvelopeBytes != 12 || s.EnvelopeRetention != 1 ||
		s.MaxSessions != 13 || s.MaxSessionBytes != 14 || s.SessionRetention != 15*time.Second ||
		s.IdempotencyWindow != 16*time.Second || s.MaxIdempotencyKeys != 17 || s.MaxIdempotencyBytes != 18 {
		t.Errorf("runtime config = %+v", s)
	}
}

func TestAnEndedLoopIsDeath(t *testing.T) {
	e := endpoint{listener: new(listener)}
	if err := e.live(); err != nil {
		t.Errorf("alive, but %v", err)
	}
	dead := errors.New("loop ended")
	e.dead.Store(&dead)
	if err := e.live(); err != dead {
		t.Errorf("Live = %v", err)
	}
}

// identity makes a self-signed certificate for 127.0.0.1 that is its own authority, as files and as
// a client's view of it.
func identity(t *testing.T) (certFile, keyFile string, cert tls.Certificate, pool *x509.CertPool) {
	t.Helper()
	priv, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &priv.PublicKey, priv)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(priv)
	if err != nil {
		t.Fatal(err)
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	if err := errors.Join(os.WriteFile(certFile, certPEM, 0o600), os.WriteFile(keyFile, keyPEM, 0o600)); err != nil {
		t.Fatal(err)
	}
	if cert, err = tls.X509KeyPair(certPEM, keyPEM); err != nil {
		t.Fatal(err)
	}
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(certPEM)
	return certFile, keyFile, cert, pool
}

func TestTLSListenerWantsWhatTheSettingsSay(t *testing.T) {
	certFile, keyFile, cert, pool := identity(t)
	sock := "unix://" + filepath.Join(t.TempDir(), "t.sock")
	pair := []string{"kernel.tls_cert_file=" + certFile, "kernel.tls_key_file=" + keyFile, "kernel.listen_addr=127.0.0.1:0," + sock}
	server := start(t, pair...)
	mutual := start(t, append(pair, "kernel.tls_client_ca_file="+certFile, "kernel.listen_addr=127.0.0.1:0")...)

	f := func(i *instance, c *tls.Config, ok bool) {
		t.Helper()
		conn, err := ipcclient.Dial(t.Context(), i.addr("kernel ipc"), ipcclient.WithTLS(c))
		if err == nil {
			defer conn.Close()
			_, err = conn.GetSystemStatus(t.Context(), false)
		}
		if (err == nil) != ok {
			t.Errorf("a call over TLS: %v, want success %v", err, ok)
		}
	}
	anybody := &tls.Config{RootCAs: pool}
	known := &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{cert}}
	f(server, anybody, true)
	f(server, known, true)
	f(mutual, anybody, false)
	f(mutual, known, true)
	f(mutual, &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{cert}, MaxVersion: tls.VersionTLS12}, false)

	if !strings.Contains(server.banner.String(), "kernel ipc listening on "+sock+" (unix)\n") {
		t.Errorf("banner:\n%s", server.banner.String())
	}
	if _, err := server.dial(sock).GetSystemStatus(t.Context(), false); err != nil {
		t.Errorf("the unix socket is not plain: %v", err)
	}
}
