package exchange

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime/debug"
	"strings"

	"trunkline/codec/jsonx"
	"trunkline/engine/envelope"
)

// Options is what the commands need from the program.
type Options struct {
	// MaxBodyBytes bounds stdin in bytes.
	MaxBodyBytes int
	// Engine answers; the version command works without.
	Engine *envelope.Engine
	// Version is what the version command shows.
	Version Build
}

// Build identifies the program. An empty member of the first three is shown as "unknown". Others
// that are empty are left out.
type Build struct {
	BuildTime string `json:"build_time"`
	Go        string `json:"go_version"`     // version of the Go toolchain
	Server    string `json:"server_version"` // version of this program

	Revision string `json:"revision,omitempty"` // of the source
	OS       string `json:"os,omitempty"`
	Arch     string `json:"arch,omitempty"`
	Modified bool   `json:"modified,omitempty"` // the source was not that of Revision
}

// exchangeVersion is the version of the envelope exchange, not of this program (envelope §4.4).
const exchangeVersion = "1.0.0"

const usage = `Usage: trunkline <command> < input.json
       trunkline < {"command": "<command>", ...}

Commands: one JSON object in, one JSON object out
  process       run one engine step on an envelope
  create        make an envelope from raw_input, user_id, stage_order, ...
  can-continue  tell whether an envelope may go on
  result        extract the answer of an envelope
  validate      check an envelope
  version       print versions
`

// verb is a command.
type verb struct {
	name string
	run  func(o *Options, dst, src []byte) answer
}

const versionName = "version" // the one that reads nothing

// verbs stand in the order of the documentation.
var verbs = [...]verb{
	{"process", (*Options).process},
	{"create", func(o *Options, dst, src []byte) answer { return answered(o.Engine.Create(dst, src)) }},
	{"can-continue", func(o *Options, dst, src []byte) answer { return answered(o.Engine.CanContinue(dst, src)) }},
	{"result", func(o *Options, dst, src []byte) answer { return answered(o.Engine.Result(dst, src)) }},
	{"validate", func(o *Options, dst, src []byte) answer { return answer{out: o.Engine.Validate(dst, src)} }},
	{versionName, func(o *Options, dst, _ []byte) answer { return answer{out: o.Version.append(dst)} }},
}

// Names returns the commands in the order of the documentation. The slice is the caller's.
func Names() (list []string) {
	for i := range verbs {
		list = append(list, verbs[i].name)
	}
	return list
}

// verbOf returns the command of that name, nil if there is none.
func verbOf(name string) *verb {
	for i := range verbs {
		if verbs[i].name == name {
			return &verbs[i]
		}
	}
	return nil
}

// Command runs one command (envelope §2.2): it reads stdin to its end (version reads nothing),
// writes one compact JSON object and a line end to stdout in one write, and returns the exit
// status: 0, or 1 after any failure. Diagnostics go to stderr.
//
// A write to stdout that fails is exit status 1. That needs a process that SIGPIPE does not end.
func Command(name string, stdin io.Reader, stdout, stderr io.Writer, opt Options) (exit int) {
	cmd := verbOf(name)
	if cmd == nil {
		fmt.Fprintf(stderr, "Unknown command: %s\n%s", name, usage)
		return 1
	}
	if name == versionName {
		stdin = strings.NewReader("")
	}
	src, no := opt.read(stdin)
	if no != nil {
		return no.print(stdout, stderr, 1)
	}
	return opt.run(cmd, src, stderr).print(stdout, stderr, 1)
}

// read returns all of stdin, or the answer to give instead.
func (o *Options) read(stdin io.Reader) ([]byte, *answer) {
	src, err := readAll(stdin, nil, o.MaxBodyBytes, 0)
	switch {
	case err == errTooLarge:
		no := refused(codeTooLarge, fmt.Sprintf("Input exceeds %d bytes", o.MaxBodyBytes))
		return nil, &no
	case err != nil:
		no := refused(codeRead, "Cannot read standard input: "+err.Error())
		return nil, &no
	}
	return src, nil
}

// run answers one command. A panic of the engine is a failure too; its stack goes to stderr.
func (o *Options) run(cmd *verb, src []byte, stderr io.Writer) (a answer) {
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(stderr, "cannot run the command: panic: %v\n%s", p, debug.Stack())
			a = refused(codeInternal, "Internal error")
		}
	}()
	return cmd.run(o, make([]byte, 0, len(src)+firstBuffer), src)
}

