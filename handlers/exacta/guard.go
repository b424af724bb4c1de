package exacta

import (
	"crypto/subtle"
	"runtime/debug"
	"strings"
	"time"

	"trunkline/codec/jsonx"
	"trunkline/codec/ndjson"
	"trunkline/engine/connection"
	"trunkline/engine/projects/codec"
	"trunkline/engine/projects/errcode"
)

// Limits of a peer over TCP before its first line is taken.
const (
	guestLine  = 2*MaxToken + 256 // an auth line of the longest token, however it is escaped
	authWithin = 10 * time.Second
)

// What refuses a peer over TCP (exacta §2.1).
var (
	notJSON  = codec.Refusal{Code: "IPC-001", Detail: "invalid_json: the first line is no JSON object"}
	noToken  = codec.Refusal{Code: "SEC-002", Value: []byte("connection"), Detail: "auth: the first line shows no token"}
	badToken = codec.Refusal{Code: "SEC-002", Value: []byte("connection"), Detail: "auth: the token is not accepted"}
)

// greet looks at the first line of a peer over TCP. A peer that does not speak JSON, such as a
// browser that a web page sent here, is not listened to: no later byte is a request.
func (s *session) greet(in, out []byte) (used int, _ []byte, v connection.Verdict) {
	for used < len(in) && blankAt(in[used:]) {
		used++
	}
	rest := jsonx.TrimBOM(in[used:]) // the mark is of the line, which skips it again
	for len(rest) > 0 && blankAt(rest) {
		rest = rest[1:]
	}
	token := s.srv.Live().AuthToken
	switch {
	case strings.HasPrefix("\uFEFF", string(rest)) || rest[0] == '\r' && len(rest) == 1: // there is more to come
		return used, out, connection.More
	case rest[0] != '{' && token == "":
		return used, s.refuse(out, &notJSON), connection.Close
	case rest[0] != '{':
		return used, s.refuse(out, &noToken), connection.Close
	case token == "":
		s.expects = wholeLine
		return used, out, connection.Yield
	default:
		n, out, v := s.auth(rest, out, token)
		return len(in) - len(rest) + n, out, v
	}
}

// blankAt reports whether the first byte belongs to a blank line, or stands before a message.
func blankAt(in []byte) bool {
	c := in[0]
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' && len(in) > 1 && in[1] == '\n'
}

// authNames are the members of an auth line.
var authNames = jsonx.NewNames("type", "token")

// auth takes the first line of a peer that has to show the token.
func (s *session) auth(in, out []byte, token string) (used int, _ []byte, v connection.Verdict) {
	line, used, st, scanned := ndjson.Split(in, s.scanned, guestLine)
	s.scanned = scanned
	switch st {
	case ndjson.More:
		return 0, out, connection.More
	case ndjson.TooLong:
		return used, s.refuse(out, &noToken), connection.Close
	}
	var strict jsonx.Strict
	var members [2]jsonx.Member
	p := strict.Scan(authNames, line, maxAuthDepth, members[:])
	shown := &members[1]
	switch {
	case !p.OK() || string(members[0].Text()) != "auth" || shown.Kind != jsonx.String:
		return used, s.refuse(out, &noToken), connection.Close
	case subtle.ConstantTimeCompare(shown.Text(), []byte(token)) == 0:
		return used, s.refuse(out, &badToken), connection.Close
	}
	s.expects, s.until = wholeLine, 0
	return used, codec.AppendAck(out, nil, s.srv.cfg.Clock, []byte("{}"), nil), connection.Yield
}

// maxAuthDepth is how deep an auth line may nest.
const maxAuthDepth = 32

const (
	fileWithin = 30 * time.Second // what only reads files (exacta §3.7, RES-003)
	maxHung    = 64               // goroutines that wait for a disk that does not answer
)

// located is a root that was found.
type located struct {
	dir     string
	markers []string
}

// within runs f, which changes nothing, and gives up after the limit: a disk that does not answer
// must not keep other projects from being opened. What f returns later goes to drop. A work that
// writes has no such limit: it would be answered as failed, and happen afterwards.
func within[T any](s *Server, f func() (T, *errcode.Fault), drop func(T)) (out T, err *errcode.Fault) {
	if s.hung.Load() >= maxHung {
		return out, errcode.New("RES-004", "reads that do not end: 64")
	}
	type result struct {
		out T
		err *errcode.Fault
	}
	ended, left := make(chan result), make(chan struct{})
	go func() {
		var r result
		func() {
			defer func() {
				if v := recover(); v != nil {
					s.cfg.Logger.Error("cannot read a project", "panic", v, "stack", string(debug.Stack()))
					r.err = errcode.New("ST-002", "an internal failure")
				}
			}()
			r.out, r.err = f()
		}()
		select {
		case ended <- r:
		case <-left:
			s.hung.Add(-1)
			if r.err == nil {
				drop(r.out)
			}
		}
	}()
	select {
	case r := <-ended:
		return r.out, r.err
	case <-s.after(fileWithin):
		s.hung.Add(1)
		close(left)
		return out, errcode.New("RES-003", "the disk does not answer")
	}
}
