package load

import (
	"fmt"

	"trunkline/cmd/trunkline/loadgen"
)

// The closed loop of the load generator, by the names that parts use.
type (
	// Config describes a load.
	Config = loadgen.Closed
	// PacedConfig is a Config with a rate.
	PacedConfig = loadgen.Closed
	// Session is a load that runs.
	Session = loadgen.Session
	// Paced are the latencies of a load with a rate.
	Paced = loadgen.Paced
	// Tape is the list of requests of one connection.
	Tape = loadgen.Tape
	// Histogram counts latencies.
	Histogram = loadgen.Latencies
	// Protocol is the framing of the replies.
	Protocol = loadgen.Framing
)

// The runs of bytes that a fresh frame of a Tape replaces with the tape's counter.
const (
	Placeholder      = loadgen.Placeholder
	ShortPlaceholder = loadgen.ShortPlaceholder
)

// What replies a load takes.
var (
	Kernel  Protocol                         // frames of kernel-ipc §2.1, the zero Protocol
	HTTP    Protocol = loadgen.Responses     // HTTP/1.1, connections that are kept
	Lines   Protocol = loadgen.LineReplies   // one line to each line, all of the length Config.Reply
	Answers Protocol = loadgen.AnswerReplies // one line to each line, all beginning with Config.Good
)

// Start connects and begins to send. Without Config.Refused the error of an ERROR frame is a
// *Failure.
func Start(cfg Config) (*Session, error) {
	if cfg.Refused == nil {
		cfg.Refused = refused
	}
	return loadgen.Start(cfg)
}

func refused(_ uint8, payload []byte) error {
	f, err := ParseFailure(payload)
	if err != nil {
		return err
	}
	return f
}

// RunPaced sends for cfg.For and returns the latencies of all slices.
func RunPaced(cfg PacedConfig) (*Paced, error) { return loadgen.RunPaced(cfg) }

// SendOnce sends every tape once at the given depth and waits for all replies.
func SendOnce(addr string, p Protocol, tapes []*Tape, depth int) error {
	s, err := Start(Config{Addr: addr, Protocol: p, Tapes: tapes, Depth: depth, Once: true})
	if err != nil {
		return err
	}
	_, err = s.Wait()
	return err
}

// AppendPost appends a POST of a JSON body on a connection that is kept, with more fields of its
// header.
func AppendPost(dst []byte, path string, body []byte, fields ...string) []byte {
	dst = fmt.Appendf(dst, "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n", path, len(body))
	for _, f := range fields {
		dst = append(append(dst, f...), "\r\n"...)
	}
	return append(append(dst, "\r\n"...), body...)
}
