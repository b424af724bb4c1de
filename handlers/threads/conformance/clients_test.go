package conformance

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"trunkline/codec/jsonx"
	"trunkline/fuzz/kit"
	"trunkline/handlers/threads/method"
)

// Revisions that clients speak.
const (
	newRevision = "2026-07-28"
	oldRevision = "2025-11-25"
)

// client speaks MCP through an official client.
type client interface {
	// ask calls a tool, or asks who the server is and for its tools if tool is empty.
	ask(t testing.TB, url, token, tool, args string) reply
}

// reply is what a client made of an answer.
type reply struct {
	Server  string
	Tools   []string
	Failed  bool            // it is an error of the tool
	Result  json.RawMessage // structured
	Text    string
	Code    int // of a JSON-RPC error
	Message string
}

// TestClients replays the transcript of every method through the official clients of MCP, each of
// which checks results against the schemas of the tools.
func TestClients(t *testing.T) {
	if testing.Short() {
		t.Skip("starts other programs")
	}
	f := func(name, version string, open func(t testing.TB) client) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			replayThrough(t, open(t), version)
		})
	}
	for _, version := range sdk.SupportedProtocolVersions() {
		f("go-sdk "+version, version, func(testing.TB) client { return &goClient{version: version, sessions: map[string]*sdk.ClientSession{}} })
	}
	script := func(name, file, mode, version string) {
		f(name+" "+mode, version, func(t testing.TB) client { return startClient(t, name, file, mode) })
	}
	script("@modelcontextprotocol/client@2.4.0", "new.mjs", newRevision, newRevision)
	script("@modelcontextprotocol/client@2.4.0", "new.mjs", "legacy", oldRevision)
	script("@modelcontextprotocol/sdk@1.32.2", "old.mjs", "legacy", oldRevision)
	script("mcp==2.3.0", "new.py", newRevision, newRevision)
	script("mcp==2.3.0", "new.py", "auto", newRevision)
	script("mcp==2.3.0", "new.py", "legacy", oldRevision)
	script("mcp==1.30.0", "old.py", "legacy", oldRevision)
	script("fastmcp==4.2.3", "fastmcp.py", "auto", newRevision)
	f("mcp-remote@0.15.1", oldRevision, func(t testing.TB) client {
		return &goClient{version: oldRevision, sessions: map[string]*sdk.ClientSession{},
			proxy: nodeScript(t, "mcp-remote@0.15.1", "dist/proxy.js")}
	})
}

