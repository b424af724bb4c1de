package web

import (
	"bytes"
	"encoding/binary"
	"testing"
	"unicode/utf8"

	"trunkline/engine/projects/codec"
	"trunkline/handlers/exacta"
)

// FuzzText: however a message is cut, it is one line that means the same to the scanner, and it is
// refused exactly if it is not UTF-8.
func FuzzText(f *testing.F) {
	f.Add([]byte("{\n\"a\": \"世界\"}\n"), []byte{1})
	f.Add([]byte("{\"a\":\"x\ny\"}"), []byte{3, 1})
	f.Add([]byte(" \n\r\n"), []byte{2})
	f.Add([]byte("\xf0\x9f\x98\x80\xf0\x9f"), []byte{1})
	f.Add([]byte("\xed\xa0\x80"), []byte{2})
	f.Add([]byte{}, []byte{})
	f.Fuzz(func(t *testing.T, message, cuts []byte) {
		var x text
		var line []byte
		valid := true
		for i, rest := 0, message; len(rest) > 0 && valid; i++ {
			n := len(rest)
			if len(cuts) > 0 {
				n = min(n, 1+int(cuts[i%len(cuts)])%8)
			}
			piece := bytes.Clone(rest[:n])
			valid = x.take(piece)
			line, rest = append(line, piece...), rest[n:]
		}
		end := ""
		if valid {
			end, valid = x.end()
		}
		if valid != utf8.Valid(message) {
			t.Fatalf("%q in pieces of %v: UTF-8 %v", message, cuts, valid)
		}
		if !valid {
			return
		}
		if line = append(line, end...); bytes.Count(line, []byte("\n")) != 1 || line[len(line)-1] != '\n' {
			t.Fatalf("%q is no line", line)
		}
		line = bytes.TrimSuffix(line[:len(line)-1], []byte("\r"))
		if len(bytes.Trim(line, " \t")) == 0 {
			t.Fatalf("%q would be ignored", message)
		}
		var s codec.Scanner
		var asLine, asMessage codec.Message
		got, want := s.Scan(line, &asLine), new(codec.Scanner).Scan(message, &asMessage)
		if got.Code != want.Code || got.Detail != want.Detail || asLine.Type != asMessage.Type || asLine.Command != asMessage.Command || asLine.Key != asMessage.Key {
			t.Fatalf("%q is %+v, and %q %+v", message, want, line, got)
		}
	})
}

// FuzzLines: lines cut anywhere become messages with the same text.
func FuzzLines(f *testing.F) {
	f.Add([]byte("{}\n\n{\"a\":1}\nx"), []byte{1, 3})
	f.Add(bytes.Repeat([]byte("x"), 300), []byte{255})
	f.Fuzz(func(t *testing.T, lines, cuts []byte) {
		var frames []byte
		open := false
		for i, rest := 0, lines; len(rest) > 0; i++ {
			n := len(rest)
			if len(cuts) > 0 {
				n = min(n, (1+int(cuts[i%len(cuts)]))*(i+1))
			}
			frames, open = appendLines(frames, rest[:n], open)
			rest = rest[n:]
		}
		var got []byte
		within := false
		for len(frames) > 0 {
			first, n, head := frames[0], int(frames[1]), 2
			switch n {
			case 126:
				n, head = int(binary.BigEndian.Uint16(frames[2:])), 4
			case 127:
				n, head = int(binary.BigEndian.Uint64(frames[2:])), 10
			}
			if want := map[bool]byte{false: opText, true: opContinuation}[within]; first&^fin != want {
				t.Fatalf("frame %x, want %x", first, want)
			}
			got = append(got, frames[head:head+n]...)
			if within = first&fin == 0; !within {
				got = append(got, '\n')
			}
			frames = frames[head+n:]
		}
		if !bytes.Equal(got, lines) || within != open {
			t.Fatalf("%q became %q", lines, got)
		}
	})
}

// FuzzFrames: no bytes of a peer harm the server, which then serves the next one.
func FuzzFrames(f *testing.F) {
	f.Add(masked(fin|opText, []byte("{}")))
	f.Add(append(masked(opText, []byte("\xe4")), masked(fin|opContinuation, []byte("\xb8\x96"))...))
	f.Add(appendFrame(nil, fin|opText, []byte("{}")))
	f.Add(masked(fin|opClose, []byte{0x03, 0xe8, 'x'}))
	f.Add([]byte{fin | opText, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4, 5})
	r := start(f, exacta.Config{AllowedRoots: []string{f.TempDir()}}, nil) // nothing of the machine
	f.Fuzz(func(t *testing.T, frames []byte) {
		c := open(t, r.addr)
		_, _ = c.Write(frames) // it may be closed before the last one
		c.Close()
		next := open(t, r.addr)
		next.send(masked(fin|opText, []byte("[]")))
		next.want("not_an_object")
		next.Close()
	})
}
