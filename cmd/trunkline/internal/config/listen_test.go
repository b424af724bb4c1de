package config

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestListenersFollowTheRules(t *testing.T) {
	plain := Access{Section: "kernel"}
	server := Access{Section: "kernel", TLSCertFile: "c", TLSKeyFile: "k"}
	mutual := Access{Section: "kernel", TLSCertFile: "c", TLSKeyFile: "k", TLSClientCAFile: "a"}
	insecure := func(a Access) Access { a.InsecureBind = true; return a }
	// want is the kind, "open " before it when every client may come, or part of the refusal.
	f := func(a Access, addr, want string) {
		t.Helper()
		a.ListenAddr = []string{addr}
		ls, err := a.Listeners()
		if err != nil {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", addr, err, want)
			}
			return
		}
		got := ls[0].Kind()
		if ls[0].Open {
			got = "open " + got
		}
		if got != want || ls[0].String() != addr {
			t.Errorf("%s: %s %s, want %s", addr, got, ls[0], want)
		}
	}
	f(plain, "127.0.0.1:0", "tcp")
	f(plain, "127.8.8.8:1", "tcp")
	f(plain, "[::1]:65535", "tcp")
	f(plain, "localhost:1", "tcp")
	f(server, "127.0.0.1:0", "tls")
	f(mutual, "[::1]:0", "tls")
	f(mutual, "unix:///tmp/s", "unix")
	f(plain, "LocalHost:1", "tcp")
	f(plain, "0.0.0.0:1", "certificates: kernel.tls_cert_file, kernel.tls_key_file and kernel.tls_client_ca_file are not set (")
	f(plain, ":1", "needs TLS")
	f(plain, "example.com:1", "needs TLS")
	f(server, "[::]:1", "certificates: kernel.tls_client_ca_file is not set (")
	f(Access{Section: "kernel", TLSClientCAFile: "a"}, "[::]:1", "certificates: kernel.tls_cert_file and kernel.tls_key_file are not set (")
	f(mutual, "0.0.0.0:1", "tls")
	f(insecure(plain), "0.0.0.0:1", "open tcp")
	f(insecure(server), "0.0.0.0:1", "open tls")
	f(insecure(mutual), "0.0.0.0:1", "tls")
	f(plain, "127.0.0.1", "want host:port")
	f(plain, "127.0.0.1:65536", "port")
	f(plain, "127.0.0.1:-1", "port")
	f(plain, "127.0.0.1:http", "port")
	f(plain, "127.0.0.1:+0", `port "+0" is not a number`)
	f(plain, "127.0.0.1:-0", "port")
	f(plain, "127.0.0.1:", "port")
	f(plain, "127.0.0.1: 1", "port")
	f(plain, "127.0.0.1:1_0", "port")
	f(plain, "127.0.0.1:0x1", "port")
	f(plain, "unix://rel", "absolute path")
	f(plain, "unix:/x", "port")
}

func TestListenersAreBoundedAndDistinct(t *testing.T) {
	f := func(want string, addrs ...string) {
		t.Helper()
		_, err := (&Access{Section: "kernel", ListenAddr: addrs}).Listeners()
		if (want == "") != (err == nil) || (err != nil && !strings.Contains(err.Error(), want)) {
			t.Errorf("%d addresses: %v, want %q", len(addrs), err, want)
		}
	}
	many := make([]string, maxListeners+1)
	for i := range many {
		many[i] = "127.0.0.1:" + strconv.Itoa(i+1)
	}
	f("", many[:maxListeners]...)
	f("at most 64", many...)
	f("listed twice", "127.0.0.1:1", "127.0.0.1:1")
	f("listed twice", "localhost:1", "LOCALHOST:1")
	f("listed twice", "unix:///s", "unix:///s")
	f("", "unix:///s", "unix:///S")
	f("", "127.0.0.1:0", "127.0.0.1:0")
}

func TestCheckAddr(t *testing.T) {
	f := func(addr, want string) {
		t.Helper()
		err := CheckAddr(addr)
		if (want == "") != (err == nil) || (err != nil && !strings.Contains(err.Error(), want)) {
			t.Errorf("CheckAddr(%q) = %v, want %q", addr, err, want)
		}
	}
	f("127.0.0.1:1", "")
	f("example.com:65535", "")
	f("unix:///s", "")
	f("unix://s", "absolute path")
	f("nonsense", "want host:port")
	f("127.0.0.1:65536", "port")
}

func TestTLSFilesComeInPairs(t *testing.T) {
	f := func(a Access, want string) {
		t.Helper()
		if got := strings.Join(a.checkTLS(), ";"); (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%+v: %q, want %q", a, got, want)
		}
	}
	f(Access{Section: "kernel"}, "")
	f(Access{Section: "kernel", TLSCertFile: "c", TLSKeyFile: "k"}, "")
	f(Access{Section: "kernel", TLSCertFile: "c"}, "kernel.tls_key_file is not set")
	f(Access{Section: "kernel", TLSKeyFile: "k"}, "kernel.tls_cert_file is not set")
	f(Access{Section: "kernel", TLSClientCAFile: "a"}, "kernel.tls_cert_file and kernel.tls_key_file are not set")
}

// writeCert makes a self-signed certificate and its key in dir.
func writeCert(t *testing.T, dir string) (cert, key string) {
	t.Helper()
	priv, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &priv.PublicKey, priv)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(priv)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", keyDER)
}

func TestTLSConfig(t *testing.T) {
	dir := t.TempDir()
	cert, key := writeCert(t, dir)
	junk := filepath.Join(dir, "junk")
	if err := os.WriteFile(junk, []byte("no pem"), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := (&Access{Section: "kernel"}).TLS(); c != nil || err != nil {
		t.Errorf("without files: %v, %v", c, err)
	}
	c, err := (&Access{Section: "kernel", TLSCertFile: cert, TLSKeyFile: key}).TLS()
	if err != nil || c.MinVersion != tls.VersionTLS13 || c.ClientAuth != tls.NoClientCert {
		t.Errorf("server TLS: %+v, %v", c, err)
	}
	c, err = (&Access{Section: "kernel", TLSCertFile: cert, TLSKeyFile: key, TLSClientCAFile: cert}).TLS()
	if err != nil || c.ClientAuth != tls.RequireAndVerifyClientCert || c.ClientCAs == nil {
		t.Errorf("mutual TLS: %+v, %v", c, err)
	}
	f := func(a Access, want string) {
		t.Helper()
		if _, err := a.TLS(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", a, err, want)
		}
	}
	f(Access{Section: "kernel", TLSCertFile: "nope", TLSKeyFile: key}, "kernel.tls_cert_file nope")
	f(Access{Section: "kernel", TLSCertFile: cert, TLSKeyFile: junk}, "kernel.tls_key_file")
	f(Access{Section: "kernel", TLSCertFile: cert, TLSKeyFile: key, TLSClientCAFile: "nope"}, "kernel.tls_client_ca_file")
	f(Access{Section: "kernel", TLSCertFile: cert, TLSKeyFile: key, TLSClientCAFile: junk}, "no certificate in it")
}
