package conformance

import (
	"archive/zip"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// TestConversations holds the conversations of testdata over every carrier. An archive has the
// files of a project in the folder p, others beside it, and conversations: those that the comment
// names with talk happen over every carrier, one behind the other; those that it names with stdio
// only there.
//
// {DIR} is the folder p, {P} the id of its project, {X} the last execution_id of an answer. … in an
// expected text stands for any text. Lines of a conversation:
//
//	start [flags]      starts a server with a fixed clock and a seed
//	again              ends the connection and makes another one
//	> text             sends a message
//	>N Command {…}     sends a request with the id number N and the project_id
//	< text             the next message is this one
//	& text             the same, with those of the & lines around it in any order
//	<N {…}             the next message that is no LogEntry is the answer N with this result
//	<N CODE detail     the same with an error; detail is how technical_detail begins
//	<* Event {…}       the same, an event with this payload
//	eof                nothing more comes, and the program ends well
//	finish             the same, and any messages may come
//	kill, term         kills the program; sends it SIGINT
//	zip PATH ENTRY text has an entry of an archive
//	until Event {…}    drops messages up to an event
//	write, file PATH "text" · same PATH PATH · rm, gone PATH
func TestConversations(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(archives) == 0 {
		t.Fatal(err, archives)
	}
	for _, name := range archives {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			overAll(t, func(t *testing.T, via *carrier) { converse(t, via, archive) })
		})
	}
}

// converse holds the conversations of an archive.
func converse(t *testing.T, via *carrier, archive *txtar.Archive) {
	s := &server{t: t, via: via, home: realTemp(t), flags: append(append([]string(nil), fixed...), debugOn(via)...)}
	texts := map[string]string{}
	for _, f := range archive.Files {
		if name, ok := strings.CutPrefix(f.Name, "p/"); ok {
			s.write(name, string(f.Data))
		} else {
			s.write("../"+f.Name, string(f.Data))
			texts[f.Name] = string(f.Data)
		}
	}
	for line := range strings.Lines(string(archive.Comment)) {
		kind, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		if kind != "talk" && (kind != "stdio" || via != stdio) {
			continue
		}
		c := &conversation{t: t, server: s, execution: noID}
		for i, line := range strings.Split(texts[name], "\n") {
			c.at = name + ":" + strconv.Itoa(i+1) + ": " + line
			if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
				c.do(strings.NewReplacer("{DIR}", s.dir(), "{P}", firstProject, "{X}", c.execution).Replace(line))
			}
		}
	}
}

// firstProject is the first project of the seed t1.
const firstProject = "cd6389d6-5643-5997-9b3b-0ca9b25a1497"

// conversation is one that is held.
type conversation struct {
	t         *testing.T
	server    *server
	client    *client
	at        string
	execution string   // the last execution_id of an answer
	loose     []string // what is expected next, in any order
}

func (c *conversation) fatalf(format string, args ...any) {
	c.t.Helper()
	c.t.Logf(format, args...)
	c.t.Fatal(c.at)
}

func (c *conversation) check(err error) {
	c.t.Helper()
	if err != nil {
		c.fatalf("%v", err)
	}
}

func (c *conversation) do(line string) {
	c.t.Helper()
	verb, rest, _ := strings.Cut(line, " ")
	if verb == "&" {
		c.loose = append(c.loose, rest)
		return
	}
	for len(c.loose) > 0 {
		c.client.logs = true
		m := c.client.next()
		i := slices.IndexFunc(c.loose, func(want string) bool { return matches(want, m.line) })
		if i < 0 {
			c.fatalf("got  %s\nwant one of %q", m.line, c.loose)
		}
		c.loose = slices.Delete(c.loose, i, i+1)
	}
	switch {
	case verb == "start":
		flags := c.server.flags
		c.server.flags = append(slices.Clip(flags), strings.Fields(rest)...)
		c.server.start()
		c.server.flags = flags
		c.connect()
	case verb == "again":
		c.client.conn.shut()
		c.connect()
	case verb == ">":
		c.client.sends(rest)
	case verb[0] == '>':
		command, payload, _ := strings.Cut(rest, " ")
		c.client.sends(c.client.line(numbered(verb[1:]), command, payload))
	case verb == "<":
		c.client.logs = true
		if m := c.client.next(); !matches(rest, m.line) {
			c.fatalf("got  %s", m.line)
		}
	case verb == "<*":
		c.event(rest, c.next())
	case verb[0] == '<':
		c.answer(numbered(verb[1:]), rest)
	case verb == "until":
		for name, _, _ := strings.Cut(rest, " "); ; {
			if m := c.next(); m.Event == name && c.is(rest, m) {
				break
			}
		}
	case verb == "eof":
		c.end()
	case verb == "finish":
		_ = c.server.in.Close()
		for range c.client.conn.lines {
			continue
		}
		if code := c.server.wait(); code != 0 {
			c.fatalf("exit code %d", code)
		}
	case verb == "zip":
		c.zip(rest)
	case verb == "kill":
		c.server.kill()
	case verb == "term":
		c.check(c.server.cmd.Process.Signal(os.Interrupt))
	default:
		c.files(verb, rest)
	}
}

