package app

import (
	"fmt"
	"log/slog"
	"os"
	"strings"

	"trunkline/cmd/trunkline/internal/config"
	"trunkline/handlers/ops"
	"trunkline/handlers/threads/method"
	"trunkline/handlers/threads/token"
	"trunkline/handlers/threads/webhook"
)

// threadServer is what the agent threads of all partitions have in common; nil where they are
// closed.
type threadServer struct {
	waking
	verifier *token.Current
	peers    *token.Peers
	pending  *method.Budget
	ready    *ops.Readiness
	dev      []devToken // of --dev
	hooks    *webhook.Client
	logger   *slog.Logger
}

// threadsClosed is why agent threads are closed, for the banner.
const threadsClosed = "threads off: no key source (threads.jwks_url, threads.jwks_file, threads.public_key_file or threads.hs256_secret_file)"

// openThreadServer opens what tokens are verified by, and what wakes agents; nil without a key
// source, or without addresses.
func openThreadServer(cfg *config.Config, ready *ops.Readiness, o Options) (*threadServer, error) {
	c := &cfg.Threads
	if len(c.ListenAddr)+len(c.LinesAddr) == 0 || c.KeySources() == 0 && !cfg.Dev() {
		return nil, nil
	}
	t := &threadServer{peers: token.NewPeers(c.FailedAuthPer10s), pending: method.NewBudget(0), ready: ready, hooks: webhook.NewClient(o.Logger), logger: o.Logger}
	hooks, err := t.prepareWebhooks(c)
	if err != nil {
		return nil, err
	}
	hooks()
	v, err := t.newVerifier(c)
	if err != nil {
		return nil, err
	}
	t.verifier = token.NewCurrent(v)
	if t.waking, err = openWaking(c, o); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

// reasonKeySet is why agent threads are not ready without a key. The other protocols are.
const reasonKeySet = "key_set"

// unready returns why agent threads cannot be served, empty where they can.
func (t *threadServer) unready() string {
	if reasons := t.ready.Reasons(); len(reasons) > 0 {
		return reasons[0]
	}
	if !t.verifier.HasKeys() {
		return reasonKeySet
	}
	return ""
}

// close ends what tokens are verified by. No endpoint is left.
func (t *threadServer) close() {
	if t != nil {
		t.verifier.Close()
		t.hooks.Close()
	}
}

// newVerifier opens the key source; with --dev and without one it makes a key and tokens.
func (t *threadServer) newVerifier(c *config.Threads) (v *token.Verifier, err error) {
	tc := c.Config
	tc.Logger = t.logger
	if c.KeySources() == 0 {
		if t.dev, err = newDevTokens(&tc); err != nil {
			return nil, fmt.Errorf("cannot make a key for agent threads: %w", err)
		}
		defer os.Remove(tc.PublicKeyFile)
	}
	if v, err = token.New(tc); err != nil {
		return nil, fmt.Errorf("cannot open agent threads: %w", err)
	}
	return v, nil
}

// authServers are the issuers that MCP clients are shown (threads §4.10).
func authServers(c *config.Threads) []string {
	if len(c.AuthServers) == 0 && strings.HasPrefix(c.Issuer, "https://") {
		return []string{c.Issuer}
	}
	return c.AuthServers
}

// The surfaces of agent threads as other nodes name them.
const (
	threadsService = "threads"
	linesService   = "threads-lines"
)

// threadListeners returns the listeners of agent threads. legs: their clients come by a router,
// which has the addresses; else these are bound.
func threadListeners(c *config.Threads, o Options, legs bool) (web, lines *listener, err error) {
	most := func(c *config.Config) int { return c.Threads.MaxConnections }
	if legs {
		most = func(c *config.Config) int { return o.cluster.Legs(c.Threads.MaxConnections) }
	}
	web = &listener{label: "threads http", section: "threads", protocol: protocolThreads, service: threadsService,
		access: &c.Access, legs: legs, most: most}
	lines = &listener{label: "threads lines", section: "threads_lines", protocol: protocolThreads,
		service: linesService, of: " of agent threads", access: c.Lines(), legs: legs, most: most}
	if legs {
		return web, lines, nil
	}
	if err = web.bind(o, true); err == nil {
		err = lines.bind(o, false)
	}
	return web, lines, err
}
