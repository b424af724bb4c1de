package node

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"time"
)

// secure sets TLS from Secret, where there is one.
func (cfg *Config) secure() (err error) {
	if cfg.Secret != "" {
		cfg.TLS, err = SecretTLS(cfg.Secret, cfg.Routes)
	}
	return err
}

// SecretTLS returns both sides of TLS between nodes that know a secret. Its key is derived from the
// secret, so that all nodes have the same one, and each accepts certificates of that key alone. The
// library's own password would be sent to whatever answers at the address of a node, and would let
// that in.
func SecretTLS(secret string, routes []Route) (*tls.Config, error) {
	seed, err := hkdf.Key(sha256.New, []byte(secret), nil, "trunkline cluster route", ed25519.SeedSize)
	if err != nil {
		return nil, err
	}
	key := ed25519.NewKeyFromSeed(seed)
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "trunkline node"},
		NotBefore: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, r := range routes {
		host, _, err := net.SplitHostPort(r.Addr)
		if err != nil {
			return nil, fmt.Errorf("cannot use route %q: %w", r.Addr, err)
		}
		if ip := net.ParseIP(host); ip != nil {
			form.IPAddresses = append(form.IPAddresses, ip)
		} else {
			form.DNSNames = append(form.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	if err != nil {
		return nil, err
	}
	own, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AddCert(own)
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key, Leaf: own}},
		RootCAs: pool, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
	}, nil
}
