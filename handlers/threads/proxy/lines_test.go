package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"trunkline/handlers/internal/httpd"
	"trunkline/handlers/threads/lines"
	"trunkline/handlers/threads/rest"
)

// authLine is the first line of a client.
func authLine(bearer string) string {
	text, _ := json.Marshal(bearer)
	return `{"id":0,"method":"auth","params":{"protocol":"threads/1","token":` + string(text) + "}}\n"
}

// ask sends a text over one connection of lines, ends the sending direction, and returns all that
// comes.
func ask(t testing.TB, addr, text string) string {
	t.Helper()
	p := connect(t, addr)
	defer p.Close()
	_, _ = io.WriteString(p, text)
	_ = p.Conn.(*net.TCPConn).CloseWrite()
	return p.rest()
}

// want reads a line that begins so.
func (p *wire) want(begin string) {
	p.t.Helper()
	if line, err := p.in.ReadString('\n'); err != nil || !strings.HasPrefix(line, begin) {
		p.t.Fatalf("%q (%v), want %q", line, err, begin)
	}
}

// ends checks that the connection has ended.
func (p *wire) ends() {
	p.t.Helper()
	if rest := p.rest(); rest != "" {
		p.t.Errorf("%q before the end", rest)
	}
}

const (
	ping   = `{"id":1,"method":"ping"}` + "\n"
	pinged = `{"id":1,"ok":true,"result":{}}` + "\n"
)

// TestLinesTwin sends the same to one server, and through routers to one and three partitions.
func TestLinesTwin(t *testing.T) {
	one := direct(t, rest.Limits{})
	fill := tokens(three)
	spaces := strings.Repeat(" ", lines.MaxGuestLine-len(ping)+1)
	long := strings.TrimSuffix(ping, "\n") + spaces // a line at the limit
	texts := []string{
		"", "\n\r\n", "x", ping[:10], ping, "x\n", "[]\n", long + "\n", long + "\r\n", long + " \n", strings.Repeat("x", 3*lines.MaxGuestLine) + "\n",
		`{"id":1,"method":"auth"}` + "\n", `{"id":1,"method":"auth","params":{"protocol":"threads/2","token":"x"}}` + "\n", authLine("x") + ping, authLine("a.b.c") + ping,
		authLine("") + ping, `{"id":1,"id":2,"method":"auth","params":{"protocol":"threads/1","token":"$LEAD2"}}` + "\n",
	}
	for _, who := range []string{"$LEAD0", "$LEAD1", "$LEAD2", "$AGENT2", "$FORGED1", "$FORGED2"} {
		auth := authLine(who)
		texts = append(texts, auth, auth+ping, auth+ping[:5], "\n\r\n"+auth+"\n"+ping, strings.Repeat("\n", 3*lines.MaxGuestLine)+auth+ping,
			strings.TrimSuffix(auth, "\n")+"\r\n"+strings.Repeat(ping, 3000), strings.Replace(auth, "threads/1", `threads\/1`, 1)+ping,
			strings.TrimSuffix(auth, "\n")+strings.Repeat(" ", lines.MaxGuestLine-len(fill.Replace(auth))+1)+"\n"+ping,
			strings.TrimSuffix(auth, "\n")+strings.Repeat(" ", lines.MaxGuestLine-len(fill.Replace(auth))+2)+"\n"+ping,
			auth+`{"id":2,"method":"heartbeat_session","params":`+beat+"}\n"+ping, auth+strings.Repeat("x\n", 20)+ping,
			auth+authLine(who)+ping, auth+authLine("$LEAD1")+ping, auth+authLine("$AGENT0")+ping, auth+authLine("x")+ping,
			auth+`{"id":1,"method":"ping","x":"`+strings.Repeat("x", 1<<20)+`"}`+"\n"+ping,
		)
	}
	for _, as := range []setup{{partitions: 1}, {partitions: 3}, {partitions: 3, inside: true}} {
		c := setUp(t, as)
		for _, text := range texts {
			text = fill.Replace(text)
			want := plain(ask(t, one.lines, text))
			if got := plain(ask(t, c.at.lines, text)); got != want {
				t.Errorf("%.300q\nserver %.1000q\nrouter %.1000q", text, want, got)
			}
		}
	}
}

// authed connects in the name of a workspace.
func (c *cluster) authed(workspace string) *wire {
	c.t.Helper()
	p := connect(c.t, c.at.lines)
	_, _ = io.WriteString(p, authLine(bearerOf("lead", workspace, "coordinator")))
	p.want(`{"id":0,"ok":true`)
	return p
}

