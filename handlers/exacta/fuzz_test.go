package exacta

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"trunkline/engine/connection"
	"trunkline/fuzz/kit/schemacheck"
)

// FuzzSession feeds lines of any bytes over two carriers, as a whole and in pieces: the answers are
// the same, each is one line of JSON, and there is at most one for a line.
func FuzzSession(f *testing.F) {
	f.Add([]byte(ask(1, "OpenProject", `"path":"/missing"`)+"\n"+ask(1, "OpenProject", `"path":"/missing"`)+"\n"), byte(7))
	f.Add([]byte("{\n\n [] \r\n"+ask(2, "Pause", `"execution_id":"`+pid+`"`)+"\n"+subscribeTo(3, "")), byte(1))
	f.Add([]byte(subscribeTo(3, `,"window":-1`)+"\n"+subscribeTo(4, `,"after_stream_seq":null,"mode":"none"`)+"\n{\"type\":\"ack\"}\n"), byte(64))
	f.Add([]byte(ask(1, "Build", `"configuration":"Debug"`)+"\n"+strings.Replace(ask(1, "Build", ""), "1.0", "2.0", 1)+"\n"), byte(200))
	f.Add([]byte("\r\n GET / HTTP/1.1\n"+ask(1, "Build", "")), byte(3))
	f.Add(bytes.Repeat([]byte("{\n"), maxBadLines+1), byte(5))
	schemas, err := schemacheck.Load()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, in []byte, piece byte) {
		if bytes.Contains(in, []byte("OpenProject")) && !bytes.Contains(in, []byte(`"/missing"`)) {
			return // no project of this machine is opened
		}
		in = append(in, '\n')
		carrier := Stdio
		if piece&1 != 0 {
			carrier = TCP
		}
		whole, parts := converse(t, schemas, carrier, in, len(in)), converse(t, schemas, carrier, in, int(piece)/2+1)
		if bytes.Contains(whole, []byte(`"project_root"`)) {
			return // the command was spelled otherwise
		}
		if !bytes.Equal(whole, parts) {
			t.Fatalf("whole:\n%s\nin pieces:\n%s", whole, parts)
		}
		answers := 0
		for line := range bytes.Lines(whole) {
			answers++
			if !json.Valid(line) {
				t.Fatalf("no JSON: %s", line)
			}
		}
		if lines := bytes.Count(in, []byte("\n")); answers > lines {
			t.Fatalf("%d answers of %d lines", answers, lines)
		}
	})
}

// converse returns what a new server answers to in, of which a Feed gets that much more each time.
func converse(t *testing.T, schemas schemacheck.Schemas, carrier Carrier, in []byte, piece int) []byte {
	s := newServer(t)
	p := newValidated(t, s, 1, carrier, schemas)
	for line := range bytes.Lines(in) {
		p.validator.Asked(line)
	}
	var sent []byte
	for at, end := 0, 0; at < len(in); {
		if end < len(in) {
			end = min(end+piece, len(in))
		}
		lent := append([]byte(nil), in[at:end]...)
		used, out, v := p.sess.Feed(lent, nil, connection.Instant{})
		for i := range lent {
			lent[i] = '#'
		}
		sent = append(sent, out...)
		p.look(out)
		at += used
		if v == connection.Blocked {
			p.pump()
		} else if v == connection.Close {
			break
		}
	}
	for l := p.sess.(*session); ; {
		l.mu.Lock()
		idle := l.unanswered == 0 && l.next == len(l.outbox) && !l.opening.Load()
		l.mu.Unlock()
		if idle {
			break
		}
		p.pump()
	}
	return append(sent, p.rest...)
}
