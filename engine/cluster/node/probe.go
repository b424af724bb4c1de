package node

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// Bounds of asking who answers at an address.
const (
	probeTimeout = 2 * time.Second
	maxGreeting  = 64 << 10 // bytes
)

// greeting is the part of the first line of a server (INFO) that names it.
type greeting struct {
	ID      string `json:"server_id"` // of one start
	Node    string `json:"server_name"`
	Cluster string `json:"cluster"`
}

// Answer is what came from the address of a node.
type Answer struct {
	Route
	// Unreachable is why none came. The node may come later.
	Unreachable error
	// Refused is why this node must not start: who answered is not the node of the list, or is one
	// with the id of this node, maybe this node itself.
	Refused error

	start string // of the server that answers
}

// Probe asks the address of each node who answers there, all at a time, within two seconds.
func Probe(ctx context.Context, cfg Config) ([]Answer, error) {
	if err := cfg.secure(); err != nil {
		return nil, err
	}
	return cfg.ask(ctx, ""), nil
}

// ask is Probe for a node whose server has the id own, "" before it has one.
func (cfg *Config) ask(ctx context.Context, own string) []Answer {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	answers := make([]Answer, len(cfg.Routes))
	var wg sync.WaitGroup
	for i, r := range cfg.Routes {
		wg.Go(func() {
			g, err := greet(ctx, r.Addr, cfg.TLS)
			answers[i] = Answer{Route: r, Unreachable: err, start: g.ID}
			if err == nil {
				answers[i].Refused = cfg.accepts(r, g, own)
			}
		})
	}
	wg.Wait()
	return answers
}

// probe returns why this node must not be one.
func (cfg *Config) probe(ctx context.Context, own string) (err error) {
	for _, a := range cfg.ask(ctx, own) {
		err = errors.Join(err, a.Refused)
	}
	return err
}

// accepts returns why this node cannot be in a cluster in which g answers at the address of r.
func (cfg *Config) accepts(r Route, g greeting, own string) error {
	switch {
	case g.ID == own && own != "":
		return nil
	case g.Cluster != cfg.Cluster:
		return fmt.Errorf("the node at %s is one of cluster %q", r.Addr, g.Cluster)
	case g.Node == cfg.Node:
		return fmt.Errorf("a node %q answers at %s: two nodes with one id would vote twice", g.Node, r.Addr)
	case g.Node != r.Node:
		return fmt.Errorf("the node at %s is %q, not %q as in the list of routes", r.Addr, g.Node, r.Node)
	}
	return nil
}

// greet connects to the address for routes of a server and reads its first line.
func greet(ctx context.Context, addr string, secured *tls.Config) (g greeting, err error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return g, err
	}
	defer conn.Close()
	end, _ := ctx.Deadline()
	if err = conn.SetDeadline(end); err != nil {
		return g, err
	}
	if secured != nil {
		c := secured.Clone()
		if c.ServerName, _, err = net.SplitHostPort(addr); err != nil {
			return g, err
		}
		conn = tls.Client(conn, c)
	}
	return readGreeting(bufio.NewReaderSize(conn, maxGreeting))
}

// readGreeting reads "INFO {…}", of at most the size of in.
func readGreeting(in *bufio.Reader) (g greeting, err error) {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return g, err
	}
	text, ok := bytes.CutPrefix(line, []byte("INFO "))
	if !ok {
		return g, errors.New("no greeting of a server")
	}
	err = json.Unmarshal(text, &g)
	return g, err
}
