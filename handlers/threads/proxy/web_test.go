package proxy

import (
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"trunkline/engine/cluster/upstream"
	"trunkline/handlers/threads/rest"
)

// do sends a request to a partition and returns what comes.
func (p *wire) do(partition int) string {
	p.t.Helper()
	p.write(post("/v1/heartbeat_session", bearerOf("lead", three[partition], "coordinator"), "", beat))
	a, _ := p.answer("POST")
	return a
}

// served checks that a request to a partition is answered.
func (p *wire) served(partition int) {
	p.t.Helper()
	if a := p.do(partition); !strings.HasPrefix(a, "HTTP/1.1 200 OK") {
		p.t.Fatalf("partition %d: %s", partition, a)
	}
}

// unfinished sends a part of a request to a partition.
func (p *wire) unfinished(partition int) {
	text := post("/v1/heartbeat_session", bearerOf("lead", three[partition], "coordinator"), "", beat)
	p.write(text[:len(text)-5])
}

// until waits until something is so.
func until(t testing.TB, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: it does not happen", what)
		}
	}
}

// open returns how many legs and clients the owner of a partition has over HTTP.
func (c *cluster) open(partition int) int {
	n, _, _ := c.places[partition].web.Totals()
	return int(n)
}

// TestLegs: a client has one connection to each owner, as long as it needs it, in its own name.
func TestLegs(t *testing.T) {
	c := newCluster(t, 3, rest.Limits{}, nil)
	p, other := connect(t, c.at.web), connect(t, c.at.web)
	for range 10 {
		for partition := range 3 {
			p.served(partition)
		}
	}
	other.served(1)
	if n := c.dials(); n != 4 {
		t.Errorf("%d dials", n)
	}
	rows := c.places[2].web.Connections(nil)
	if len(rows) != 1 || rows[0].Peer != p.LocalAddr().String() {
		t.Errorf("%+v, want %v", rows, p.LocalAddr())
	}
	if rows = c.web.Connections(nil); len(rows) != 2 {
		t.Errorf("%+v", rows)
	}
	_ = p.Close()
	until(t, "the legs end with their client", func() bool { return c.open(0)+c.open(2) == 0 && c.open(1) == 1 })
	other.served(1)
	c.web.mu.Lock()
	defer c.web.mu.Unlock()
	if len(c.web.clients) != 1 {
		t.Errorf("%d clients are known", len(c.web.clients))
	}
}

// TestIdleLegs: a leg that no request wants is closed, and another one is dialled.
func TestIdleLegs(t *testing.T) {
	c := newCluster(t, 3, rest.Limits{}, nil)
	c.web.idle = time.Millisecond
	p := connect(t, c.at.web)
	for n := range 3 {
		p.served(1)
		until(t, "the leg is closed", func() bool { return c.open(1) == 0 })
		if got := c.dials(); got != n+1 {
			t.Errorf("%d dials after %d requests", got, n+1)
		}
	}
}

// TestOwnerLostBetweenRequests: a client that waits for nothing does not notice.
func TestOwnerLostBetweenRequests(t *testing.T) {
	c := newCluster(t, 3, rest.Limits{}, nil)
	p := connect(t, c.at.web)
	p.served(1)
	p.served(2)
	c.lose(1)
	p.served(2)
	answered := make(chan bool)
	go func() {
		p.served(1) // waits
		close(answered)
	}()
	c.own(1)
	<-answered
	// An owner that still has its lease, and ends the leg.
	c.web.mu.Lock()
	var l *leg
	for _, known := range c.web.clients {
		l = known.legs[1]
	}
	c.web.mu.Unlock()
	within, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := c.places[1].web.Shutdown(within); err != nil {
		t.Fatal(err)
	}
	until(t, "the leg is watched", func() bool { return len(l.watched) == 1 })
	c.own(1)
	p.served(1)
	// A lease that is over, whose owner goes on.
	dials := c.dials()
	c.places[1].lose()
	c.own(1)
	p.served(1)
	if n := c.dials(); n != dials+1 {
		t.Errorf("%d dials after the end of a lease", n-dials)
	}
}

// TestOwnerLostDuringARequest: its outcome is not known, so that the client gets no answer. Clients
// of other partitions notice nothing.
func TestOwnerLostDuringARequest(t *testing.T) {
	for name, lose := range map[string]func(*cluster){"ends": func(c *cluster) { c.lose(1) }, "lease": func(c *cluster) { c.places[1].lose() }} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 3, rest.Limits{}, nil)
			p, other := connect(t, c.at.web), connect(t, c.at.web)
			p.served(1)
			other.unfinished(2)
			_, before, _ := c.places[1].web.Totals()
			p.unfinished(1)
			until(t, "the owner has the request", func() bool {
				_, in, _ := c.places[1].web.Totals()
				return in > before
			})
			lose(c)
			if rest := p.rest(); rest != "" {
				t.Errorf("%q", rest)
			}
			text := post("/v1/heartbeat_session", bearerOf("lead", three[2], "coordinator"), "", beat)
			other.write(text[len(text)-5:])
			if a, _ := other.answer("POST"); !strings.HasPrefix(a, "HTTP/1.1 200") {
				t.Error(a)
			}
		})
	}
}

