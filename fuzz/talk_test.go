package fuzz

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"
)

// talk is one client of TestSockets: it writes random requests in random pieces, answers the
// queries it is given, and checks what holds whatever the other clients do: every unary request is
// answered once, in order but for Query and Unsubscribe, and a stream emits nothing after its end.
type talk struct {
	t    *testing.T
	nc   *net.TCPConn
	rng  *rand.Rand
	say  speaker
	sent sync.Mutex // frames are written whole, in the order in which they are expected to be answered

	mu      sync.Mutex
	ordered []string        // ids of unary requests not answered yet, oldest first
	late    map[string]bool // of Query and Unsubscribe
	streams map[string]bool // asked for and not ended
	over    map[string]bool // streams that have ended
	err     error
}

func newTalk(t *testing.T, addr string, rng *rand.Rand) *talk {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return &talk{t: t, nc: nc.(*net.TCPConn), rng: rng, late: map[string]bool{}, streams: map[string]bool{}, over: map[string]bool{},
		say: speaker{set: defaultSettings()}}
}

func (k *talk) run() {
	defer k.nc.Close()
	reading := make(chan error, 1)
	go func() { reading <- k.read() }()
	ending := k.rng.IntN(4)
	for n := range 20 + k.rng.IntN(100) {
		if k.write(n) != nil {
			break
		}
	}
	switch ending {
	case 0: // abruptly, with a reset
		_ = k.nc.SetLinger(0)
		k.nc.Close()
	case 1: // abruptly, inside a frame
		_, _ = k.nc.Write([]byte{0, 0, 1})
		k.nc.Close()
	case 2: // the last frame of all is cut off
		_, _ = k.nc.Write([]byte{0, 0, 0, 9, 1})
		k.nc.CloseWrite()
	default:
		k.nc.CloseWrite()
	}
	err := <-reading
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.err != nil:
		k.t.Error(k.err)
	case ending >= 2 && err != io.EOF:
		k.t.Errorf("reading ended with %v", err)
	case ending >= 2 && len(k.ordered)+len(k.late) > 0:
		k.t.Errorf("the connection ended without an answer to %v %v", k.ordered, k.late)
	}
}

// write sends request number n in random pieces.
func (k *talk) write(n int) error {
	code := make([]byte, 64)
	for i := range code {
		code[i] = byte(k.rng.Uint32())
	}
	k.say.source = source{code}
	frame := k.renamed(k.say.frame(), fmt.Sprintf("n%d", n))
	k.sent.Lock()
	defer k.sent.Unlock()
	k.expect(frame)
	for len(frame) > 0 {
		piece := len(frame)
		if k.rng.IntN(3) == 0 {
			piece = 1 + k.rng.IntN(len(frame))
		}
		if _, err := k.nc.Write(frame[:piece]); err != nil {
			return err
		}
		frame = frame[piece:]
	}
	return nil
}

// renamed gives a sound request an id of its own; streams share few, so that ids meet.
func (k *talk) renamed(frame []byte, id string) []byte {
	typ, payload, _ := cut(frame, k.say.set.maxFrame)
	v, err := decode(payload)
	o, ok := v.(object)
	if old, has := o.get("id"); err == nil && ok && has && old != nil && old != "" && typ == request {
		return appendFrame(nil, typ, appendValue(nil, append(o, member{"id", id}), nil))
	}
	return frame
}

// expect notes what a frame is going to be answered with.
func (k *talk) expect(frame []byte) {
	typ, payload, _ := cut(frame, k.say.set.maxFrame)
	var asked call
	r := readRequest(payload)
	sound := typ == request && asked.accept(r)
	if typ != request {
		asked.id = ""
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case sound && r.service == "commbus" && (r.method == "Query" || r.method == "Unsubscribe"):
		k.late[asked.id] = true
	case sound && r.service == "commbus" && (r.method == "Subscribe" || r.method == "RegisterCommandHandler" || r.method == "RegisterQueryHandler"):
		k.streams[asked.id] = true
	default:
		k.ordered = append(k.ordered, asked.id)
	}
}

// read checks frames until the connection ends.
func (k *talk) read() error {
	for {
		_ = k.nc.SetReadDeadline(time.Now().Add(30 * time.Second))
		f, err := nextFrame(k.nc)
		if err != nil {
			return err
		}
		k.mu.Lock()
		if err := k.check(f); err != nil && k.err == nil {
			k.err = err
		}
		k.mu.Unlock()
		k.answer(f)
	}
}

func (k *talk) check(f received) error {
	id := f.id()
	unary := f.typ == response || f.typ == errorFrame
	switch {
	case k.over[id]:
		return fmt.Errorf("%v after the end of its stream", f)
	case k.streams[id]:
		if f.typ == streamEnd || f.typ == errorFrame {
			delete(k.streams, id)
			k.over[id] = true
		} else if f.typ != streamChunk {
			return fmt.Errorf("%v on a stream", f)
		}
	case unary && k.late[id]:
		delete(k.late, id)
	case unary && len(k.ordered) > 0 && k.ordered[0] == id:
		k.ordered = k.ordered[1:]
	default:
		return fmt.Errorf("%v is no answer to any of %v", f, k.ordered[:min(len(k.ordered), 3)])
	}
	return nil
}

// answer replies to a query at once.
func (k *talk) answer(f received) {
	v, _ := f.payload.get("body")
	body, _ := v.(object)
	id, ok := body.get("query_id")
	if !ok {
		return
	}
	name := fmt.Sprintf("answer %v", id)
	reply := appendValue(nil, object{{"id", name}, {"service", "commbus"}, {"method", "Reply"}, {"body", object{{"query_id", id}}}}, nil)
	k.sent.Lock()
	defer k.sent.Unlock()
	frame := appendFrame(nil, request, reply)
	k.expect(frame)
	if _, err := k.nc.Write(frame); err != nil { // half-closed already: there will be no answer
		k.mu.Lock()
		k.ordered = k.ordered[:len(k.ordered)-1]
		k.mu.Unlock()
	}
}

// nextFrame reads one frame from a socket.
func nextFrame(r io.Reader) (received, error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return received{}, err
	}
	n := int(binary.BigEndian.Uint32(head[:4]))
	if n < 1 || n > defaultSettings().maxFrame {
		return received{}, fmt.Errorf("a frame of length %d", n)
	}
	payload := make([]byte, n-1)
	if _, err := io.ReadFull(r, payload); err != nil {
		return received{}, err
	}
	return readFrame(head[4], payload)
}