// process runs the engine step. An envelope that ended by a bound is both an answer and a failure
// (envelope D10).
func (o *Options) process(dst, src []byte) answer {
	out, bounds, err := o.Engine.Process(dst, src)
	a := answered(out, err)
	if err == nil && bounds != envelope.NoReason {
		a.out, a.failed = appendBounds(a.out, bounds.Exchange()), true
	}
	return a
}

const (
	firstBuffer  = 8 << 10 // holds nearly every envelope (envelope §10)
	maxIdleReads = 100     // reads in a row that bring neither a byte nor an error
	trust        = 16      // an announced size is believed once this part of it has come
)

// errTooLarge means that there is at least one byte beyond the limit.
var errTooLarge = errors.New("more bytes than the limit")

// readAll reads r to its end into buf's memory, which grows as bytes come. announced is the size in
// bytes from the sender (0 or less: none); it costs nothing until a part of the bytes is there. One
// byte beyond limit is errTooLarge. The bytes read so far come with every error.
func readAll(r io.Reader, buf []byte, limit int, announced int64) ([]byte, error) {
	limit = min(limit, math.MaxInt-1)
	buf = buf[:0]
	for idle := 0; idle < maxIdleReads; idle++ {
		if len(buf) == cap(buf) {
			buf = enlarge(buf, limit, announced)
		}
		n, err := r.Read(buf[len(buf):min(cap(buf), limit+1)])
		buf = buf[:len(buf)+n]
		switch {
		case len(buf) > limit:
			return buf, errTooLarge
		case err == io.EOF:
			return buf, nil
		case err != nil:
			return buf, err
		case n > 0:
			idle = 0
		}
	}
	return buf, io.ErrNoProgress
}

// enlarge returns a copy of buf with more room, but for at most limit and one byte more.
func enlarge(buf []byte, limit int, announced int64) []byte {
	size := max(2*cap(buf), firstBuffer)
	if announced > int64(size) && announced/trust <= int64(len(buf)) {
		size = int(min(announced, int64(limit))) + 1 // one more byte, or the end is seen only after another copy
	}
	return append(make([]byte, 0, min(size, limit+1)), buf...)
}

// Bridge runs the command that stdin itself names, {"command": NAME, …}: the form of older
// subprocess clients, which pass no arguments (envelope §2.2). The payload is the object under
// "envelope" if there is one, else the object without "command".
//
// That client reads the error object only at exit status 0, so once a command is named, every
// outcome exits with 0. Input that cannot be read, is no JSON, or names no command exits with 1.
// Output and SIGPIPE are as for Command.
func Bridge(stdin io.Reader, stdout, stderr io.Writer, opt Options) (exit int) {
	src, no := opt.read(stdin)
	if no != nil {
		return no.print(stdout, stderr, 1)
	}
	src = jsonx.TrimBOM(src)
	if len(bytes.TrimLeft(src, " \t\r\n")) == 0 {
		return showUsage(stderr)
	}
	if p := jsonx.Check(src, jsonx.MaxDepth); !p.OK() {
		return refused(envelope.ParseError, "Invalid JSON: "+p.String()).print(stdout, stderr, 1)
	}
	name, payload, ok := parseOrder(src)
	if !ok {
		return showUsage(stderr)
	}
	cmd := verbOf(cmp.Or(olderNames[name], name))
	if cmd == nil {
		return refused(codeUnknown, "Unknown command: "+name).print(stdout, stderr, 0)
	}
	return opt.run(cmd, payload, stderr).print(stdout, stderr, 0)
}

func showUsage(stderr io.Writer) (exit int) {
	fmt.Fprint(stderr, usage)
	return 1
}

// olderNames are the older spellings of commands.
var olderNames = map[string]string{"can_continue": "can-continue", "get_result": "result"}

// parseOrder splits checked JSON into the command's name and its payload; ok is false without a
// command. Of a repeated key the last one counts. The payload is part of src if it is under
// "envelope", else a copy.
func parseOrder(src []byte) (name string, payload []byte, ok bool) {
	var m [2]jsonx.Value
	jsonx.Pick(src, []string{"command", "envelope"}, m[:])
	command, ok := m[0].Text()
	if ok && m[1].Kind == jsonx.ObjectStart {
		return string(command), m[1].Raw, true
	}
	return string(command), jsonx.AppendWithout(make([]byte, 0, len(src)), src, "command"), ok
}
