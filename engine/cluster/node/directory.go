package node

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// identityFile is the file of a directory that names its owner, and that is locked while a process
// uses it.
const identityFile = "trunkline-cluster.json"

// identityFormat is the version of that file.
const identityFormat = 1

// maxIdentity bounds what is read of it, in bytes.
const maxIdentity = 64 << 10

// identity is what a directory is for.
type identity struct {
	Format     int    `json:"format"`
	Cluster    string `json:"cluster"`
	Node       string `json:"node"`
	Partitions int    `json:"partitions"`
	// Nodes are the ids of Config.Routes; empty in a directory of a former version.
	Nodes string `json:"nodes,omitempty"`
}

// identity returns that of the node.
func (cfg *Config) identity() identity {
	return identity{identityFormat, cfg.Cluster, cfg.Node, cfg.Partitions, cfg.nodes()}
}

// takeDirectory makes dir or checks that it is one of want, and locks it until the file is closed.
func takeDirectory(dir string, want identity) (_ *os.File, err error) {
	if err = os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := lockFile(filepath.Join(dir, identityFile))
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
		}
	}()
	has, err := readIdentity(f)
	switch {
	case err == nil && has.Nodes == "" && want.Nodes != "":
		if err = has.check(want); err == nil {
			err = replaceIdentity(&f, dir, want)
		}
		return f, err
	case err == nil:
		return f, has.check(want)
	}
	if _, used := os.Stat(filepath.Join(dir, storeDir)); !errors.Is(used, os.ErrNotExist) {
		return nil, fmt.Errorf("cannot read %s of a directory with files of a server: %w", identityFile, err)
	}
	return f, makeIdentity(f, dir, want)
}

// errTaken means that there is another server of a directory.
var errTaken = errors.New("another process uses it")

// lockFile opens a file, or makes it, and locks it until it is closed.
func lockFile(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		err = errTaken
	case err != nil:
		err = fmt.Errorf("cannot lock %s: %w", name, err)
	default:
		opened, openErr := f.Stat()
		named, nameErr := os.Stat(name)
		if err = errors.Join(openErr, nameErr); err == nil && !os.SameFile(opened, named) {
			err = errTaken // which has replaced it
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// replaceIdentity puts a file with want in the place of f, whole or not at all.
func replaceIdentity(f **os.File, dir string, want identity) error {
	next, err := lockFile((*f).Name() + ".new")
	if err != nil {
		return err
	}
	if err = makeIdentity(next, dir, want); err == nil {
		err = os.Rename(next.Name(), (*f).Name())
	}
	if err != nil {
		return errors.Join(err, next.Close())
	}
	_ = (*f).Close()
	*f = next
	return syncDirectory(dir)
}

// makeIdentity writes want to a directory in which no server has been started yet.
func makeIdentity(f *os.File, dir string, want identity) error {
	text, err := json.Marshal(want)
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = f.WriteAt(append(text, '\n'), 0)
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = syncDirectory(dir)
	}
	return err
}

func syncDirectory(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func readIdentity(f *os.File) (has identity, err error) {
	text, err := io.ReadAll(io.LimitReader(f, maxIdentity))
	if err == nil {
		err = json.Unmarshal(text, &has)
	}
	return has, err
}

// check compares what a directory is for with what it is to be used for.
func (has identity) check(want identity) error {
	switch {
	case has.Format != want.Format:
		return fmt.Errorf("its %s has format %d, this program reads %d", identityFile, has.Format, want.Format)
	case has.Cluster != want.Cluster:
		return fmt.Errorf("it belongs to cluster %q, not to %q", has.Cluster, want.Cluster)
	case has.Node != want.Node:
		return fmt.Errorf("it belongs to node %q, not to %q", has.Node, want.Node)
	case has.Partitions != want.Partitions:
		return fmt.Errorf("it was made with %d partitions, not %d; their number cannot change", has.Partitions, want.Partitions)
	case has.Nodes != "" && has.Nodes != want.Nodes:
		return fmt.Errorf("it was made with the nodes %s, not %s; cluster.routes cannot change: nodes are not added to a cluster, and not taken away", has.Nodes, want.Nodes)
	}
	return nil
}

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
