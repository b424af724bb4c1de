package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
)

// maxListeners bounds the entries of kernel.listen_addr.
const maxListeners = 64

// unixPrefix marks a unix socket path in kernel.listen_addr.
const unixPrefix = "unix://"

// Listener is one entry of kernel.listen_addr, decided by the rules of kernel-ipc D41.
type Listener struct {
	// Network is "tcp" or "unix"; Addr is host:port or the socket's path.
	Network, Addr string
	// TLS: the listener speaks TLS 1.3.
	TLS bool
	// Open: anybody who reaches this address beyond loopback may use it; only kernel.insecure_bind allows that.
	Open bool
}

// String returns the entry as it is written in kernel.listen_addr.
func (l Listener) String() string {
	if l.Network == "unix" {
		return unixPrefix + l.Addr
	}
	return l.Addr
}

// same tells whether an entry is spelled like l: host names are the same in both cases, paths are not.
func (l Listener) same(entry string) bool {
	if l.Network == "unix" {
		return entry == l.String()
	}
	return strings.EqualFold(entry, l.Addr)
}

// Kind returns "tcp", "tls" or "unix".
func (l Listener) Kind() string {
	if l.TLS {
		return "tls"
	}
	return l.Network
}

// Listeners returns the entries of kernel.listen_addr in order, or the reason why one of them must not be opened. The reason
// names the missing setting.
func (k *Kernel) Listeners() ([]Listener, error) {
	if len(k.ListenAddr) > maxListeners {
		return nil, fmt.Errorf("cannot use kernel.listen_addr: %d addresses, at most %d", len(k.ListenAddr), maxListeners)
	}
	out := make([]Listener, 0, len(k.ListenAddr))
	for i, addr := range k.ListenAddr {
		l, err := k.listener(addr)
		if err != nil {
			return nil, fmt.Errorf("cannot use kernel.listen_addr = %q: %w", addr, err)
		}
		if slices.ContainsFunc(k.ListenAddr[:i], l.same) && !strings.HasSuffix(addr, ":0") {
			return nil, fmt.Errorf("cannot use kernel.listen_addr = %q: it is listed twice", addr)
		}
		out = append(out, l)
	}
	return out, nil
}

func (k *Kernel) listener(addr string) (Listener, error) {
	if err := CheckAddr(addr); err != nil {
		return Listener{}, err
	}
	if path, ok := strings.CutPrefix(addr, unixPrefix); ok {
		return Listener{Network: "unix", Addr: path}, nil
	}
	loop, err := isLoopback(addr)
	if err != nil {
		return Listener{}, err
	}
	l := Listener{Network: "tcp", Addr: addr, TLS: k.hasTLS()}
	if loop {
		return l, nil
	}
	missing := k.missingTLS()
	if len(missing) == 0 {
		return l, nil
	}
	if !k.InsecureBind {
		return Listener{}, fmt.Errorf("an address beyond loopback needs TLS with client certificates: %s (kernel.insecure_bind=true opens it to anybody)",
			notSet(missing))
	}
	l.Open = true
	return l, nil
}

func (k *Kernel) hasTLS() bool { return k.TLSCertFile != "" && k.TLSKeyFile != "" }

// missingTLS lists the settings that a listener beyond loopback needs and does not have.
func (k *Kernel) missingTLS() []string {
	var m []string
	for _, s := range []struct{ key, v string }{
		{"kernel.tls_cert_file", k.TLSCertFile},
		{"kernel.tls_key_file", k.TLSKeyFile},
		{"kernel.tls_client_ca_file", k.TLSClientCAFile},
	} {
		if s.v == "" {
			m = append(m, s.key)
		}
	}
	return m
}

// notSet says of one or more settings that they are missing: "A is not set", "A, B and C are not set".
func notSet(keys []string) string {
	last := len(keys) - 1
	if last == 0 {
		return keys[0] + " is not set"
	}
	return strings.Join(keys[:last], ", ") + " and " + keys[last] + " are not set"
}

func (k *Kernel) checkTLS() Problems {
	switch {
	case k.TLSCertFile != "" && k.TLSKeyFile == "":
		return Problems{"cannot use kernel.tls_cert_file: kernel.tls_key_file is not set"}
	case k.TLSCertFile == "" && k.TLSKeyFile != "":
		return Problems{"cannot use kernel.tls_key_file: kernel.tls_cert_file is not set"}
	case k.TLSClientCAFile != "" && !k.hasTLS():
		return Problems{"cannot use kernel.tls_client_ca_file: kernel.tls_cert_file and kernel.tls_key_file are not set"}
	}
	return nil
}

// TLS loads the files and returns the server side of TLS 1.3, client certificates required when tls_client_ca_file is set;
// nil without certificate settings.
func (k *Kernel) TLS() (*tls.Config, error) {
	if !k.hasTLS() {
		return nil, nil
	}
	cert, err := tls.LoadX509KeyPair(k.TLSCertFile, k.TLSKeyFile)
	if err != nil {
		return nil, fmt.Errorf("cannot load kernel.tls_cert_file %s with kernel.tls_key_file %s: %w", k.TLSCertFile, k.TLSKeyFile, err)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert}}
	if k.TLSClientCAFile == "" {
		return c, nil
	}
	pem, err := os.ReadFile(k.TLSClientCAFile)
	if err != nil {
		return nil, fmt.Errorf("cannot read kernel.tls_client_ca_file: %w", err)
	}
	c.ClientCAs = x509.NewCertPool()
	if !c.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("cannot use kernel.tls_client_ca_file %s: no certificate in it", k.TLSClientCAFile)
	}
	c.ClientAuth = tls.RequireAndVerifyClientCert
	return c, nil
}

// CheckAddr checks the form of an address of the kernel endpoint, host:port or unix:///path. Nothing is looked up.
func CheckAddr(addr string) error {
	if path, ok := strings.CutPrefix(addr, unixPrefix); ok {
		if !strings.HasPrefix(path, "/") {
			return errors.New("want an absolute path, unix:///path")
		}
		return nil
	}
	_, err := isLoopback(addr)
	return err
}

// isLoopback checks the form of host:port and tells whether only this machine can reach it. A name other than localhost may
// resolve to anything, so it counts as reachable from outside.
func isLoopback(addr string) (bool, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return false, errors.New("want host:port")
	}
	// ParseUint takes digits only: no sign, and with base 10 no underscore.
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return false, fmt.Errorf("port %q is not a number from 0 to 65535", port)
	}
	if strings.EqualFold(host, "localhost") {
		return true, nil
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback(), nil
}
