package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/cmd/trunkline/internal/config"
	"trunkline/engine/smallfile"
	"trunkline/handlers/ipc/ipcclient"
)

// envAddr names the server for call, sub, pub and status; it is no setting of a server.
const envAddr = "TRUNKLINE_ADDR"

// callTimeout is the default of --timeout where one request is made: longer than any default of the
// server.
const callTimeout = 10 * time.Second

// peerFlags name the server of a client verb and how to reach it.
type peerFlags struct {
	addr          string
	timeout       time.Duration
	ca, cert, key string

	target string         // the server's address, once it is known
	known  bool           // it is that of the context in force
	cmd    *cobra.Command // whose settings are looked at then
}

func (f *peerFlags) add(cmd *cobra.Command, timeout time.Duration) {
	fs := cmd.Flags()
	fs.StringVar(&f.addr, "addr", "", "server, host:port or unix:///path (default $"+envAddr+", the context, else the first of kernel.listen_addr)")
	fs.DurationVar(&f.timeout, "timeout", timeout, "how long connecting and the answer may take together")
	f.addTrust(fs)
}

// addTrust adds the flags that a load has too: how the server is trusted, and where it is found.
func (f *peerFlags) addTrust(fs *pflag.FlagSet) {
	fs.StringVar(&f.ca, "tls-ca", "", "certificates the server's is checked against, PEM file; switches TLS on")
	fs.StringVar(&f.cert, "tls-cert", "", "certificate to show to the server, PEM file; switches TLS on")
	fs.StringVar(&f.key, "tls-key", "", "its private key, PEM file")
	config.AddSourceFlags(fs)
}

// with connects, runs do within the timeout and disconnects.
func (f *peerFlags) with(cmd *cobra.Command, do func(ctx context.Context, conn *ipcclient.Conn) error) error {
	ctx, cancel := context.WithTimeout(cmd.Context(), f.timeout)
	defer cancel()
	conn, err := f.dial(ctx, cmd)
	if err != nil {
		return err
	}
	defer conn.Close()
	return f.explain(f.ask(ctx, conn, func(ctx context.Context) error { return do(ctx, conn) }))
}

func (f *peerFlags) dial(ctx context.Context, cmd *cobra.Command) (*ipcclient.Conn, error) {
	addr, secure, err := f.where(cmd)
	if err != nil {
		return nil, err
	}
	conn, err := ipcclient.Dial(ctx, addr, secure)
	if err != nil {
		return nil, f.explain(err)
	}
	return conn, nil
}

// where checks the flags and returns the server's address and whether to speak TLS; all its errors
// are about usage.
func (f *peerFlags) where(cmd *cobra.Command) (addr string, secure ipcclient.Option, err error) {
	if err := f.checkTimeout(); err != nil {
		return "", nil, err
	}
	if addr, err = f.server(cmd); err != nil {
		return "", nil, err
	}
	f.target, f.cmd = addr, cmd
	cfg, err := f.tls()
	return addr, ipcclient.WithTLS(cfg), err
}

func (f *peerFlags) checkTimeout() error {
	if f.timeout <= 0 {
		return cli.Errorf(cli.CodeUsage, "cannot use --timeout %s: it must be positive", f.timeout)
	}
	return nil
}

// server returns the address: the flag's, the environment's, the context's, or where a server with
// the same settings would listen.
func (f *peerFlags) server(cmd *cobra.Command) (string, error) {
	addr := f.addr
	if addr == "" {
		r, err := findReach(cmd, fieldAddr)
		if err != nil {
			return "", err
		}
		if addr, f.known = r.Value, r.fromContext(); addr == "" {
			return "", cli.Errorf(cli.CodeUsage, "cannot find a server: %s names none of kernel IPC", r.Origin).WithHint("--addr names it, 'trunkline context add --replace' adds it")
		}
	}
	if err := config.CheckAddr(addr); err != nil {
		return "", cli.Errorf(cli.CodeUsage, "cannot connect to %q: %w", addr, err).
			WithHint("--addr or $" + envAddr + " is an address like 127.0.0.1:50051 or unix:///run/trunkline.sock")
	}
	if chosenLater(addr) {
		return "", cli.Errorf(cli.CodeUsage, "cannot connect to %s: port 0 is chosen when the server starts", addr).
			WithHint("the server prints its real address; name it with --addr or $" + envAddr)
	}
	return addr, nil
}

// chosenLater reports whether an address is only known once the server listens.
func chosenLater(addr string) bool {
	_, port, err := net.SplitHostPort(addr)
	return err == nil && !strings.HasPrefix(addr, "unix://") && strings.Trim(port, "0") == "" && port != ""
}

// tls returns nil when neither a flag nor the context asks for TLS. What a context names is for its
// own address only.
func (f *peerFlags) tls() (*tls.Config, error) {
	if f.ca == "" && f.cert == "" && f.key == "" && f.known {
		c, err := chosenContext()
		if err != nil {
			return nil, err
		}
		f.ca, f.cert, f.key = c.TLSCA, c.TLSCert, c.TLSKey
	}
	if f.ca == "" && f.cert == "" && f.key == "" {
		return nil, nil
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS13}
	if (f.cert == "") != (f.key == "") {
		return nil, cli.Errorf(cli.CodeUsage, "cannot use one of --tls-cert and --tls-key without the other")
	}
	if f.cert != "" {
		pair, err := config.LoadPair(f.cert, f.key)
		if err != nil {
			return nil, cli.Errorf(cli.CodeUsage, "cannot use --tls-cert %s: %w", f.cert, err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	if f.ca != "" {
		pem, err := smallfile.Read(f.ca)
		if err != nil {
			return nil, cli.Errorf(cli.CodeUsage, "cannot use --tls-ca: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, cli.Errorf(cli.CodeUsage, "cannot use --tls-ca %s: it holds no certificate", f.ca)
		}
	}
	return cfg, nil
}

// explain gives an error of the connection or the wait its exit code and a hint; answers of the
// server stay as they are.
func (f *peerFlags) explain(err error) error {
	var lost *ipcclient.ConnError
	var said *ipcclient.Error
	var other ipcclient.Foreign
	switch {
	case err == nil || errors.As(err, &said):
		return err
	case errors.As(err, &other):
		return cli.Errorf(cli.CodeUsage, "%s speaks %s, not kernel IPC", f.target, string(other)).WithHint(f.foreignHint(other))
	case errors.Is(err, errSilent):
		return &cli.Error{Code: cli.CodeUnavailable, Err: fmt.Errorf("no answer from %s within %s", f.target, f.timeout),
			Hint: "--timeout allows it more time; nothing came, so does kernel IPC listen there? --addr or $" + envAddr + " names another address"}
	case errors.Is(err, context.DeadlineExceeded):
		return &cli.Error{Code: cli.CodeUnavailable, Err: fmt.Errorf("no answer from %s within %s", f.target, f.timeout), Hint: "--timeout allows it more time"}
	case errors.As(err, &lost):
		return &cli.Error{Code: cli.CodeUnavailable, Err: err, Hint: f.lostHint(err)}
	}
	return err
}

func (f *peerFlags) lostHint(err error) string {
	var untrusted *tls.CertificateVerificationError
	switch {
	case errors.As(err, &untrusted):
		return "--tls-ca names the certificates to trust"
	case f.ca == "" && f.cert == "":
		return "is the server running? --addr or $" + envAddr + " names another address, --tls-ca, --tls-cert and --tls-key switch TLS on"
	}
	return "is the server running, and does it speak TLS at this address? --addr or $" + envAddr + " names another one"
}
