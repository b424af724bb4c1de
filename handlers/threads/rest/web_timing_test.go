package rest

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"trunkline/handlers/threads/method"
	"trunkline/handlers/threads/token"
)

// These benchmarks answer one question: how much of the speed of net/http is left? The goal is one
// half of a handler that only reads the body and writes an answer.

const (
	benchConnections = 64
	benchBody        = `{"thread_id":"th_01KHP2Q3W4X5Y6Z7A8B9C0D1E2","schema_version":1,"kind":"chat","body":"hello","idempotency_key":"k-7"}`
	benchResult      = `{"message_id":"msg_01KHP2Q3W4X5Y6Z7A8B9C0D1E2","seq":27,"thread_status":"active","created_at":"2026-02-17T12:00:00.000Z"}`
)

func BenchmarkPost(b *testing.B) {
	claims, _ := verify("good")
	known := func(string) (*token.Claims, error) { return claims, nil } // a cache would answer so
	s := start(b, Config{Surface: method.Surface{Dispatcher: fixed{}, Verify: known,
		IDs: func(dst []byte) []byte { return append(dst, "req_01KHP2Q3W4X5Y6Z7A8B9C0D1E2"...) }}})
	benchmark(b, s.addr)
}

func BenchmarkBareHandler(b *testing.B) {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	pool := sync.Pool{New: func() any { return new([4096]byte) }}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		buf := pool.Get().(*[4096]byte)
		defer pool.Put(buf)
		for {
			if _, err := r.Body.Read(buf[:]); err != nil {
				break
			}
		}
		w.Header()["Content-Type"] = jsonType
		_, _ = io.WriteString(w, benchResult)
	})}
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(ln) }()
	b.Cleanup(func() { _ = s.Close(); <-done })
	benchmark(b, ln.Addr().String())
}

// fixed is a dispatcher that always answers the same.
type fixed struct{ echo }

func (fixed) Call(dst []byte, _ *method.Caller, _ *method.Row, _ []byte) ([]byte, method.Outcome) {
	return append(dst, benchResult...), method.Outcome{}
}

// benchmark sends the same request over many connections, each with one request at a time. The
// client looks at the size of an answer only, so that most of the time is that of the server.
func benchmark(b *testing.B, addr string) {
	request := []byte(strings.ReplaceAll(post("/v1/post_message", "", benchBody), "\n", "\r\n"))
	clients := make(chan net.Conn, benchConnections)
	size := 0
	for range benchConnections {
		c, err := net.Dial("tcp4", addr)
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		size = firstAnswer(b, c, request)
		clients <- c
	}
	b.SetParallelism(benchConnections)
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		var c net.Conn
		select {
		case c = <-clients:
		default: // more goroutines than connections
			return
		}
		answer := make([]byte, size)
		for pb.Next() {
			if _, err := c.Write(request); err != nil {
				b.Error(err)
				return
			}
			if _, err := io.ReadFull(c, answer); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// firstAnswer sends a request, and returns the size of its answer.
func firstAnswer(b *testing.B, c net.Conn, request []byte) (size int) {
	if _, err := c.Write(request); err != nil {
		b.Fatal(err)
	}
	count := &counter{r: &oneByte{c}}
	r, err := http.ReadResponse(bufio.NewReaderSize(count, 16), nil)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, r.Body); err != nil || r.StatusCode != http.StatusOK {
		b.Fatal(r.Status, err)
	}
	return count.n
}

// counter counts the bytes that are read.
type counter struct {
	r io.Reader
	n int
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += n
	return n, err
}
