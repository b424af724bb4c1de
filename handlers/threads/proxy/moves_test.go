package proxy

import (
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"trunkline/handlers/threads/rest"
)

// TestMoves has clients ask while partitions change their owners. What they get is an answer of
// their workspace, or the end of their connection.
func TestMoves(t *testing.T) {
	for name, inside := range map[string]bool{"other node": false, "inside": true} {
		t.Run(name, func(t *testing.T) { moveAround(t, inside) })
	}
}

func moveAround(t *testing.T, inside bool) {
	moves := 30
	if testing.Short() {
		moves = 6
	}
	c := setUp(t, setup{partitions: 3, inside: inside})
	stop := make(chan struct{})
	var clients sync.WaitGroup
	for range 3 {
		clients.Go(func() { askWeb(t, c.at.web, stop) })
		clients.Go(func() { askLines(t, c.at.lines, stop) })
	}
	for i := range moves {
		partition := i % 3
		c.lose(partition)
		time.Sleep(time.Duration(rand.IntN(5)) * time.Millisecond)
		c.own(partition)
		time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
	}
	close(stop)
	clients.Wait()
}

// askWeb has a client ask all partitions over HTTP until stop is closed.
func askWeb(t *testing.T, addr string, stop chan struct{}) {
	var p *wire
	answered := 0
	for {
		select {
		case <-stop:
			if answered == 0 {
				t.Error("no request was answered over HTTP")
			}
			return
		default:
		}
		if p == nil {
			p = connect(t, addr)
		}
		switch a := p.do(rand.IntN(3)); {
		case a == "no answer":
			_ = p.Close()
			p = nil
		case strings.HasPrefix(a, "HTTP/1.1 200 OK"):
			answered++
		default:
			t.Error(a)
			return
		}
	}
}

// askLines has one client of lines after the other until stop is closed.
func askLines(t *testing.T, addr string, stop chan struct{}) {
	answered := 0
	for {
		select {
		case <-stop:
			if answered == 0 {
				t.Error("no request was answered over lines")
			}
			return
		default:
		}
		p, workspace := connect(t, addr), three[rand.IntN(3)]
		_, _ = io.WriteString(p, authLine(bearerOf("lead", workspace, "coordinator"))+strings.Repeat(ping, 10))
		_ = p.Conn.(*net.TCPConn).CloseWrite()
		if first, rest, whole := strings.Cut(p.rest(), "\n"); whole {
			if !strings.Contains(first, `"workspace_id":"`+workspace+`"`) || !strings.HasPrefix(strings.Repeat(pinged, 10), rest) {
				t.Errorf("%q %q", first, rest)
			}
			answered++
		}
		_ = p.Close()
	}
}

// TestClientThatDoesNotRead is closed when it takes nothing for a while.
func TestClientThatDoesNotRead(t *testing.T) {
	c := newCluster(t, 3, rest.Limits{WriteTimeout: 50 * time.Millisecond}, nil)
	p := connect(t, c.at.web)
	sent := make(chan bool)
	go func() {
		defer close(sent)
		text := strings.Repeat("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", 100)
		for _, err := io.WriteString(p, text); err == nil; {
			_, err = io.WriteString(p, text)
		}
	}()
	until(t, "the client has connected", func() bool { _, in, _ := c.web.Totals(); return in > 0 })
	until(t, "the client is closed", func() bool { n, _, _ := c.web.Totals(); return n == 0 && c.open(0) == 0 })
	_ = p.Close()
	<-sent
}