// TestNoOwner has the answer when none is found, in both dialects; the connection goes on.
func TestNoOwner(t *testing.T) {
	c := newCluster(t, 3, rest.Limits{}, func(cfg *Config) { cfg.Hold = 10 * time.Millisecond })
	c.lose(1)
	p := connect(t, c.at.web)
	lead := bearerOf("lead", three[1], "coordinator")
	for _, path := range []string{"/v1/get_thread", "/v1/mcp/get_thread", "/mcp"} {
		for _, body := range []string{"{}", strings.Repeat("x", 500_000)} {
			p.write(post(path, lead, "X-Request-Id: mine\n", body))
			a, closes := p.answer("POST")
			for _, part := range []string{"HTTP/1.1 503 Service Unavailable", `Retry-After: ["1"]`, `X-Request-Id: ["mine"]`, `"code":"INTERNAL","message":"no node serves the workspace now","request_id":"mine","retryable":true`} {
				if !strings.Contains(a, part) || closes {
					t.Errorf("%s: %s lacks %s", path, a, part)
				}
			}
		}
	}
	until(t, "partition 0 answers within Hold", func() bool { return strings.HasPrefix(p.do(0), "HTTP/1.1 200 OK") })
	until(t, "and shows its metrics", func() bool {
		p.write("GET /metrics HTTP/1.1\nHost: x\n\n")
		a, _ := p.answer("GET")
		return strings.HasPrefix(a, "HTTP/1.1 200") && strings.Contains(a, "# TYPE")
	})
}

// TestPathsWithoutAToken: the owner of partition 0 answers them, whatever token they have.
func TestPathsWithoutAToken(t *testing.T) {
	c := newCluster(t, 3, rest.Limits{}, func(cfg *Config) { cfg.Hold = time.Millisecond })
	c.lose(0)
	p := connect(t, c.at.web)
	for _, path := range []string{"/health", "/ready", "/metrics", "/nope", "/.well-known/oauth-protected-resource"} {
		p.write("GET " + path + " HTTP/1.1\nHost: x\nAuthorization: Bearer " + bearerOf("lead", three[1], "coordinator") + "\n\n")
		if a, _ := p.answer("GET"); !strings.HasPrefix(a, "HTTP/1.1 503") {
			t.Errorf("%s: %s", path, a)
		}
	}
	until(t, "partition 1 answers within Hold", func() bool { return strings.HasPrefix(p.do(1), "HTTP/1.1 200 OK") })
}

// TestClientGone: the owner sees the end of a request that breaks off.
func TestClientGone(t *testing.T) {
	c := newCluster(t, 3, rest.Limits{}, nil)
	for _, end := range []func(*net.TCPConn) error{(*net.TCPConn).Close, (*net.TCPConn).CloseWrite, func(nc *net.TCPConn) error {
		_ = nc.SetLinger(0)
		return nc.Close()
	}} {
		p := connect(t, c.at.web)
		p.unfinished(1)
		until(t, "the owner has the request", func() bool { return c.open(1) == 1 })
		_ = end(p.Conn.(*net.TCPConn))
		until(t, "the owner has no request", func() bool { return c.open(1) == 0 })
		until(t, "the router has no client", func() bool {
			n, _, _ := c.web.Totals()
			c.web.mu.Lock()
			defer c.web.mu.Unlock()
			return n == 0 && len(c.web.clients) == 0
		})
	}
	// A whole request of a client that has ended its sending direction is answered.
	p := connect(t, c.at.web)
	p.write(post("/v1/heartbeat_session", bearerOf("lead", three[1], "coordinator"), "", beat))
	_ = p.Conn.(*net.TCPConn).CloseWrite()
	if a, _ := p.answer("POST"); !strings.HasPrefix(a, "HTTP/1.1 200") {
		t.Error(a)
	}
	// Half a body: the owner refuses it.
	p = connect(t, c.at.web)
	p.unfinished(1)
	_ = p.Conn.(*net.TCPConn).CloseWrite()
	if a, closes := p.answer("POST"); !strings.Contains(a, "the body cannot be read to its end") || !closes {
		t.Error(a)
	}
}

