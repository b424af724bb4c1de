package mcp

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"trunkline/handlers/threads/method"
)

// clientsDir is where testdata/clients/install.sh puts the official clients.
func clientsDir(t *testing.T) string {
	if dir := os.Getenv("TRUNKLINE_TEST_MCP_CLIENTS"); dir != "" {
		return dir
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skip("no folder for caches: ", err)
	}
	return filepath.Join(cache, "trunkline", "mcp-clients")
}

// TestClients speaks through the official clients in other languages.
func TestClients(t *testing.T) {
	if testing.Short() {
		t.Skip("starts other programs")
	}
	f := func(name, script, mode, wantVersion string) {
		t.Helper()
		t.Run(name+" "+mode, func(t *testing.T) { runClient(t, name, script, mode, wantVersion) })
	}
	f("@modelcontextprotocol/client@2.4.0", "new.mjs", latest, latest)
	f("@modelcontextprotocol/client@2.4.0", "new.mjs", "legacy", legacy)
	f("@modelcontextprotocol/sdk@1.32.2", "old.mjs", "legacy", legacy)
	f("mcp==2.3.0", "new.py", latest, latest)
	f("mcp==2.3.0", "new.py", "auto", latest)
	f("mcp==2.3.0", "new.py", "legacy", legacy)
	f("mcp==1.30.0", "old.py", "legacy", legacy)
}

// programOf returns the program that runs scripts with a package, and the folder to run it in.
func programOf(t *testing.T, name string) (program, dir string, args []string) {
	dir = clientsDir(t)
	has := func(path string) {
		if _, err := os.Stat(filepath.Join(dir, path)); err != nil {
			t.Skipf("%s is not installed: run testdata/clients/install.sh", name)
		}
	}
	if version, python := bytes.CutPrefix([]byte(name), []byte("mcp==")); python {
		program = filepath.Join("python-"+string(version), "bin", "python")
		has(program)
		return filepath.Join(dir, program), dir, []string{"-"}
	}
	at := bytes.LastIndexByte([]byte(name), '@')
	has(filepath.Join("node", "node_modules", name[:at], "package.json"))
	program, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed: ", name, " needs it")
	}
	return program, filepath.Join(dir, "node"), []string{"--input-type=module", "-"}
}

// runClient lets a client list tools and call some, in a revision.
func runClient(t *testing.T, name, script, mode, version string) {
	program, dir, args := programOf(t, name)
	text, err := os.ReadFile(filepath.Join("testdata", "clients", script))
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, Config{})
	const result = `{"ok":true,"updated_at":"2026-02-17T12:01:05.000Z"}`
	s.script.answer = func(dst []byte, c *method.Caller, row *method.Row, doc []byte) ([]byte, method.Outcome) {
		if row.Name == method.AckRead {
			return append(dst, result...), method.Outcome{}
		}
		return checked(dst, c, row, doc)
	}
	spoken := make(chan string, 100)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		spoken <- r.Header.Get("Mcp-Protocol-Version")
		s.ServeHTTP(w, r)
	}))
	defer web.Close()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(text)
	cmd.Env = append(os.Environ(), "URL="+web.URL+"/mcp", "TOKEN=good", "MODE="+mode)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, errs.Bytes())
	}
	var got struct {
		Server, Text, Envelope string
		Tools                  []string
		Good                   json.RawMessage
		Bad                    bool
		Unknown                int
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var names []string
	for i := range method.Rows {
		names = append(names, method.Rows[i].Name)
	}
	if got.Server != "threads" || !slices.Equal(got.Tools, names) || got.Text != result || !sameText(got.Good, result) || !got.Bad {
		t.Errorf("the client saw %s", out)
	}
	wantEnvelope(t, name, got.Envelope, "VALIDATION_ERROR")
	if got.Unknown != -32602 {
		t.Errorf("an unknown tool is %d", got.Unknown)
	}
	last := ""
	for len(spoken) > 0 {
		last = <-spoken
	}
	if last != version {
		t.Errorf("the client spoke %s, want %s", last, version)
	}
}

// sameText reports whether two JSON texts differ in spaces only.
func sameText(a json.RawMessage, b string) bool {
	var out bytes.Buffer
	return json.Compact(&out, a) == nil && out.String() == b
}
