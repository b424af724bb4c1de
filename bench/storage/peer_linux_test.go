package storage

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"trunkline/bench/internal/load"
	"trunkline/bench/internal/part"
	"trunkline/codec/frame"
)

func startTestPeer(t *testing.T, mode string) (addr, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "log")
	s, err := (&part.Run{Rig: &load.Rig{}}).Child("peer", childLoop, mode, path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s.Addr, path
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
		addr, path := startTestPeer(t, mode)
		if err := load.SendOnce(addr, load.Kernel, tapesOf(recordUsage, span{0, 10 * conns}, conns, nil), depth); err != nil {
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
	addr, path := startTestPeer(t, "always")
	c, err := load.Dial(addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for n := range 20 {
		if _, _, err := c.Call("kernel", recordUsage, "pid", "p"); err != nil {
			t.Fatal(err)
		}
		if got := fileSize(t, path); got != int64((n+1)*recordBytes) {
			t.Fatalf("%d bytes after reply %d", got, n+1)
		}
	}
}

func TestPeerClosesOnWhatIsNoRequest(t *testing.T) {
	addr, path := startTestPeer(t, "always")
	f := func(request string) {
		t.Helper()
		c, err := load.Dial(addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, _, err := c.Exchange([]byte(request)); err == nil {
			t.Errorf("%q was answered", request)
		}
	}
	f("\x00\x00\x00\x00")
	f("\xff\xff\xff\xff")
	f("\x00\x00\x00\x02\x02\x80")
	f("\x00\x00\x00\x02\x01\x80")
	if n := fileSize(t, path); n != 0 {
		t.Errorf("%d bytes were appended", n)
	}
	if err := load.SendOnce(addr, load.Kernel, tapesOf(recordUsage, span{0, 1}, 1, nil), 1); err != nil {
		t.Errorf("after bad clients: %v", err)
	}
}

func TestTakeRequests(t *testing.T) {
	one := load.NewRequest("kernel", getProcess, "pid", "p")
	all := append(append([]byte(nil), one...), one...)
	for cut := range len(all) + 1 {
		var out []byte
		used, count, ok := takeRequests(all[:cut], &out)
		if !ok || count != cut/len(one) || used != count*len(one) {
			t.Fatalf("of %d bytes: used %d, %d requests, %v", cut, used, count, ok)
		}
		for range count {
			kind, payload, n := frame.Split(out, loopFrame)
			if kind != frame.Response || string(payload) != "\x83\xa2id\xa8r0000001\xa2ok\xc3\xa4body\x80" {
				t.Fatalf("the reply to %d bytes is %q", cut, out)
			}
			out = out[n:]
		}
		if len(out) > 0 {
			t.Fatalf("%q stands behind %d replies", out, count)
		}
	}
}
