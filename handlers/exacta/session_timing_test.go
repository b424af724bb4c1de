package exacta

// Question: what does a line cost that is refused, repeated, or handed to the queue of a project
// and answered from there?

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"

	"trunkline/engine/connection"
	"trunkline/engine/projects/codec"
)

func BenchmarkRefused(b *testing.B) {
	p := openOne(b)
	benchmarkAnswered(b, p, ask(4, "Rollback", ""))
}

func BenchmarkRepeated(b *testing.B) {
	p := openOne(b)
	p.send(ask(3, "Pause", `"execution_id":"`+pid+`"`))
	p.want(1, "103:ST-001")
	benchmarkAnswered(b, p, ask(3, "Pause", `"execution_id":"`+pid+`"`))
}

// openOne returns a peer with a project.
func openOne(b *testing.B) *peer {
	s := newServer(b)
	s.cfg.Clock, s.cfg.Seed = codec.Clock{}, "" // as it is outside of tests, but for the id of the project
	p := newPeer(b, s, 1)
	p.send(ask(1, "OpenProject", `"path":"`+newRoot(b)+`"`))
	p.want(2, "LogEntry1 101:ok")
	s.scope = codec.NewScope("", "")
	return p
}

func benchmarkAnswered(b *testing.B, p *peer, line string) {
	in, out := []byte(line+"\n"), make([]byte, 0, 1<<12)
	b.ReportAllocs()
	for b.Loop() {
		_, out, _ = p.sess.Feed(in, out[:0], connection.Now())
	}
}

// BenchmarkRefusedByState has 64 connections with 64 requests in flight each, all new, whose
// project refuses them at once.
func BenchmarkRefusedByState(b *testing.B) {
	const conns, depth = 64, 64
	p := openOne(b)
	line := strings.Replace(ask(4, "Pause", `"execution_id":"`+pid+`"`), "00Z", "00:00.000Z", 1) + "\n"
	at := strings.Index(line, "00000000-")
	var sessions [conns]connection.Session
	var lines [conns][]byte
	for i := range sessions {
		sessions[i] = p.sess.(*session).srv.Open(connection.NewPort(uint64(i+2), "test"), TCP, nil)
		lines[i] = []byte(strings.Repeat(line, depth))
	}
	out, n := make([]byte, 0, 1<<16), uint32(0)
	name := [4]byte{}
	b.ReportAllocs()
	for left := 0; b.Loop(); left-- {
		if left > 0 {
			continue
		}
		left = depth
		c := int(n) / depth % conns
		for i := range depth {
			n++
			binary.BigEndian.PutUint32(name[:], n)
			hex.Encode(lines[c][i*len(line)+at:], name[:])
		}
		_, out, _ = sessions[c].Feed(lines[c], out[:0], connection.Now())
	}
	if !bytes.Contains(out, []byte(`"code":"ST-001"`)) {
		b.Fatalf("%s", out)
	}
}

// BenchmarkQueued has 64 requests in flight, each of which is refused with an event.
func BenchmarkQueued(b *testing.B) {
	const depth = 64
	p := openOne(b)
	p.sess.(*session).srv.cfg.Debug = DebugOn
	var in []byte
	for i := range depth {
		in = append(in, ask(i, "ApplyDiffSet", `"diffs":["x"]`)...)
		in = append(in, '\n')
	}
	size, at := len(in)/depth, bytes.Index(in, []byte("-4000-8000"))-8
	n := uint32(0)
	b.ReportAllocs()
	out := make([]byte, 0, 1<<16)
	for left := 0; b.Loop(); left-- {
		if left > 0 {
			continue
		}
		left = depth
		for i := range depth {
			n++
			hex.Encode(in[i*size+at-5:], []byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
		}
		_, out, _ = p.sess.Feed(in, out[:0], connection.Now())
		for lines := bytes.Count(out, lineEnd); lines < 2*depth; {
			<-p.wake
			p.port.Rearm()
			out, _ = p.sess.Pump(out[:0], 1<<20, connection.Instant{})
			lines += bytes.Count(out, lineEnd)
		}
	}
}
