package load

import (
	"bytes"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestHistogram(t *testing.T) {
	var h Histogram
	if h.Quantile(0.5) != 0 {
		t.Error("an empty histogram has a median")
	}
	r := rand.New(rand.NewPCG(1, 2))
	var all []int64
	for range 20000 {
		ns := r.Int64N(1 << (10 + r.IntN(24)))
		all = append(all, ns)
		h.Add(ns, 1)
	}
	slices.Sort(all)
	for _, q := range []float64{0, 0.5, 0.9, 0.99, 0.999, 1} {
		exact := all[min(int(q*float64(len(all))), len(all)-1)]
		got := int64(h.Quantile(q))
		if got < exact || float64(got) > float64(exact)*1.017+1 {
			t.Errorf("quantile %v = %d, exactly %d", q, got, exact)
		}
	}
	var m Histogram
	m.Add(-5, 3)
	m.Merge(&h)
	if m.Total() != h.Total()+3 || m.Quantile(0) != 0 {
		t.Errorf("merged: %d latencies, smallest %v", m.Total(), m.Quantile(0))
	}
	m.Add(1<<62, 1)
	if top := m.Quantile(1); top < time.Hour/4 {
		t.Errorf("a latency above the range reads as %v", top)
	}
}

func TestBucketsAreContiguous(t *testing.T) {
	for i := range buckets - 1 {
		if top := bucketTop(i); bucketOf(top) != i || bucketOf(top+1) != i+1 {
			t.Fatalf("bucket %d ends at %d, which is in bucket %d; the next value is in %d", i, top, bucketOf(top), bucketOf(top+1))
		}
	}
}

func TestAppendRequest(t *testing.T) {
	// The bytes of kernel-ipc §9.2.
	want := []byte("\x00\x00\x00\x39\x01\x84\xa2id\xa2g1\xa7service\xa6kernel\xa6method\xaaGetProcess\xa4body\x81\xa3pid\xa5ghost")
	if got := AppendRequest(nil, "g1", "kernel", "GetProcess", Field{"pid", "ghost"}); !bytes.Equal(got, want) {
		t.Errorf("request\n% x, want\n% x", got, want)
	}
}

// parses returns a check of how large the reply is that some bytes begin with, whether it is whole,
// and the error wanted.
func parses(t *testing.T, parse func(b []byte) (size int, whole bool, err error)) func(in string, size int, whole bool, want string) {
	return func(in string, size int, whole bool, want string) {
		t.Helper()
		n, ok, err := parse([]byte(in))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", in, err, want)
		}
		if err == nil && (ok != whole || ok && n != size) {
			t.Errorf("%q: %d, %v, want %d, %v", in, n, ok, size, whole)
		}
	}
}

func TestParseRESP(t *testing.T) {
	f := parses(t, parseRESP)
	f("+OK\r\n", 5, true, "")
	f("+OK\r", 0, false, "")
	f("$3\r\nabc\r\n+", 9, true, "")
	f("$3\r\nabc\r", 9, false, "")
	f("$0\r\n\r\n", 6, true, "")
	f("$", 0, false, "")
	f("$-1\r\n", 0, false, `length "-1"`)
	f("$\r\n", 0, false, "without length")
	f("$99999999999999999999\r\n", 0, false, "length")
	f("-ERR no\r\n", 0, false, `"-ERR no"`)
	if got := string(AppendCommand(nil, "GET", "k1")); got != "*2\r\n$3\r\nGET\r\n$2\r\nk1\r\n" {
		t.Errorf("command %q", got)
	}
}

func TestParseHTTP(t *testing.T) {
	f := parses(t, parseHTTP)
	const head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n"
	f(head+"{}", len(head)+2, true, "")
	f(head+"{}HTTP", len(head)+2, true, "")
	f(head+"{", 0, false, "")
	f(head[:len(head)-1], 0, false, "")
	f("", 0, false, "")
	f("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 38, true, "")
	f("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}", 40, true, "")
	f("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 2\r\n\r\n{}", 0, false, "503")
	f("HTTP/1.1 200 OK\r\n\r\n", 0, false, "without Content-Length")
	f("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", 0, false, "length")
	if got := string(AppendPost(nil, "/p", []byte("{}"))); !strings.HasPrefix(got, "POST /p HTTP/1.1\r\n") || !strings.HasSuffix(got, "Content-Length: 2\r\n\r\n{}") ||
		!strings.HasSuffix(string(AppendPost(nil, "/p", []byte("{}"), "A: b", "C: d")), "Content-Length: 2\r\nA: b\r\nC: d\r\n\r\n{}") {
		t.Errorf("request %q", got)
	}
}

func TestProcessReadings(t *testing.T) {
	before, err := cpu(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for start := time.Now(); time.Since(start) < 20*time.Millisecond; {
	}
	after, err := cpu(os.Getpid())
	if err != nil || after <= before {
		t.Errorf("CPU time went from %v to %v, %v", before, after, err)
	}
	if m, err := memoryOf(os.Getpid()); err != nil || m.RSS < 1<<20 || m.Peak < m.RSS/2 {
		t.Errorf("memory %+v, %v", m, err)
	}
	if _, err := cpu(1 << 30); err == nil {
		t.Error("a process that is not there has a CPU time")
	}
	if n := kibibytes([]byte("VmHWM:\t 7 kB\nVmRSS:\n"), "VmRSS:"); n != 0 {
		t.Errorf("an empty line reads as %d bytes", n)
	}
}

func TestServer(t *testing.T) {
	script := "echo starting; echo kernel ipc listening on 127.0.0.1:$FAKE_PORT; echo more; exec sleep 60"
	s, err := StartServer(Command{Name: "fake", Path: "/bin/sh", Args: []string{"-c", script}, Env: []string{"FAKE_PORT=1234"}, Listening: kernelListening})
	if err != nil {
		t.Fatal(err)
	}
	if s.Addr != "127.0.0.1:1234" || !s.Alive() {
		t.Errorf("address %q, alive %v", s.Addr, s.Alive())
	}
	// The system adds time up when it takes the processor away.
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		cpu, err := s.CPU()
		if err != nil || cpu <= 0 && time.Now().After(end) {
			t.Fatalf("CPU time %v, %v", cpu, err)
		}
		if cpu > 0 {
			break
		}
	}
	s.Stop()
	s.Stop()
	if s.Alive() {
		t.Error("alive after Stop")
	}
	_, err = StartServer(Command{Name: "fake", Path: "/bin/sh", Args: []string{"-c", "echo cannot bind; exit 1"}, Listening: kernelListening})
	if err == nil || !strings.Contains(err.Error(), "cannot bind") {
		t.Errorf("a server that ends at once: %v, want its output", err)
	}
}

func TestListeningPatterns(t *testing.T) {
	f := func(line, want string) {
		t.Helper()
		if m := kernelListening.FindStringSubmatch(line); m == nil || m[1] != want {
			t.Errorf("%q: %q, want %q", line, m, want)
		}
	}
	f("kernel ipc listening on 127.0.0.1:50051", "127.0.0.1:50051")
	f(`time=x level=INFO msg="kernel ipc listening" addr=127.0.0.1:9 loops=1`, "127.0.0.1:9")
}
