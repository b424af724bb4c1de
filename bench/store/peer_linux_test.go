package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"trunkline/bench/internal/load"
)

// TestMain lets this test binary be the peer that startPeer starts.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "-peer" {
		main()
		return
	}
	os.Exit(m.Run())
}

func startTestPeer(t *testing.T, mode string) (*bench, *load.Server, string) {
	t.Helper()
	b := &bench{Rig: &load.Rig{Dir: t.TempDir()}}
	s, err := b.startPeer("peer", mode)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return b, s, filepath.Join(b.Dir, "peer-1")
}

func fileSize(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

func TestPeerAppendsEachRequestOnce(t *testing.T) {
	f := func(mode string, conns, depth int) {
		t.Helper()
		_, s, path := startTestPeer(t, mode)
		tapes := tapesOf(recordUsage, span{0, 10 * conns}, conns, nil)
		if err := load.SendOnce(s.Addr, load.Kernel, tapes, depth); err != nil {
			t.Fatal(err)
		}
		want := int64(10 * conns * recordBytes)
		for range 100 { // everysec may have postponed the write
			if fileSize(t, path) == want {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
		t.Errorf("%s, %d×%d: the file has %d bytes, want %d", mode, conns, depth, fileSize(t, path), want)
	}
	f("always", 1, 1)
	f("always", 50, 3)
	f("everysec", 50, 10)
}

func TestPeerWritesBeforeItReplies(t *testing.T) {
	_, s, path := startTestPeer(t, "always")
	c, err := load.Dial(s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for n := range 20 {
		if _, _, err := c.Call("one", "kernel", recordUsage, text("pid", "p")); err != nil {
			t.Fatal(err)
		}
		if got := fileSize(t, path); got != int64((n+1)*recordBytes) {
			t.Fatalf("%d bytes after reply %d", got, n+1)
		}
	}
}

func TestPeerClosesOnWhatIsNoRequest(t *testing.T) {
	_, s, path := startTestPeer(t, "always")
	f := func(frame string) {
		t.Helper()
		c, err := load.Dial(s.Addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, _, err := c.Exchange([]byte(frame)); err == nil {
			t.Errorf("%q was answered", frame)
		}
	}
	f("\x00\x00\x00\x00")
	f("\xff\xff\xff\xff")
	f("\x00\x00\x00\x02\x02\x80")
	f("\x00\x00\x00\x02\x01\x80")
	if n := fileSize(t, path); n != 0 {
		t.Errorf("%d bytes were appended", n)
	}
	if err := load.SendOnce(s.Addr, load.Kernel, tapesOf(recordUsage, span{0, 1}, 1, nil), 1); err != nil {
		t.Errorf("after bad clients: %v", err)
	}
}

func TestTakeRequests(t *testing.T) {
	one := load.AppendRequest(nil, "abc", "kernel", getProcess, text("pid", "p"))
	reply := appendReply(nil, []byte("abc"))
	all := append(append([]byte(nil), one...), one...)
	for cut := range len(all) + 1 {
		var out []byte
		used, count, ok := takeRequests(all[:cut], &out)
		if !ok || count != cut/len(one) || used != count*len(one) || len(out) != count*len(reply) {
			t.Fatalf("of %d bytes: used %d, %d requests, %d bytes of replies, %v", cut, used, count, len(out), ok)
		}
	}
}

func TestRequestID(t *testing.T) {
	f := func(payload, want string) {
		t.Helper()
		got, err := requestID([]byte(payload))
		if string(got) != want || (err == nil) != (want != "") {
			t.Errorf("id of %q = %q, %v, want %q", payload, got, err, want)
		}
	}
	f("\x81\xa2id\xa1x", "x")
	f("\x82\xa1a\x93\x01\x02\x03\xa2id\xa3xyz", "xyz")
	f("\x80", "")
	f("\x81\xa1a\xc0", "")
	f("\x81\xa2id\x01", "")
	f("\x81\xa2id", "")
	f("", "")
	f(strings.Repeat("\x93", 9), "")
}
