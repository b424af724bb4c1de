package config

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"trunkline/engine/smallfile"
)

// maxListeners bounds the entries of one listen_addr.
const maxListeners = 64

// unixPrefix marks a unix socket path in a listen_addr.
const unixPrefix = "unix://"

// Access is where a section listens and who may come in: the settings that the rules of kernel-ipc
// D41 look at. Section is the first part of the settings' names.
type Access struct {
	Section         string
	ListenAddr      []string
	TLSCertFile     string
	TLSKeyFile      string
	TLSClientCAFile string
	InsecureBind    bool

	addr string // the name of its setting, if it is not listen_addr
	ca   string // the name of its setting, if it is not tls_client_ca_file
}

// AddrKey returns the whole name of the setting with the addresses.
func (a *Access) AddrKey() string { return a.Key(cmp.Or(a.addr, "listen_addr")) }

// Key returns the whole name of one of the section's settings, for messages.
func (a *Access) Key(name string) string { return a.Section + delim + name }

// Listener is one entry of a listen_addr, decided by the rules of kernel-ipc D41.
type Listener struct {
	// Network is "tcp" or "unix"; Addr is host:port or the socket's path.
	Network, Addr string
	// TLS: the listener speaks TLS 1.3.
	TLS bool
	// Open: every client that reaches this address beyond loopback may use it; only insecure_bind
	// allows that.
	Open bool
}

// String returns the entry as it is written in a listen_addr.
func (l Listener) String() string {
	if l.Network == "unix" {
		return unixPrefix + l.Addr
	}
	return l.Addr
}

// same reports whether an entry is spelled like l: host names are the same in both cases, paths are
// not.
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

// Listeners returns the entries of listen_addr in order, or the reason why one of them must not be
// opened. The reason names the missing setting.
func (a *Access) Listeners() ([]Listener, error) {
	if len(a.ListenAddr) > maxListeners {
		return nil, fmt.Errorf("cannot use %s: %d addresses, at most %d", a.AddrKey(), len(a.ListenAddr), maxListeners)
	}
	out := make([]Listener, 0, len(a.ListenAddr))
	for i, addr := range a.ListenAddr {
		l, err := a.listener(addr)
		if err != nil {
			return nil, fmt.Errorf("cannot use %s = %q: %w", a.AddrKey(), addr, err)
		}
		if slices.ContainsFunc(a.ListenAddr[:i], l.same) && !strings.HasSuffix(addr, ":0") {
			return nil, fmt.Errorf("cannot use %s = %q: it is listed twice", a.AddrKey(), addr)
		}
		out = append(out, l)
	}
	return out, nil
}

func (a *Access) listener(addr string) (Listener, error) {
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
	l := Listener{Network: "tcp", Addr: addr, TLS: a.hasTLS()}
	if loop {
		return l, nil
	}
	missing := a.missingTLS()
	if len(missing) == 0 {
		return l, nil
	}
	if !a.InsecureBind {
		return Listener{}, fmt.Errorf("an address beyond loopback needs TLS with client certificates: %s (%s=true opens it to anybody)",
			notSet(missing), a.Key("insecure_bind"))
	}
	l.Open = true
	return l, nil
}

func (a *Access) hasTLS() bool { return a.TLSCertFile != "" && a.TLSKeyFile != "" }

// missingTLS lists the settings that a listener beyond loopback needs and does not have.
func (a *Access) missingTLS() []string {
	var m []string
	for _, s := range []struct{ key, v string }{
		{a.Key("tls_cert_file"), a.TLSCertFile},
		{a.Key("tls_key_file"), a.TLSKeyFile},
		{a.CAKey(), a.TLSClientCAFile},
	} {
		if s.v == "" {
			m = append(m, s.key)
		}
	}
	return m
}

// notSet lists settings that are missing: "A is not set", "A, B and C are not set".
func notSet(keys []string) string {
	last := len(keys) - 1
	if last == 0 {
		return keys[0] + " is not set"
	}
	return strings.Join(keys[:last], ", ") + " and " + keys[last] + " are not set"
}

