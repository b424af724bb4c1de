package doctor

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"trunkline/cmd/trunkline/internal/config"
	"trunkline/engine/smallfile"
)

// certificateSoon is how long before its end a certificate is worth a warning.
const certificateSoon = 21 * 24 * time.Hour

// secured is a section with a certificate, and all the addresses that show it.
type secured struct {
	*config.Access
	addrs []string
}

// sections returns those with a certificate.
func (s *subject) sections() (list []secured) {
	c := s.cfg
	add := func(access ...*config.Access) {
		if access[0].TLSCertFile == "" {
			return
		}
		one := secured{Access: access[0]}
		for _, a := range access {
			one.addrs = append(one.addrs, a.ListenAddr...)
		}
		list = append(list, one)
	}
	add(&c.Kernel.Access)
	add(&c.HTTP.Access)
	add(&c.Toolhost.Access)
	add(&c.Threads.Access, c.Threads.Lines())
	add(&c.Exacta.Access, c.Exacta.WS())
	if c.Cluster.On() {
		add(c.Cluster.Access())
	}
	return list
}

// eachTLS makes a check of a look at each section with a certificate. now is the time of the look.
func eachTLS(look func(a secured, now time.Time) []Finding) func(context.Context, *subject) []Finding {
	return func(_ context.Context, s *subject) []Finding {
		var found []Finding
		sections := s.sections()
		for _, a := range sections {
			found = append(found, look(a, time.Now())...)
		}
		if len(sections) == 0 {
			found = append(found, skip("", "no section has a certificate"))
		}
		return found
	}
}

// leaf returns the certificate of a section.
func (a secured) leaf() (*x509.Certificate, error) {
	text, err := smallfile.Read(a.TLSCertFile)
	if err != nil {
		return nil, err
	}
	certs, err := certificates(text)
	if err != nil {
		return nil, err
	}
	return certs[0], nil
}

// certificates returns those of a PEM file. It is an error if there is none.
func certificates(text []byte) (certs []*x509.Certificate, err error) {
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		certs = append(certs, cert)
	}
	if len(certs) == 0 {
		return nil, errors.New("it holds no certificate")
	}
	return certs, nil
}

// tlsKey looks whether the key is that of the certificate.
func tlsKey(a secured, _ time.Time) []Finding {
	key := a.Key("tls_cert_file")
	if _, err := a.KeyPair(); err != nil {
		return []Finding{fail(key, "name a certificate and its own private key, both PEM, that this user can read", "%v", err)}
	}
	return []Finding{ok(key, "%s is the key of %s", a.TLSKeyFile, a.TLSCertFile)}
}

func tlsExpiry(a secured, now time.Time) []Finding {
	key := a.Key("tls_cert_file")
	cert, err := a.leaf()
	if err != nil {
		return []Finding{skip(key, "%s: %v", a.TLSCertFile, err)}
	}
	return []Finding{rateTimes(key, a.TLSCertFile, cert, now)}
}

// rateTimes looks whether a certificate is valid at now, and for how long.
func rateTimes(key, file string, cert *x509.Certificate, now time.Time) Finding {
	const renew = "renew the certificate; 'trunkline reload' or a restart takes it up"
	err, left, until := config.CheckTimes(cert, now), cert.NotAfter.Sub(now), cert.NotAfter.UTC().Format(time.RFC3339)
	switch {
	case err != nil && left < 0:
		return fail(key, renew, "%s: %v", file, err)
	case err != nil:
		return fail(key, "wait, or look at the clock of this machine", "%s: %v", file, err)
	case left < certificateSoon:
		return warn(key, renew, "%s expires at %s, in %d days", file, until, int(left.Hours()/24))
	}
	return ok(key, "%s is valid until %s", file, until)
}

// tlsNames compares the names of a certificate with the addresses that show it.
func tlsNames(a secured, _ time.Time) []Finding {
	cert, err := a.leaf()
	key := a.AddrKey()
	if err != nil {
		return []Finding{skip(key, "%s: %v", a.TLSCertFile, err)}
	}
	names := slices.Clone(cert.DNSNames)
	for _, ip := range cert.IPAddresses {
		names = append(names, ip.String())
	}
	if len(names) == 0 {
		return []Finding{fail(key, "make one with subjectAltName: clients do not look at the common name", "%s has no subject alternative name", a.TLSCertFile)}
	}
	listed := strings.Join(names, ", ")
	var found []Finding
	for _, addr := range a.addrs {
		host, _, err := net.SplitHostPort(addr)
		if err != nil || strings.HasPrefix(addr, "unix://") {
			continue // no name is checked on a socket
		}
		ip := net.ParseIP(host)
		switch {
		case host == "" || ip != nil && ip.IsUnspecified():
			found = append(found, ok(key, "%s is every address of this machine; %s is for %s", addr, a.TLSCertFile, listed))
		case cert.VerifyHostname(host) != nil:
			found = append(found, warn(key, fmt.Sprintf("clients connect by one of these names, or the certificate gets %s as a subject alternative name", host),
				"%s is for %s, not for %s", a.TLSCertFile, listed, host))
		default:
			found = append(found, ok(key, "%s is for %s", a.TLSCertFile, host))
		}
	}
	if found == nil {
		found = append(found, skip(key, "no address is shown the certificate"))
	}
	return found
}

// tlsClients looks at the authorities of the certificates of clients.
func tlsClients(a secured, now time.Time) []Finding {
	key := a.CAKey()
	if a.TLSClientCAFile == "" {
		return []Finding{skip(key, "no certificate is asked of clients")}
	}
	text, err := smallfile.Read(a.TLSClientCAFile)
	var certs []*x509.Certificate
	if err == nil {
		certs, err = certificates(bytes.TrimSpace(text))
	}
	if err != nil {
		return []Finding{fail(key, "name a file with the certificates of authorities, PEM", "%s: %v", a.TLSClientCAFile, err)}
	}
	var found []Finding
	for _, cert := range certs {
		f := rateTimes(key, fmt.Sprintf("%s, authority %q", a.TLSClientCAFile, cert.Subject), cert, now)
		if f.Result == Failed && len(certs) > 1 {
			f.Result = Warning // others are left
		}
		found = append(found, f)
	}
	return found
}
