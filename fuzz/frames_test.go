package fuzz

import (
	"bytes"
	"encoding/binary"
	"regexp"
	"slices"
	"testing"

	"trunkline/engine/connection"
)

// FuzzFrames: a stream of frames gives the same bytes however it is cut.
func FuzzFrames(f *testing.F) {
	for _, s := range streams() {
		f.Add(s.limit, s.bytes, []byte{1})
		f.Add(s.limit, s.bytes, []byte{0, 3, 0, 200, 1, 7})
	}
	f.Fuzz(func(t *testing.T, limit byte, stream, cuts []byte) {
		set := defaultSettings()
		set.maxFrame = []int{5242880, 4096, 700, 64}[limit%4]
		stream = stream[:min(len(stream), 64<<10)]
		compareCuts(t, set, stream, cuts)
	})
}

func compareCuts(t *testing.T, set settings, stream, cuts []byte) {
	t.Helper()
	whole := newTrack(t, set).run(stream, nil)
	pieces := newTrack(t, set).run(stream, cuts)
	if whole.closed != pieces.closed || !whole.closed && len(whole.carry) != len(pieces.carry) {
		t.Fatalf("whole: closed %v, %d bytes left; cut: closed %v, %d bytes left", whole.closed, len(whole.carry), pieces.closed, len(pieces.carry))
	}
	if a, b := hidden(whole.out), hidden(pieces.out); !bytes.Equal(a, b) {
		t.Fatalf("whole:\n%q\ncut:\n%q", a, b)
	}
}

// names are the texts the server makes up.
var names = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}|ipc-(sub|hnd)-[0-9a-f]{32}|(-|env_|req_|sess_)[0-9a-f]{16}`)

func hidden(out []byte) []byte {
	return names.ReplaceAllFunc(out, func(b []byte) []byte { return bytes.Repeat([]byte("?"), len(b)) })
}

// track is one connection whose owner moves bytes and nothing else; it pumps at the end only, so
// that the order of chunks and replies does not depend on the cuts.
type track struct {
	t      *testing.T
	set    settings
	sess   connection.Session
	carry  []byte
	out    []byte
	closed bool
	fed    int // bytes
	frames int
	bound  int // bytes the frames taken may have appended
}

func newTrack(t *testing.T, set settings) *track {
	now := connection.Instant{Mono: 1e15, Wall: 1700000000000}
	svc := newService(set, func() connection.Instant { return now })
	t.Cleanup(svc.Runtime().Close)
	return &track{t: t, set: set, sess: svc.Open(connection.NewPort(1, "test"))}
}

// run feeds the stream in pieces whose sizes are in cuts, over and over; 0 is a piece of 256 bytes.
func (k *track) run(stream, cuts []byte) *track {
	defer k.sess.Closed()
	for i := 0; len(stream) > 0 && !k.closed; i++ {
		n := len(stream)
		if len(cuts) > 0 {
			n = min(n, (int(cuts[i%len(cuts)])-1)&0xff+1)
		}
		k.carry = append(k.carry, stream[:n]...)
		stream = stream[n:]
		for k.feed() == connection.Yield {
		}
	}
	for more := !k.closed; more; {
		before := len(k.out)
		k.out, more = k.sess.Pump(k.out, k.set.chunkBytes, connection.Instant{})
		if grown := len(k.out) - before; grown > k.set.chunkBytes+k.set.maxFrame+16*k.fed+4096 {
			k.t.Fatalf("one Pump appended %d bytes", grown)
		}
	}
	return k
}

func (k *track) feed() connection.Verdict {
	lent := slices.Clone(k.carry)
	used, out, v := k.sess.Feed(lent, k.out, connection.Instant{})
	for i := range lent {
		lent[i] = 0xCC
	}
	k.account(k.carry[:used])
	k.carry, k.out, k.closed = k.carry[used:], out, v == connection.Close
	k.fed += used
	if len(k.out) > k.fed+k.bound {
		k.t.Fatalf("%d bytes in %d frames have become %d", k.fed, k.frames, len(k.out))
	}
	if v == connection.Yield && used == 0 {
		k.t.Fatal("the session yields without taking anything")
	}
	return v
}

// A reply is made of its request, of at most four identifiers stored before, and of fixed words;
// only a listing is as long as the table, and an envelope as what was sent of it before, and still
// no longer than a frame.
const wordsPerFrame = 4*1024 + 1024

func (k *track) account(taken []byte) {
	for len(taken) > 0 {
		_, payload, size := cut(taken, k.set.maxFrame)
		if size <= 0 {
			k.t.Fatalf("took %x, which is no whole frame", taken[:min(len(taken), 64)])
		}
		r := readRequest(payload)
		if k.bound += wordsPerFrame; r.method == "ListProcesses" || r.service == "engine" || r.service == "orchestration" {
			k.bound += k.set.maxFrame
		}
		k.frames++
		taken = taken[size:]
	}
}

// TestEverySplitPoint cuts one conversation in two at every place.
func TestEverySplitPoint(t *testing.T) {
	set := defaultSettings()
	set.maxFrame = 700
	for _, s := range streams() {
		if s.limit%4 != 2 || len(s.bytes) > 4000 {
			continue
		}
		for at := 1; at < len(s.bytes); at += 1 + len(s.bytes)/200 {
			first := []byte{byte(at)}
			for n := at; n > 256; n -= 256 {
				first = append([]byte{0}, first...)
			}
			compareCuts(t, set, s.bytes, first)
		}
	}
}

// TestLengthBounds: at the limit a frame is taken, beyond it the connection ends as soon as the
// length is there.
func TestLengthBounds(t *testing.T) {
	set := defaultSettings()
	set.maxFrame = 700
	f := func(length uint32, follow int, wantClosed bool, wantOut bool) {
		t.Helper()
		stream := append(binary.BigEndian.AppendUint32(nil, length), bytes.Repeat([]byte{request}, follow)...)
		k := newTrack(t, set).run(stream, nil)
		if k.closed != wantClosed || (len(k.out) > 0) != wantOut {
			t.Errorf("length %d, %d bytes follow: closed %v, %d bytes of answer", length, follow, k.closed, len(k.out))
		}
	}
	f(0, 0, true, false)
	f(0, 100, true, false)
	f(1, 1, false, true)
	f(700, 699, false, false)
	f(700, 700, false, true)
	f(701, 0, true, false)
	f(701, 701, true, false)
	f(1<<31, 0, true, false)
	f(1<<32-1, 3, true, false)
}
