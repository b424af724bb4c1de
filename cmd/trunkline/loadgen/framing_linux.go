package loadgen

import (
	"bytes"
	"errors"
	"fmt"
)

// Framing counts the replies of a closed loop that in begins with, and events beside them, and
// returns how many bytes they take.
type Framing func(cfg *Closed, in []byte) (used, replies, events int, err error)

// Responses are those of HTTP/1.1 on connections that are kept. Any status but 2xx is an error. It
// allocates once, however many they are.
func Responses(_ *Closed, in []byte) (used, replies, events int, err error) {
	var h responses
	var r reply
	for used < len(in) {
		n, _, err := h.next(in[used:], &r)
		switch {
		case err != nil:
			return used, replies, 0, err
		case n == 0:
			return used, replies, 0, nil
		case !r.ok || r.final:
			return used, replies, 0, fmt.Errorf("cannot take the reply %q", in[used:used+n])
		}
		used += n
		replies++
	}
	return used, replies, 0, nil
}

// AnswerReplies are lines, one to each request, that begin with Closed.Good; those that begin with
// Closed.Event, unless it is empty, are events. Lines that begin with Closed.Greeted, the same,
// answer a Tape's Hello; any other line is an error. It does not allocate.
func AnswerReplies(cfg *Closed, in []byte) (used, replies, events int, err error) {
	if cfg.Good == "" {
		return 0, 0, 0, errors.New("cannot take replies that begin with nothing")
	}
	for {
		end := bytes.IndexByte(in[used:], '\n')
		if end < 0 {
			return used, replies, events, nil
		}
		line := in[used : used+end]
		switch {
		case begins(line, cfg.Good):
			replies++
		case cfg.Event != "" && begins(line, cfg.Event):
			events++
		case cfg.Greeted == "" || !begins(line, cfg.Greeted):
			return used, replies, events, fmt.Errorf("cannot take %q: a reply begins with %s", line, cfg.Good)
		}
		used += end + 1
	}
}

// LineReplies are lines of Closed.Reply bytes, one to each request. Where replies are known to be
// all of one length, a reply with another result is mostly of another length: it is an error, and
// so is a line feed within a reply. It does not allocate.
func LineReplies(cfg *Closed, in []byte) (used, replies, events int, err error) {
	size := cfg.Reply
	if size < 1 {
		return 0, 0, 0, fmt.Errorf("cannot take replies of %d bytes", size)
	}
	for ; len(in)-used >= size; replies++ {
		if end := bytes.IndexByte(in[used:used+size], '\n'); end != size-1 {
			return used, replies, 0, fmt.Errorf("cannot take %q: a reply has %d bytes", in[used:used+size], size)
		}
		used += size
	}
	return used, replies, 0, nil
}
