package workers

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/sys"

	"trunkline/codec/jsonx"
	"trunkline/handlers/toolhost/shim"
)

// trapCode is the exit code of a module that ran into a trap: that of a program that was aborted.
const trapCode = 128 + 6

// childMemory is what the collector of a child keeps its memory under, if it can.
const childMemory = 256 << 20

// A process that was started to run a module does that, and nothing else of the binary: see shim.
func init() {
	argv := shim.Stays()
	if len(argv) != 3 {
		return
	}
	os.Exit(runChild(argv[0], argv[1], argv[2]))
}

// runChild is the whole life of a child: it compiles the module, reports on its status descriptor, and answers requests as any kept worker. A
// call that fails ends it, with the exit code of the module.
func runChild(path, sum, folder string) (code int) {
	debug.SetMemoryLimit(childMemory)
	status := os.NewFile(shim.StatusFD, "status")
	m, err := loadModule(path, sum, folder)
	said := moduleReady
	switch {
	case err != nil:
		said = report(err)
	case m.kept:
		said = moduleKept
	}
	_, _ = io.WriteString(status, said) // fails if the server has gone
	if err != nil {
		return 1
	}
	_ = status.Close() // only written
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return 0
		}
		reply, code := m.answer(line)
		if code != 0 {
			return code
		}
		if _, err := os.Stdout.Write(append(reply, '\n')); err != nil {
			return 1
		}
	}
}

var requestNames = jsonx.NewNames("aid")

// answer runs one call in an instance of its own. code is not 0 if it failed.
func (m *module) answer(line []byte) (reply []byte, code int) {
	var aid [1]jsonx.Member
	_, _ = requestNames.Scan(line, maxDepth, aid[:]) // the server made it
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	out := capped{full: func() {
		_, _ = os.Stdout.Write(bytes.Repeat([]byte{'x'}, maxReply+len("\r\n"))) // over what the server takes
		os.Exit(1)
	}}
	streams := wazero.NewModuleConfig().WithName("").WithArgs(string(jsonx.AppendUnescaped(nil, aid[0].Raw))).
		WithStdin(bytes.NewReader(line)).WithStdout(&out).WithStderr(os.Stderr).
		WithRandSource(rand.Reader).WithSysWalltime().WithSysNanotime().
		WithNanosleep(func(ns int64) { time.Sleep(time.Duration(ns)) })
	ran, err := m.runtime.InstantiateModule(ctx, m.code, streams)
	if ran != nil {
		_ = ran.Close(ctx) // its memory; nothing was written to it that could be lost
	}
	exit := (*sys.ExitError)(nil)
	switch {
	case err == nil:
	case errors.As(err, &exit):
		if code := int(exit.ExitCode()); code != 0 {
			return nil, max(code&0xff, 1)
		}
	default:
		fmt.Fprint(os.Stderr, err)
		return nil, trapCode
	}
	return oneLine(out.buf), 0
}

// oneLine returns what a module wrote as a line. A text that is no reply is none as a line either.
func oneLine(text []byte) []byte {
	text = bytes.TrimSuffix(bytes.TrimSuffix(text, []byte{'\n'}), []byte{'\r'})
	if !bytes.ContainsAny(text, "\r\n") {
		return text
	}
	ok := jsonx.Check(text, maxDepth).OK()
	text = bytes.Map(func(r rune) rune {
		if r == '\n' || r == '\r' {
			return ' '
		}
		return r
	}, text)
	if !ok {
		return append([]byte("not JSON: "), text...)
	}
	return text
}

// capped keeps what an instance writes to stdout, up to a reply and its end; more ends the process.
type capped struct {
	buf  []byte
	full func()
}

// Write takes all of p or, if that would be too much, nothing.
func (o *capped) Write(p []byte) (int, error) {
	if len(o.buf)+len(p) > maxReply+len("\r\n") {
		o.full()
		return 0, io.ErrShortWrite
	}
	o.buf = append(o.buf, p...)
	return len(p), nil
}
