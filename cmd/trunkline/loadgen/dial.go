package loadgen

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"trunkline/codec/jsonx"
)

// ErrConnect is the error of a server that is not reached, before anything was measured.
var ErrConnect = errors.New("cannot connect")

// Place splits the address of the target into what a dialer takes.
func (t *Target) Place() (network, addr string, secure bool, err error) {
	if t.Protocol == ProtocolHTTP {
		u, err := url.Parse(t.Addr)
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || u.User != nil || strings.ContainsAny(u.Host, " \r\n") {
			return "", "", false, fmt.Errorf("cannot use address %q: want a URL like http://host:port%s", t.Addr, defaultPath)
		}
		port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
		return "tcp", net.JoinHostPort(u.Hostname(), port), u.Scheme == "https", nil
	}
	if path, ok := strings.CutPrefix(t.Addr, "unix://"); ok {
		if !strings.HasPrefix(path, "/") {
			return "", "", false, fmt.Errorf("cannot use address %q: want an absolute path, unix:///path", t.Addr)
		}
		return "unix", path, false, nil
	}
	if addr, secure = strings.CutPrefix(t.Addr, "tls://"); !secure {
		addr = strings.TrimPrefix(addr, "tcp://")
	}
	if _, port, err := net.SplitHostPort(addr); err != nil || port == "" {
		return "", "", false, fmt.Errorf("cannot use address %q: want host:port, tcp://host:port, tls://host:port or unix:///path", t.Addr)
	}
	return "tcp", addr, secure, nil
}

// dial connects once. The name that the certificate must have is the host of Addr unless TLS names
// another.
func (t *Target) dial(ctx context.Context) (net.Conn, error) {
	if t.Dial != nil {
		return t.Dial(ctx)
	}
	network, addr, secure, err := t.Place()
	switch {
	case err != nil:
		return nil, err
	case t.TLS != nil:
		return (&tls.Dialer{Config: t.TLS}).DialContext(ctx, network, addr)
	case secure:
		return (&tls.Dialer{Config: &tls.Config{MinVersion: tls.VersionTLS12}}).DialContext(ctx, network, addr)
	}
	return new(net.Dialer).DialContext(ctx, network, addr)
}

// greet does what a connection needs before its first request: for all kinds of lines, to
// authenticate (toolhost §6.2, threads §2.4, exacta §2.1). It returns the answer.
func (t *Target) greet(ctx context.Context, nc net.Conn) (answer []byte, err error) {
	greeting := t.greeting()
	if greeting == nil || t.Token == "" {
		return nil, nil
	}
	if deadline, ok := ctx.Deadline(); ok {
		if err := nc.SetDeadline(deadline); err != nil {
			return nil, err
		}
	}
	if _, err := nc.Write(greeting); err != nil {
		return nil, err
	}
	if answer, err = readLine(nc); err != nil {
		return nil, err
	}
	var r reply
	if err := newLines(t.Protocol).read(answer, &r); err != nil {
		return nil, err
	}
	if !r.ok {
		return nil, fmt.Errorf("the server refuses the token: %s", r.code)
	}
	return answer, nc.SetDeadline(time.Time{})
}

// greeting is the line that shows a token; nil where the protocol has none.
func (t *Target) greeting() []byte {
	switch t.Protocol {
	case ProtocolToolhost:
		return append(jsonx.Build(nil).Text("aid", "_auth").Text("token", t.Token).End(), '\n')
	case ProtocolThreads:
		line, _ := encodeCall("auth", jsonx.Build(nil).Text("protocol", "threads/1").Text("token", t.Token).End()) // it is JSON
		return line
	case ProtocolExacta:
		return append(jsonx.Build(nil).Text("type", "auth").Text("token", t.Token).End(), '\n')
	}
	return nil
}

// readLine reads one line and not a byte more: what follows belongs to the first request.
func readLine(nc net.Conn) ([]byte, error) {
	var line []byte
	for one := make([]byte, 1); len(line) < keptBuffer; {
		if _, err := nc.Read(one); err != nil {
			return nil, err
		}
		if one[0] == '\n' {
			return line, nil
		}
		line = append(line, one[0])
	}
	return nil, errTooLarge
}
