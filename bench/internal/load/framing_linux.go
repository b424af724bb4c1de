package load

import (
	"bytes"
	"errors"
	"fmt"

	"trunkline/cmd/trunkline/loadgen"
)

// Protocol counts the replies of a closed loop that in begins with, and events beside them, and
// returns how many bytes they take.
type Protocol func(cfg *Config, in []byte) (used, replies, events int, err error)

// The Protocols beside Lines, Answers, and those of peers.
var (
	Kernel Protocol // frames of kernel-ipc §2.1, the zero Protocol
	// HTTP is HTTP/1.1 on connections that are kept. Any status but 2xx is an error.
	HTTP Protocol = func(_ *Config, in []byte) (used, replies, _ int, err error) {
		used, replies, err = loadgen.HTTPReplies(in)
		return used, replies, 0, err
	}
)

// Answers are lines, one to each request, that begin with Config.Good; those that begin with
// Config.Event, unless it is empty, are events. Lines that begin with Config.Greeted, the same,
// answer a Tape's Hello; any other line is an error. It does not allocate.
func Answers(cfg *Config, in []byte) (used, replies, events int, err error) {
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
		case bytes.HasPrefix(line, []byte(cfg.Good)):
			replies++
		case cfg.Event != "" && bytes.HasPrefix(line, []byte(cfg.Event)):
			events++
		case cfg.Greeted == "" || !bytes.HasPrefix(line, []byte(cfg.Greeted)):
			return used, replies, events, fmt.Errorf("cannot take %q: a reply begins with %s", line, cfg.Good)
		}
		used += end + 1
	}
}

// Lines are lines of Config.Reply bytes, one to each request. Where replies are known to be
// all of one length, a reply with another result is mostly of another length: it is an error, and
// so is a line feed within a reply. It does not allocate.
func Lines(cfg *Config, in []byte) (used, replies, events int, err error) {
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