// TestAdapters has a short conversation with what wraps tools for agents and for the command line.
func TestAdapters(t *testing.T) {
	if testing.Short() {
		t.Skip("starts other programs")
	}
	for name, open := range map[string]func(t testing.TB) client{
		"langchain-mcp-adapters==0.3.2": func(t testing.TB) client {
			return startClient(t, "langchain-mcp-adapters==0.3.2", "langchain.py", "")
		},
		"@modelcontextprotocol/inspector@2.12.0": func(t testing.TB) client {
			return inspector(nodeScript(t, "@modelcontextprotocol/inspector@2.12.0", "clients/launcher/build/index.js"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, s := open(t), start(t, "SUPERVISOR_MODE=off")
			ask := func(token, tool, args string) reply {
				t.Helper()
				a := c.ask(t, s.http+"/mcp", token, tool, args)
				if a.Message != "" {
					t.Fatalf("%s %s: %+v", tool, args, a)
				}
				return a
			}
			if hello := ask(reviewer, "", "{}"); len(hello.Tools) != len(method.Rows) {
				t.Errorf("the client saw %+v", hello)
			}
			made := ask(coordinator, "create_thread", `{"title":"x","type":"workflow","participants":["reviewer_agent"]}`)
			var thread struct {
				ID string `json:"thread_id"`
			}
			if err := json.Unmarshal([]byte(made.Text), &thread); err != nil || thread.ID == "" ||
				!alike(made.Text, string(made.Result)) {
				t.Fatalf("%+v (%v)", made, err)
			}
			if a := ask(reviewer, "read_messages", `{"thread_id":"`+thread.ID+`","limit":7}`); a.Failed ||
				!strings.Contains(a.Text, `"has_more":false`) {
				t.Errorf("%+v", a)
			}
			if a := ask(reviewer, "get_thread", `{"thread_id":"th_none"}`); !a.Failed || !strings.Contains(a.Text, "NOT_FOUND") {
				t.Errorf("%+v", a)
			}
		})
	}
}

// inspector is the command line of the Inspector, which is started for each question.
type inspector []string

func (i inspector) ask(t testing.TB, url, token, tool, args string) (a reply) {
	argv := append(slices.Clone(i[1:]), "--cli", url, "--transport", "http", "--header", "Authorization: Bearer "+token,
		"--method")
	if tool == "" {
		argv = append(argv, "tools/list")
	} else {
		var values map[string]any
		if err := json.Unmarshal([]byte(args), &values); err != nil {
			t.Fatal(err)
		}
		argv = append(argv, "tools/call", "--tool-name", tool, "--tool-arg")
		for name, v := range values {
			text, is := v.(string)
			if !is {
				value, _ := json.Marshal(v)
				text = string(value)
			}
			argv = append(argv, name+"="+text)
		}
	}
	cmd := exec.Command(i[0], argv...)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	var errs kit.Text
	cmd.Stderr = &errs
	out, _ := cmd.Output() // an error of a tool is one of the program, too
	var v struct {
		Tools             []struct{ Name string }
		Content           []struct{ Text string }
		StructuredContent json.RawMessage
		IsError           bool
	}
	if err := json.Unmarshal(out, &v); err != nil {
		return reply{Message: errs.String() + string(out)}
	}
	for _, tool := range v.Tools {
		a.Tools = append(a.Tools, tool.Name)
	}
	if a.Failed, a.Result = v.IsError, v.StructuredContent; len(v.Content) > 0 {
		a.Text = v.Content[0].Text
	}
	return a
}

// nodeScript returns the command line of a package of node that has a program.
func nodeScript(t testing.TB, name, file string) []string {
	path := filepath.Join(clientsDir(t), "node", "node_modules", name[:strings.LastIndexByte(name, '@')], file)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("%s is not installed: run testdata/clients/install.sh", name)
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed: ", name, " needs it")
	}
	return []string{node, path}
}

// replayThrough replays the transcripts, and watches which revision the client speaks.
func replayThrough(t *testing.T, c client, version string) {
	s := start(t, "SUPERVISOR_MODE=off")
	tap := newTap(t, strings.TrimPrefix(s.http, "http://"))
	mcp := "http://" + tap.Addr().String() + "/mcp"
	var names []string
	for i := range method.Rows {
		names = append(names, method.Rows[i].Name)
	}
	if hello := c.ask(t, mcp, reviewer, "", "{}"); hello.Server != "threads" || !slices.Equal(hello.Tools, names) {
		t.Fatalf("the client saw %+v", hello)
	}
	if no := c.ask(t, mcp, reviewer, "nope", "{}"); no.Code != -32602 {
		t.Errorf("an unknown tool: %+v", no)
	}
	strict := new(jsonx.Strict)
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		s.replay(name, string(text), "client", func(s *server, name, token, body string) (string, string) {
			if !strict.Check([]byte(body), 64).OK() {
				return overMCP(s, name, token, body) // a client cannot write it
			}
			a := c.ask(t, mcp, token, name, body)
			switch {
			case a.Message != "":
				t.Errorf("%s %s: %+v", name, body, a)
				return "", ""
			case a.Failed:
				return specOf(a.Text)
			case !alike(a.Text, string(a.Result)):
				t.Errorf("%s: the result is %s, its text %s", name, a.Result, a.Text)
			}
			return a.Text, ""
		})
	}
	found := spokenVersion.FindAllStringSubmatch(tap.sent.String(), -1)
	if len(found) == 0 || found[len(found)-1][1] != version {
		t.Errorf("the client spoke %v, want %s", found, version)
	}
}

var spokenVersion = regexp.MustCompile(`(?i)\nmcp-protocol-version: (\S+)`)

// tap passes connections on to a server and keeps what clients send.
type tap struct {
	net.Listener
	sent kit.Text
}

func newTap(t testing.TB, addr string) *tap {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &tap{Listener: l}
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", addr)
			if err != nil {
				_ = in.Close()
				continue
			}
			pass := func(to io.Writer, from net.Conn) {
				_, _ = io.Copy(to, from)
				_ = in.Close()
				_ = out.Close()
			}
			go pass(in, out)
			go pass(io.MultiWriter(out, &p.sent), in)
		}
	}()
	t.Cleanup(func() { _ = l.Close() })
	return p
}

