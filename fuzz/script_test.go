package fuzz

import (
	"fmt"
	"slices"
)

// script writes the bytes of a program by hand, so that seeds can be read: it knows what program
// and speaker make of them.
type script struct{ b []byte }

// Places of the settings in a program's head.
const (
	setFrame = iota
	setBuffer
	setStreams
	setTypes
	setQueue
	setProcesses
	setLease
	setRetention
	setQueryDefault
	setTurn
	setChunk
	setUnsent
	setTurnBytes
	setSessions
	setEnvelopes
	setSessionRetention
	setEnvelopeRetention
	setTopic
	numSettings
)

// start begins a program; pairs are a setting and the index of its value.
func start(pairs ...byte) *script {
	s := &script{b: make([]byte, numSettings)}
	for i := 0; i < len(pairs); i += 2 {
		s.b[pairs[i]] = pairs[i+1]
	}
	return s
}

func (s *script) op(peer int, op byte, more ...byte) *script {
	s.b = append(append(s.b, byte(peer)<<5|op), more...)
	return s
}

func (s *script) open() *script            { return s.op(0, 0) }
func (s *script) leave(peer int) *script   { return s.op(peer, 1, 0) }
func (s *script) close(peer int) *script   { return s.op(peer, 2, 0) }
func (s *script) shutdown() *script        { return s.op(0, 3, 255) }
func (s *script) bad(peer, n byte) *script { return s.op(int(peer), 3, 0, n) }
func (s *script) sweep() *script           { return s.op(0, 6) }
func (s *script) pump(peer int) *script    { return s.op(peer, 8) }
func (s *script) drain(peer int) *script   { return s.op(peer, 10) }
func (s *script) drainAll() *script        { return s.op(0, 12) }
func (s *script) answer() *script          { return s.op(0, 20, 0, 0, 1) }

// again repeats the last frame n times.
func (s *script) again(peer int, n byte) *script { return s.op(peer, 13, n-1) }

// wait turns the clock.
func (s *script) wait(ms int64) *script {
	return s.op(0, 4, byte(slices.Index(waits, ms)))
}

// request has the client write a request and the owner take it; pairs are a field and one of its
// values, as good or wrong.
func (s *script) request(peer int, method, id string, pairs ...any) *script {
	s.op(peer, 22)
	return s.words(method, id, pairs)
}

// keep has the client write a request that is taken with the next one.
func (s *script) keep(peer int, method, id string, pairs ...any) *script {
	s.op(peer, 14)
	return s.words(method, id, pairs)
}

func (s *script) words(method, id string, pairs []any) *script {
	at := slices.IndexFunc(topics[0], func(w *sentence) bool { return w.method == method })
	w, ids := topics[0][at], callIDs
	if w.stream {
		ids = streamIDs
	}
	s.b = append(s.b, byte(at), 0, byte(max(0, slices.Index(ids, id))))
	for _, f := range w.fields {
		s.b = append(s.b, f.choice(pairs))
	}
	return s
}

// choice is the byte that makes the value pairs give the field; absent where it can be.
func (f *field) choice(pairs []any) byte {
	var want any = absent{}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i] == f.name {
			want = pairs[i+1]
		}
	}
	same := func(v any) bool { return fmt.Sprintf("%T%v", v, v) == fmt.Sprintf("%T%v", want, want) }
	if at := slices.IndexFunc(f.good, same); at >= 0 {
		return byte(at)
	}
	if at := slices.IndexFunc(f.wrong, same); at >= 0 {
		for c := 240; c < 256; c++ {
			if c%len(f.wrong) == at {
				return byte(c)
			}
		}
	}
	if want != (absent{}) {
		panic(fmt.Sprintf("%s is never %v", f.name, want))
	}
	return 0
}
