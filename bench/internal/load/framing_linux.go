package load

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"trunkline/cmd/trunkline/loadgen"
	"trunkline/codec/frame"
)

// Protocol counts the replies of a closed loop that in begins with, and events beside them, and
// returns how many bytes they take.
type Protocol func(cfg *Config, in []byte) (used, replies, events int, err error)

// Kernel is frames of kernel-ipc §2.1, the default: those of streams are events, and every ERROR
// frame is evaluated by Config.Refused.
func Kernel(cfg *Config, in []byte) (used, replies, events int, err error) {
	for {
		kind, payload, n := frame.Split(in[used:], maxReply)
		if n <= 0 {
			if n == frame.Malformed {
				err = errors.New("malformed frame")
			}
			return used, replies, events, err
		}
		used += n
		switch kind {
		case frame.Response:
			replies++
		case frame.Error:
			replies++
			err := refused(payload)
			if f, ok := err.(*Failure); ok && cfg.Refused != nil {
				err = cfg.Refused(f)
			}
			if err != nil {
				return used, replies, events, err
			}
		case frame.StreamChunk, frame.StreamEnd:
			events++
		default:
			return used, replies, events, fmt.Errorf("cannot take a frame of type 0x%02X", byte(kind))
		}
	}
}

// HTTP is the Protocol of HTTP/1.1 on connections that are kept. Any status but 2xx is an error.
func HTTP(_ *Config, in []byte) (used, replies, _ int, err error) {
	used, replies, err = loadgen.HTTPReplies(in)
	return used, replies, 0, err
}

// AppendPost appends a POST of a JSON body on a connection that is kept, with more fields of its
// header.
func AppendPost(dst []byte, path string, body []byte, fields ...string) []byte {
	dst = fmt.Appendf(dst,
		"POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n", path, len(body))
	for _, f := range fields {
		dst = append(append(dst, f...), "\r\n"...)
	}
	return append(append(dst, "\r\n"...), body...)
}

// Lines are lines, one to each request, that begin with Config.Good and, unless that is 0, have
// Config.Reply bytes: where replies are known to be all of one length, one with another result is
// mostly of another. Lines that begin with Config.Event, unless it is empty, are events; those that
// begin with Config.Greeted, the same, answer a Tape's Hello; any other line is an error. It does
// not allocate.
func Lines(cfg *Config, in []byte) (used, replies, events int, err error) {
	if cfg.Good == "" && cfg.Reply < 1 {
		return 0, 0, 0, errors.New("cannot take replies of which nothing is known")
	}
	for {
		end := bytes.IndexByte(in[used:], '\n')
		if end < 0 {
			return used, replies, events, nil
		}
		line := in[used : used+end]
		switch {
		case bytes.HasPrefix(line, []byte(cfg.Good)) && (cfg.Reply == 0 || cfg.Reply == end+1):
			replies++
		case cfg.Event != "" && bytes.HasPrefix(line, []byte(cfg.Event)):
			events++
		case cfg.Greeted == "" || !bytes.HasPrefix(line, []byte(cfg.Greeted)):
			return used, replies, events, fmt.Errorf("cannot take %q: a reply of %d bytes begins with %s", line, cfg.Reply, cfg.Good)
		}
		used += end + 1
	}
}

// AppendCommand appends a redis command to dst.
func AppendCommand(dst []byte, args ...string) []byte {
	dst = fmt.Appendf(dst, "*%d\r\n", len(args))
	for _, a := range args {
		dst = fmt.Appendf(dst, "$%d\r\n%s\r\n", len(a), a)
	}
	return dst
}

const crlf = "\r\n"

// RESP is the Protocol of redis: simple and bulk replies. An error reply, a nil bulk and any other
// type are errors: none of them answers a command that a part sends.
func RESP(_ *Config, b []byte) (used, replies, _ int, err error) {
	for {
		rest := b[used:]
		line := bytes.Index(rest, []byte(crlf))
		if line < 0 {
			return used, replies, 0, nil
		}
		size := line + len(crlf)
		if rest[0] != '+' {
			n, err := length(bytes.TrimPrefix(rest[:line], []byte("$")), rest[:line])
			if err != nil {
				return used, replies, 0, err
			}
			size += n + len(crlf)
		}
		if len(rest) < size {
			return used, replies, 0, nil
		}
		used += size
		replies++
	}
}

// length is a length in a line.
func length(digits, line []byte) (n int, err error) {
	if n, err = strconv.Atoi(string(digits)); err != nil || n < 0 || n > maxFrame {
		return 0, fmt.Errorf("cannot take the length in the reply %q", line)
	}
	return n, nil
}

// NATS is the Protocol of NATS: each message on the connection's inbox is a reply. A PING is not
// answered: a server lets two pass, minutes apart.
func NATS(_ *Config, b []byte) (used, replies, _ int, err error) {
	for {
		rest := b[used:]
		end := bytes.Index(rest, []byte(crlf))
		if end < 0 {
			return used, replies, 0, nil
		}
		line := rest[:end]
		end += len(crlf)
		switch {
		case bytes.HasPrefix(line, []byte("MSG ")):
			n, err := length(line[bytes.LastIndexByte(line, ' ')+1:], line)
			if err != nil {
				return used, replies, 0, err
			}
			if end += n + len(crlf); len(rest) < end {
				return used, replies, 0, nil
			}
			replies++
		case string(line) != "PING" && !bytes.HasPrefix(line, []byte("INFO ")):
			return used, replies, 0, fmt.Errorf("cannot take %q", line)
		}
		used += end
	}
}
