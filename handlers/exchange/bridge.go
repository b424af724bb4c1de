package exchange

import (
	"bytes"
	"cmp"
	"fmt"
	"io"

	"trunkline/codec/jsonx"
	"trunkline/engine/envelope"
)

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