// TestSilentOwner: a client that is gone does not wait without end for an owner that is silent.
func TestSilentOwner(t *testing.T) {
	ln, ended := listen(t), make(chan error)
	go func() {
		nc, err := ln.Accept()
		if err == nil {
			_, err = io.Copy(io.Discard, nc)
			_ = nc.Close()
		}
		ended <- err
	}()
	w := newWeb(
		Config{
			IDs: fixedID,
			Config: upstream.Config{
				Partitions: 1,
				Dial: func(context.Context, int, string) (net.Conn, context.Context, error) {
					nc, err := net.Dial("tcp4", ln.Addr().String())
					return nc, context.Background(), err
				},
			},
		},
		rest.Limits{},
	)
	w.gone = time.Millisecond
	clients, served := listen(t), make(chan error)
	go func() { served <- w.Serve(clients) }()
	p := connect(t, clients.Addr().String())
	p.write("GET /health HTTP/1.1\nHost: x\n\n")
	_ = p.Conn.(*net.TCPConn).CloseWrite()
	if rest := p.rest(); rest != "" {
		t.Errorf("%q", rest)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	_ = ln.Close()
	if err := w.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// TestManyLastRequests: clients that send many requests at once and end their sending direction get
// all answers, without a wait for what bounds those of clients that are gone.
func TestManyLastRequests(t *testing.T) {
	const requests, rounds = 60, 40
	c := newCluster(t, 3, rest.Limits{}, nil)
	c.web.gone = 2 * patience
	text := strings.Repeat("GET /health HTTP/1.1\nHost: x\n\n", requests)
	var clients sync.WaitGroup
	for range 16 {
		clients.Go(func() {
			for range rounds {
				p := connect(t, c.at.web)
				p.write(text)
				_ = p.Conn.(*net.TCPConn).CloseWrite()
				if n := strings.Count(p.rest(), "HTTP/1.1 200 OK"); n != requests {
					t.Errorf("%d answers to %d requests", n, requests)
					return
				}
				_ = p.Close()
			}
		})
	}
	clients.Wait()
}

// TestSlowClients has the same limits of time with one server and through a router.
func TestSlowClients(t *testing.T) {
	limits := rest.Limits{
		BodyTimeout:   250 * time.Millisecond,
		HeaderTimeout: 250 * time.Millisecond,
		IdleTimeout:   250 * time.Millisecond,
	}
	one, c := direct(t, limits), newCluster(t, 3, limits, nil)
	fill := tokens(three)
	const head = " HTTP/1.1\nHost: x\nAuthorization: Bearer $LEAD2\nContent-Type: application/json\n"
	for _, text := range []string{"POST /v1/get_thread" + head + "Content-Length: 10\n\n{", "POST /v1/mcp/get_thread" + head + "Content-Length: 10\n\n{",
		"POST /v1/get_thread" + head + "Transfer-Encoding: chunked\n\n1\n{\n", "POST /nope" + head + "Content-Length: 10\n\n{", "POST /mcp" + head + "Content-Length: 10\n\n{",
		"POST /v1/get_thread" + head + "Content-Length: 100000\n\n" + strings.Repeat("x", 50_000), "POST /v1/get_thread HTTP/1.1\nHost: x\nConte", ""} {
		var seen [2]string
		for i, addr := range []string{one.web, c.at.web} {
			p := connect(t, addr)
			p.write(fill.Replace(text))
			a, _ := p.answer("POST")
			seen[i] = plain(a + p.rest())
		}
		if seen[0] != seen[1] {
			t.Errorf("%.200q\nserver %s\nrouter %s", text, seen[0], seen[1])
		}
	}
}

// TestWebConnections has the limit of clients and one more, and the end by name.
func TestWebConnections(t *testing.T) {
	c := newCluster(t, 3, rest.Limits{}, func(cfg *Config) { cfg.MaxConnections = 1 })
	first, second := connect(t, c.at.web), connect(t, c.at.web)
	first.served(1)
	second.write("GET /health HTTP/1.1\nHost: x\n\n")
	_ = second.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	if _, err := second.in.Peek(1); err == nil {
		t.Error("a connection over the limit was served")
	}
	_ = second.SetReadDeadline(time.Now().Add(patience))
	c.web.SetMaxConnections(2)
	if a, _ := second.answer("GET"); !strings.HasPrefix(a, "HTTP/1.1 200") {
		t.Error(a)
	}
	if c.web.Drop("threads-http-9") || !c.web.Drop("threads-http-1") {
		t.Error("another connection was dropped, or this one was not")
	}
	if b, err := io.ReadAll(first.in); len(b) > 0 {
		t.Errorf("%q, %v", b, err)
	}
	until(t, "the leg ends with its client", func() bool { return c.open(1) == 0 })
}

// TestWebShutdown finishes what runs, and is bounded.
func TestWebShutdown(t *testing.T) {
	c := newCluster(t, 3, rest.Limits{}, nil)
	p := connect(t, c.at.web)
	p.served(2)
	p.unfinished(1)
	until(t, "the owner has the request", func() bool { return c.open(1) == 1 })
	ended := make(chan error, 1)
	within, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	go func() { ended <- c.web.Shutdown(within) }()
	until(t, "nothing more is accepted", func() bool {
		nc, err := net.Dial("tcp4", c.at.web)
		if err == nil {
			_ = nc.Close()
		}
		return err != nil
	})
	p.write(beat[len(beat)-5:])
	if a, _ := p.answer("POST"); !strings.HasPrefix(a, "HTTP/1.1 200") {
		t.Error(a)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}

	c = newCluster(t, 3, rest.Limits{}, nil)
	p = connect(t, c.at.web)
	p.unfinished(1)
	until(t, "the owner has the request", func() bool { return c.open(1) == 1 })
	at, stop := context.WithCancel(t.Context())
	stop()
	if err := c.web.Shutdown(at); err == nil {
		t.Error("no error")
	}
	_ = p.rest()
}