// TestLinesInPieces sends the first lines byte by byte.
func TestLinesInPieces(t *testing.T) {
	c := newCluster(t, 3, rest.Limits{}, nil)
	p := connect(t, c.at.lines)
	for _, b := range []byte("\r\n" + authLine(bearerOf("lead", three[2], "coordinator")) + ping) {
		if _, err := p.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	p.want(`{"id":0,"ok":true`)
	p.want(pinged)
}

// TestLinesWithoutAnOwner: a client waits for one, and is refused after a while.
func TestLinesWithoutAnOwner(t *testing.T) {
	c := newCluster(t, 3, rest.Limits{}, nil)
	c.lose(1)
	p := connect(t, c.at.lines)
	_, _ = io.WriteString(p, authLine(bearerOf("lead", three[1], "coordinator")))
	c.authed(three[2])
	c.own(1)
	p.want(`{"id":0,"ok":true`)

	c = newCluster(t, 3, rest.Limits{}, func(cfg *Config) { cfg.Hold = 10 * time.Millisecond })
	c.lose(1)
	want := `{"id":null,"ok":false,"error":{"code":"INTERNAL","message":"no node serves the workspace now","request_id":"req_1","retryable":true,"spec_code":"INTERNAL","legacy_code":"INTERNAL"}}` + "\n"
	if got := ask(t, c.at.lines, authLine(bearerOf("lead", three[1], "coordinator"))); got != want {
		t.Errorf("%q", got)
	}
}

// TestLinesLoseTheirOwner: only the clients of that partition notice, behind what they were
// answered.
func TestLinesLoseTheirOwner(t *testing.T) {
	c := newCluster(t, 3, rest.Limits{}, nil)
	var clients []*wire
	for _, workspace := range three {
		p := c.authed(workspace)
		_, _ = io.WriteString(p, strings.Repeat(ping, 100))
		for range 100 {
			p.want(pinged)
		}
		clients = append(clients, p)
	}
	c.lose(1)
	clients[1].ends()
	for _, i := range []int{0, 2} {
		_, _ = io.WriteString(clients[i], ping)
		clients[i].want(pinged)
	}
	c.own(1)
	c.authed(three[1])
}

// TestLinesEndOfLease: an owner that goes on is not listened to once its lease is over.
func TestLinesEndOfLease(t *testing.T) {
	c := newCluster(t, 1, rest.Limits{}, nil)
	p := c.authed("w")
	c.places[0].lose()
	p.ends()
}

// TestLinesTimeout: a client that shows no token, or a part of it, is closed.
func TestLinesTimeout(t *testing.T) {
	c := setUp(t, setup{partitions: 3, lines: func(l *Lines) { l.within = 20 * time.Millisecond }})
	for _, text := range []string{"", "\n\n", authLine("x")[:20]} {
		p := connect(t, c.at.lines)
		_, _ = io.WriteString(p, text)
		p.ends()
	}
	if n := c.dials(); n != 0 {
		t.Errorf("%d owners were dialled", n)
	}
}

// TestLinesConnections has the limit of clients, one more, lists and the end by name.
func TestLinesConnections(t *testing.T) {
	c := newCluster(t, 3, rest.Limits{}, func(cfg *Config) { cfg.MaxConnections = 2 })
	first, second := c.authed(three[0]), c.authed(three[1])
	if got := ask(t, c.at.lines, ping); !strings.Contains(got, `"message":"too many connections"`) {
		t.Errorf("%q", got)
	}
	c.lines.SetMaxConnections(3)
	c.authed(three[2]).Close()
	rows := c.lines.Connections(nil)
	var ids []string
	for _, row := range rows {
		if row.Peer == first.LocalAddr().String() {
			ids = append(ids, row.ID)
		}
	}
	if open, in, out := c.lines.Totals(); len(ids) != 1 || open < 2 || in == 0 || out == 0 {
		t.Fatalf("%d %d %d %+v", open, in, out, rows)
	}
	if c.lines.Drop("threads-99") || !c.lines.Drop(ids[0]) {
		t.Error("another connection was dropped, or this one was not")
	}
	first.ends()
	_, _ = io.WriteString(second, ping)
	second.want(pinged)
}

// TestLinesDrain: what was asked is answered, then the connection ends; one that is slow is closed.
func TestLinesDrain(t *testing.T) {
	c := newCluster(t, 3, rest.Limits{}, nil)
	p, mute := c.authed(three[2]), connect(t, c.at.lines)
	_, _ = io.WriteString(p, strings.Repeat(ping, 1000)+ping[:5])
	p.want(pinged) // all were read, or are on their way: a part of them is not asked yet
	within, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- c.lines.Shutdown(within) }()
	rest := p.rest()
	if n := strings.Count(rest, pinged); n*len(pinged) != len(rest) {
		t.Errorf("%d answers and %d bytes", n, len(rest))
	}
	_ = p.Close()
	mute.ends()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if nc, err := net.Dial("tcp4", c.at.lines); err == nil {
		_ = nc.Close()
		t.Error("a connection was accepted after the end")
	}
}

// TestLinesShutdownIsBounded: a client that waits for an owner is closed with the time.
func TestLinesShutdownIsBounded(t *testing.T) {
	c := newCluster(t, 1, rest.Limits{}, nil)
	c.lose(0)
	p := connect(t, c.at.lines)
	_, _ = io.WriteString(p, authLine("x"))
	for c.lines.host.Gate.Open() == 0 {
		time.Sleep(time.Millisecond)
	}
	at, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.lines.Shutdown(at); err == nil {
		t.Error("no error")
	}
	_ = p.rest()
}

// TestGuestWrites: a client that takes nothing for a while is closed.
func TestGuestWrites(t *testing.T) {
	here, there := net.Pipe()
	defer here.Close()
	g := &guest{
		Conn: (httpd.NewBook("x", "x")).Enter(there, "x"),
		l:    &Lines{router: newRouter(Config{}), sends: 20 * time.Millisecond},
	}
	defer g.Conn.Close()
	taken := make(chan string)
	go func() {
		b := make([]byte, 5)
		_, _ = io.ReadFull(here, b)
		taken <- string(b)
	}()
	n, err := g.Write([]byte("taken and not"))
	if got := <-taken; n != 5 || got != "taken" || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%d bytes, %v, taken %q", n, err, got)
	}
	c := setUp(t, setup{partitions: 1, lines: func(l *Lines) { l.sends = 20 * time.Millisecond }})
	p := c.authed("w")
	go func() {
		for _, err := io.WriteString(p, strings.Repeat(ping, 1000)); err == nil; {
			_, err = io.WriteString(p, strings.Repeat(ping, 1000))
		}
	}()
	for c.lines.host.Gate.Open() > 0 {
		time.Sleep(time.Millisecond)
	}
}