func (c *conversation) connect() {
	c.t.Helper()
	c.client = c.server.connect()
	c.client.project, c.client.joined = firstProject, true
}

// numbered returns the request_id of a number.
func numbered(n string) string {
	return "00000000-0000-4000-8000-" + strings.Repeat("0", 12-len(n)) + n
}

// next returns the next message that is no LogEntry.
func (c *conversation) next() *sent {
	c.t.Helper()
	c.client.logs = false
	return c.client.next()
}

// is reports whether a message is an event with a payload.
func (c *conversation) is(want string, m *sent) bool {
	name, payload, _ := strings.Cut(want, " ")
	return m.Event == name && matches(payload, string(m.Payload))
}

func (c *conversation) event(want string, m *sent) {
	c.t.Helper()
	if !c.is(want, m) {
		c.fatalf("got  %s", m.line)
	}
}

func (c *conversation) answer(id, want string) {
	c.t.Helper()
	m := c.next()
	if m.Type == "event" || m.Request == nil || !strings.EqualFold(*m.Request, id) {
		c.fatalf("got  %s", m.line)
	}
	if _, rest, ok := strings.Cut(string(m.Result), `execution_id":"`); ok {
		c.execution = rest[:len(noID)]
	}
	code, detail, _ := strings.Cut(want, " ")
	switch {
	case strings.HasPrefix(want, "{"):
		if !m.OK || !matches(want, string(m.Result)) {
			c.fatalf("got  %s", m.line)
		}
	case m.OK || m.Error.Code != code || !matches(detail+"…", m.Error.Detail):
		c.fatalf("got  %s", m.line)
	}
}

// end ends the program, which has nothing more to send.
func (c *conversation) end() {
	c.t.Helper()
	code := c.server.stop()
	for line := range c.client.conn.lines {
		if !strings.Contains(line, `"event":"LogEntry"`) {
			c.fatalf("at the end: %s", line)
		}
	}
	if code != 0 {
		c.fatalf("exit code %d: %s", code, c.server.log)
	}
}

func (c *conversation) files(verb, rest string) {
	c.t.Helper()
	name, text, _ := strings.Cut(rest, " ")
	if text != "" && verb != "same" {
		quoted, err := strconv.Unquote(text)
		c.check(err)
		text = quoted
	}
	switch verb {
	case "write":
		c.server.write(name, text)
	case "rm":
		c.server.remove(name)
	case "file":
		if got := c.server.read(name); got != text {
			c.fatalf("the file has %q", got)
		}
	case "same":
		if got, want := c.server.read(name), c.server.read(text); got != want {
			c.fatalf("the files have\n%s\n%s", got, want)
		}
	case "gone":
		if _, err := os.Lstat(filepath.Join(c.server.dir(), name)); err == nil {
			c.fatalf("the file is there")
		}
	default:
		c.fatalf("no such line")
	}
}

func (c *conversation) zip(rest string) {
	c.t.Helper()
	path, rest, _ := strings.Cut(rest, " ")
	name, want, _ := strings.Cut(rest, " ")
	r, err := zip.OpenReader(filepath.Join(c.server.dir(), path))
	c.check(err)
	defer r.Close()
	f, err := r.Open(name)
	c.check(err)
	got, err := io.ReadAll(f)
	c.check(err)
	if !matches(want, strings.TrimSuffix(string(got), "\n")) {
		c.fatalf("the entry has %s", got)
	}
}