// goClient is the client of the Go SDK.
type goClient struct {
	version  string
	sessions map[string]*sdk.ClientSession
	proxy    []string // a program on stdin and stdout that speaks to the server; nil: none
}

// withToken adds a token to each request.
type withToken struct {
	http.RoundTripper
	token string
}

func (w withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+w.token)
	return w.RoundTripper.RoundTrip(r)
}

func (g *goClient) ask(t testing.TB, url, token, tool, args string) (a reply) {
	session := g.sessions[token]
	if session == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		c := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
		var to sdk.Transport = &sdk.StreamableClientTransport{Endpoint: url,
			HTTPClient: &http.Client{Transport: withToken{transport, token}}, MaxRetries: -1}
		if g.proxy != nil {
			cmd := exec.Command(g.proxy[0], append(slices.Clone(g.proxy[1:]), url, "--transport", "http-only", "--allow-http",
				"--header", "Authorization:Bearer "+token)...)
			cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
			to = &sdk.CommandTransport{Command: cmd}
		}
		var err error
		session, err = c.Connect(t.Context(), to, &sdk.ClientSessionOptions{ProtocolVersion: g.version})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = session.Close()
			transport.CloseIdleConnections()
		})
		g.sessions[token] = session
	}
	if tool == "" {
		list, err := session.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range list.Tools {
			a.Tools = append(a.Tools, tool.Name)
		}
		a.Server = session.InitializeResult().ServerInfo.Name
		return a
	}
	r, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: json.RawMessage(args)})
	var no *jsonrpc.Error
	switch {
	case errors.As(err, &no):
		return reply{Code: int(no.Code), Message: no.Message}
	case err != nil:
		return reply{Message: err.Error()}
	}
	result, _ := json.Marshal(r.StructuredContent)
	return reply{Failed: r.IsError, Result: result, Text: r.Content[0].(*sdk.TextContent).Text}
}

// process is a program with a client: one question a line, one answer a line.
type process struct {
	in  io.Writer
	out *bufio.Reader
}

// clientsDir is where testdata/clients/install.sh puts the official clients.
func clientsDir(t testing.TB) string {
	if dir := os.Getenv("TRUNKLINE_TEST_MCP_CLIENTS"); dir != "" {
		return dir
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skip("no folder for caches: ", err)
	}
	return filepath.Join(cache, "trunkline", "mcp-clients")
}

// startClient starts the program of a package with a script.
func startClient(t testing.TB, name, file, mode string) *process {
	dir := clientsDir(t)
	has := func(path string) {
		if _, err := os.Stat(filepath.Join(dir, path)); err != nil {
			t.Skipf("%s is not installed: run testdata/clients/install.sh", name)
		}
	}
	read := func(file string) string {
		text, err := os.ReadFile(filepath.Join("testdata", "clients", file))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	var cmd *exec.Cmd
	if strings.Contains(name, "==") {
		program := filepath.Join("python-"+name, "bin", "python")
		has(program)
		cmd = exec.Command(filepath.Join(dir, program), "-c", read(file))
	} else {
		has(filepath.Join("node", "node_modules", name[:strings.LastIndexByte(name, '@')], "package.json"))
		node, err := exec.LookPath("node")
		if err != nil {
			t.Skip("node is not installed: ", name, " needs it")
		}
		cmd = exec.Command(node, "--input-type=module", "-e", read(file)+read("loop.mjs"))
		cmd.Dir = filepath.Join(dir, "node")
	}
	var errs kit.Text
	cmd.Env, cmd.Stderr = append(os.Environ(), "MODE="+mode), &errs
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := kit.Start(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		if t.Failed() {
			t.Log(errs.String())
			_ = cmd.Process.Kill()
		}
		_ = cmd.Wait()
	})
	return &process{in: in, out: bufio.NewReader(out)}
}

func (p *process) ask(t testing.TB, url, token, tool, args string) (a reply) {
	question, err := json.Marshal(map[string]any{"url": url, "token": token, "tool": tool, "args": json.RawMessage(args)})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = p.in.Write(append(question, '\n')) // a failure shows in the answer
	line, err := p.out.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &a)
	}
	if err != nil {
		t.Fatalf("%s: %q: %v", question, line, err)
	}
	return a
}
