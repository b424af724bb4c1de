package doctor

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"path/filepath"
	"testing"
	"time"
)

// certificate writes a self-signed certificate and its key.
func certificate(t *testing.T, from, until time.Time, names []string, ips ...net.IP) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: from, NotAfter: until,
		DNSNames: names, IPAddresses: ips, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	return write(t, filepath.Join(dir, "cert.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))),
		write(t, filepath.Join(dir, "key.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})))
}

var loopback = net.IPv4(127, 0, 0, 1)

// secure runs the checks with a certificate of kernel IPC.
func (r *rig) secure(cert, key string, args ...string) *Report {
	r.t.Helper()
	return r.run(append([]string{"--set", "kernel.tls_cert_file=" + cert, "--set", "kernel.tls_key_file=" + key}, args...)...)
}

const tlsCert = "kernel.tls_cert_file"

func TestCertificates(t *testing.T) {
	r := newRig(t)
	now := time.Now()
	cert, key := certificate(t, now.Add(-time.Hour), now.Add(365*24*time.Hour), nil, loopback)
	got := r.secure(cert, key)
	r.want(got, "tls.key", tlsCert, OK, "is the key of")
	r.want(got, "tls.expiry", tlsCert, OK, "is valid until")
	r.want(got, "tls.names", "kernel.listen_addr", OK, "is for 127.0.0.1")
	r.want(got, "tls.clients", "kernel.tls_client_ca_file", Skipped, "no certificate is asked of clients")
	r.want(r.run(), "tls.expiry", "", Skipped, "no section has a certificate")
	_, other := certificate(t, now, now.Add(time.Hour), nil)
	r.want(r.secure(cert, other), "tls.key", tlsCert, Failed, "private key does not match public key")
	r.want(r.secure(cert, filepath.Join(t.TempDir(), "missing")), "tls.key", tlsCert, Failed, "no such file")
	junk := write(t, filepath.Join(t.TempDir(), "junk"), "junk")
	r.want(r.secure(junk, key), "tls.expiry", tlsCert, Skipped, "it holds no certificate")
	r.want(r.secure(junk, key), "tls.names", "kernel.listen_addr", Skipped, "it holds no certificate")
}

func TestTimesOfCertificates(t *testing.T) {
	r := newRig(t)
	now := time.Now()
	f := func(from, until time.Time, result Result, evidence string) {
		t.Helper()
		cert, key := certificate(t, from, until, nil, loopback)
		r.want(r.secure(cert, key), "tls.expiry", tlsCert, result, evidence)
	}
	f(now.Add(-2*time.Hour), now.Add(-time.Hour), Failed, "expired at")
	f(now.Add(time.Hour), now.Add(2*time.Hour), Failed, "is not valid before")
	f(now.Add(-time.Hour), now.Add(49*time.Hour), Warning, "in 2 days")
	cert := &x509.Certificate{NotBefore: now, NotAfter: now.Add(certificateSoon)}
	if got := rateTimes("", "", cert, now); got.Result != OK {
		t.Errorf("at the bound: %+v", got)
	}
	if got := rateTimes("", "", cert, now.Add(1)); got.Result != Warning {
		t.Errorf("behind the bound: %+v", got)
	}
}

func TestNamesOfCertificates(t *testing.T) {
	r := newRig(t)
	now := time.Now()
	f := func(names []string, ips []net.IP, addr string, result Result, evidence string) {
		t.Helper()
		cert, key := certificate(t, now.Add(-time.Hour), now.Add(1000*time.Hour), names, ips...)
		r.want(r.secure(cert, key, "--listen", addr, "--set", "kernel.insecure_bind=true"), "tls.names", "kernel.listen_addr", result, evidence)
	}
	f([]string{"a.example"}, nil, "127.0.0.1:0", Warning, "is for a.example, not for 127.0.0.1")
	f([]string{"localhost"}, nil, "localhost:0", OK, "is for localhost")
	f([]string{"a.example"}, []net.IP{loopback}, "0.0.0.0:0", OK, "is every address of this machine; ")
	f(nil, nil, "127.0.0.1:0", Failed, "has no subject alternative name")
	f([]string{"a.example"}, nil, "unix:///tmp/trunkline-doctor-test.sock", Skipped, "no address is shown the certificate")
}

func TestAuthoritiesOfClients(t *testing.T) {
	r := newRig(t)
	now := time.Now()
	cert, key := certificate(t, now.Add(-time.Hour), now.Add(1000*time.Hour), nil, loopback)
	old, _ := certificate(t, now.Add(-2*time.Hour), now.Add(-time.Hour), nil)
	f := func(result Result, evidence string, files ...string) {
		t.Helper()
		text := ""
		for _, name := range files {
			text += read(t, name)
		}
		ca := write(t, filepath.Join(t.TempDir(), "ca.pem"), text)
		r.want(r.secure(cert, key, "--set", "kernel.tls_client_ca_file="+ca), "tls.clients", "kernel.tls_client_ca_file", result, evidence)
	}
	f(OK, "authority \"CN=test\" is valid until", cert)
	f(Failed, "expired at", old)
	f(Warning, "expired at", cert, old)
	f(Failed, "it holds no certificate", key)
}
