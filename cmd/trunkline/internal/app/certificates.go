package app

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"trunkline/cmd/trunkline/internal/config"
)

// certificates are what TLS listeners show and ask for, by section. A reload replaces them: the
// next handshakes use the new ones, and connections that are there keep theirs. The map is written
// while listeners are opened, and only read afterwards.
type certificates map[string]*atomic.Pointer[tls.Config]

// of returns what the listeners of a section use, nil if they speak no TLS.
func (c certificates) of(a *config.Access) (*tls.Config, error) {
	current := c[a.Section]
	if current == nil {
		loaded, err := a.TLS()
		if err != nil || loaded == nil {
			return nil, err
		}
		current = new(atomic.Pointer[tls.Config])
		current.Store(loaded)
		if c != nil {
			c[a.Section] = current
		}
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return current.Load(), nil
	}}, nil
}

// prepare loads the files of all sections that speak TLS. apply has the new ones used; changed are
// the settings whose files have another content. A new certificate that is not valid now is an
// error, one that is in use already is not.
func (c certificates) prepare(cfg *config.Config, now time.Time) (apply func(), changed []string, err error) {
	var errs []error
	next := make(map[string]*tls.Config)
	for _, a := range cfg.Accesses() {
		current := c[a.Section]
		if current == nil {
			continue
		}
		loaded, err := a.TLS()
		if err != nil {
			errs = append(errs, err)
			continue
		}
		keys := differing(a, current.Load(), loaded)
		if len(keys) == 0 {
			continue
		}
		if keys[0] == a.Key("tls_cert_file") {
			errs = append(errs, a.CheckTimes(loaded, now))
		}
		next[a.Section], changed = loaded, append(changed, keys...)
	}
	return func() {
		for section, loaded := range next {
			c[section].Store(loaded)
		}
	}, changed, errors.Join(errs...)
}

// differing returns the settings of a by which two loads of its files differ.
func differing(a *config.Access, old, loaded *tls.Config) (keys []string) {
	if !slices.EqualFunc(old.Certificates[0].Certificate, loaded.Certificates[0].Certificate, bytes.Equal) {
		keys = append(keys, a.Key("tls_cert_file"))
	}
	if old.ClientAuth != loaded.ClientAuth || !samePool(old.ClientCAs, loaded.ClientCAs) {
		keys = append(keys, a.Key("tls_client_ca_file"))
	}
	return keys
}

func samePool(a, b *x509.CertPool) bool {
	return a == nil && b == nil || a != nil && b != nil && a.Equal(b)
}