// check returns everything that is wrong with the section's addresses and files, as far as names
// show it.
func (a *Access) check() problems {
	p := a.checkTLS()
	if _, err := a.Listeners(); err != nil {
		p = append(p, err.Error())
	}
	return p
}

func (a *Access) checkTLS() problems {
	cert, key := a.Key("tls_cert_file"), a.Key("tls_key_file")
	switch {
	case a.TLSCertFile != "" && a.TLSKeyFile == "":
		return problems{"cannot use " + cert + ": " + notSet([]string{key})}
	case a.TLSCertFile == "" && a.TLSKeyFile != "":
		return problems{"cannot use " + key + ": " + notSet([]string{cert})}
	case a.TLSClientCAFile != "" && !a.hasTLS():
		return problems{"cannot use " + a.CAKey() + ": " + notSet([]string{cert, key})}
	}
	return nil
}

// KeyPair loads the server certificate and its key.
func (a *Access) KeyPair() (tls.Certificate, error) {
	cert, err := LoadPair(a.TLSCertFile, a.TLSKeyFile)
	if err != nil {
		return cert, fmt.Errorf("cannot load %s %s with %s %s: %w", a.Key("tls_cert_file"), a.TLSCertFile, a.Key("tls_key_file"), a.TLSKeyFile, err)
	}
	return cert, nil
}

// TLS loads the files and returns the server side of TLS 1.3, client certificates required when
// tls_client_ca_file is set; nil without certificate settings.
func (a *Access) TLS() (*tls.Config, error) {
	if !a.hasTLS() {
		return nil, nil
	}
	cert, err := a.KeyPair()
	if err != nil {
		return nil, err
	}
	c := &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert}}
	if a.TLSClientCAFile == "" {
		return c, nil
	}
	if c.ClientCAs, err = a.authorities(); err != nil {
		return nil, err
	}
	c.ClientAuth = tls.RequireAndVerifyClientCert
	return c, nil
}

// LoadPair is tls.LoadX509KeyPair for small regular files.
func LoadPair(certFile, keyFile string) (tls.Certificate, error) {
	cert, err := smallfile.Read(certFile)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := smallfile.Read(keyFile)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(cert, key)
}

// CAKey returns the whole name of the setting with the authorities.
func (a *Access) CAKey() string { return a.Key(cmp.Or(a.ca, "tls_client_ca_file")) }

// authorities reads tls_client_ca_file.
func (a *Access) authorities() (*x509.CertPool, error) {
	pem, err := smallfile.Read(a.TLSClientCAFile)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", a.CAKey(), err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("cannot use %s %s: no certificate in it", a.CAKey(), a.TLSClientCAFile)
	}
	return pool, nil
}

// CheckTimes returns why the server certificate of a loaded configuration is not valid at now, nil
// if it is.
func (a *Access) CheckTimes(c *tls.Config, now time.Time) error {
	leaf, err := x509.ParseCertificate(c.Certificates[0].Certificate[0])
	if err == nil {
		err = CheckTimes(leaf, now)
	}
	if err != nil {
		return fmt.Errorf("cannot use %s %s: %w", a.Key("tls_cert_file"), a.TLSCertFile, err)
	}
	return nil
}

// CheckTimes returns why a certificate is not valid at now, nil if it is.
func CheckTimes(cert *x509.Certificate, now time.Time) error {
	switch {
	case now.After(cert.NotAfter):
		return fmt.Errorf("the certificate expired at %s", cert.NotAfter.UTC().Format(time.RFC3339))
	case now.Before(cert.NotBefore):
		return fmt.Errorf("the certificate is not valid before %s", cert.NotBefore.UTC().Format(time.RFC3339))
	}
	return nil
}

// CheckAddr checks the form of an entry of a listen_addr, host:port or unix:///path. Nothing is
// looked up.
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

// isLoopback checks the form of host:port and reports whether only this machine can reach it. A
// name other than localhost may resolve to anything, so it counts as reachable from outside.
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
