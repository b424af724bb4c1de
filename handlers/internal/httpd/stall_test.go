package httpd

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestAConnectionThatWaitsGivesWay: at the bound, one that has waited for its peer for patience is
// closed for the next one, the one that has waited longest first; others are not.
func TestAConnectionThatWaitsGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &piped{come: make(chan net.Conn, 8), closed: make(chan struct{})}
		ln := Limit(p, 3)
		accepted := make(chan *Conn, 8)
		go func() {
			for {
				c, err := ln.Accept()
				if err != nil {
					close(accepted)
					return
				}
				accepted <- c.(*Conn)
			}
		}()
		peer := func() (mine net.Conn) {
			mine, theirs := net.Pipe()
			p.come <- theirs
			return mine
		}
		ended := func(c net.Conn) bool {
			_ = c.SetReadDeadline(time.Now().Add(time.Nanosecond))
			_, err := c.Read(make([]byte, 1))
			return err == io.EOF
		}
		idle, busy, stuck := peer(), peer(), peer()
		_, working, writing := <-accepted, <-accepted, <-accepted
		go func() { _, _ = busy.Write([]byte("GET")) }()
		if _, err := working.Read(make([]byte, 8)); err != nil { // a request that has no answer yet
			t.Fatal(err)
		}
		go func() { _, _ = writing.Write(make([]byte, 3*writePart)) }()
		for range 2 { // it takes something
			if _, err := io.CopyN(io.Discard, stuck, writePart); err != nil {
				t.Fatal(err)
			}
			time.Sleep(patience - 2*lookEvery)
		}
		next := peer() // idle has waited for longer than patience
		c := <-accepted
		if !ended(idle) || ended(busy) || c.reserved {
			t.Error("another connection than the idle one gave way")
		}
		_ = next
		began := time.Now()
		last := peer()
		go func() { _, _ = next.Write([]byte("GET")) }()
		if _, err := c.Read(make([]byte, 8)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		time.Sleep(patience - lookEvery)
		if len(accepted) != 0 {
			t.Errorf("%v after a look, a write without progress has ended", time.Since(began))
		}
		<-accepted
		if ended(busy) || ended(next) {
			t.Error("a connection with a request at hand was closed")
		}
		for _, c := range []net.Conn{busy, stuck, next, last} {
			_ = c.Close()
		}
		_ = ln.Close()
		for range accepted {
		}
	})
}

// TestReservedPlaces: above the bound so many more are accepted, and their time is short.
func TestReservedPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &piped{come: make(chan net.Conn, 8), closed: make(chan struct{})}
		ln := Limit(p, 1)
		ln.spare = 2
		accepted := make(chan *Conn, 8)
		go func() {
			for {
				c, err := ln.Accept()
				if err != nil {
					close(accepted)
					return
				}
				c.(*Conn).Keep()
				accepted <- c.(*Conn)
			}
		}()
		for range 4 {
			_, theirs := net.Pipe()
			p.come <- theirs
		}
		first, second, third := <-accepted, <-accepted, <-accepted
		synctest.Wait()
		if first.reserved || !second.reserved || !third.reserved || len(accepted) != 0 || ln.Open() != 1 {
			t.Fatalf("reserved: %v %v %v, and %d more", first.reserved, second.reserved, third.reserved, len(accepted))
		}
		began := time.Now()
		_ = second.SetReadDeadline(time.Time{})
		if _, err := second.Read(make([]byte, 1)); err == nil || time.Since(began) != shortPatience {
			t.Errorf("a read ended after %v with %v", time.Since(began), err)
		}
		_ = second.Close()
		if fourth := <-accepted; !fourth.reserved {
			t.Error("the place is not reserved any more")
		}
		_ = ln.Close()
		for range accepted {
		}
	})
}

// TestAmbiguous reads heads as a server does, in one piece and in pieces of one byte.
func TestAmbiguous(t *testing.T) {
	for _, tc := range []struct {
		requests string
		want     string // of each request: + is ambiguous
	}{
		{"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}", "-"},
		{"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "-"},
		{"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", "+"},
		{"POST / HTTP/1.1\nHost: x\ncontent-LENGTH:5\nX: y\ntransfer-encoding:chunked\n\n0\n\n", "+"},
		{"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nPOST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}",
			"--"},
		{"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
			"--"},
		{"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
			"-+"},
		// What looks like a field in a body is none, and neither is what only looks like a request.
		{"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 22\r\n\r\n{\ncontent-length: 1\n\r}POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
			"--"},
		{"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 22\r\n\r\n{\ncontent-length: 1\n\r}POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
			"-+"},
		{"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nX: GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
			"+"},
		{"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nX: y\r\n GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
			"+"},
		{"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nGET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
			""},
		{"POST / HTTP/1.0\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}", "-"},
		{"POST / HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n{}", "+"},
		{"POST / HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", "+"},
		{"POST / HTTP/1.1\r\nHost: x\r\nX-Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "-"},
	} {
		for _, size := range []int{1, 7, len(tc.requests)} {
			mine, theirs := net.Pipe()
			go func() {
				defer func() { _ = mine.Close() }()
				for text := tc.requests; text != ""; {
					n := min(size, len(text))
					_, _ = io.WriteString(mine, text[:n])
					text = text[n:]
				}
			}()
			c, got := &Conn{Conn: theirs}, ""
			for in := bufio.NewReader(c); ; {
				r, err := http.ReadRequest(in)
				if err != nil {
					break
				}
				got += map[bool]string{true: "+", false: "-"}[Ambiguous(r.WithContext(with(t.Context(), c)))]
				_, _ = io.Copy(io.Discard, r.Body)
				if strings.HasSuffix(got, "+") {
					break
				}
			}
			_ = theirs.Close()
			if got != tc.want {
				t.Errorf("%q in pieces of %d: %s, want %s", tc.requests, size, got, tc.want)
			}
		}
	}
}
