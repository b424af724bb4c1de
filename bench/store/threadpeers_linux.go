package store

import (
	_ "embed"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
)

// childHandler is the bare handler of net/http as a process of its own.
const childHandler = "net-http"

// bareReply is as long as the reply to a post.
const bareReply = `{"message_id":"msg_01KHP2Q3W4X5Y6Z7A8B9C0D1E2","seq":27,"thread_status":"active","created_at":"2026-02-17T12:00:00.000Z"}`

// runBareHandler serves on a free loopback port what net/http does for a handler that reads the
// body and answers a constant. It ends with the process.
func runBareHandler([]string) error {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("listening %s\n", ln.Addr())
	return http.Serve(ln, bare())
}

func bare() http.Handler {
	json := []string{"application/json"}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // an error is dropped, here and below: the peer is gone
		w.Header()["Content-Type"] = json
		_, _ = io.WriteString(w, bareReply)
	})
}

// nodeServer is a stateless server of the SDK in TypeScript, as its documentation has it.
//
//go:embed node.mjs
var nodeServer []byte

// nodePackage is the package that it needs.
const nodePackage = "@modelcontextprotocol/sdk"

// startPeers starts the bare handler and, where node and the package are installed, the server of
// the SDK in TypeScript.
func (t *talk) startPeers() (err error) {
	if t.bare, err = t.Child(bareHandler, childHandler); err != nil {
		return err
	}
	clients := t.Clients
	if cache, err := os.UserCacheDir(); clients == "" && err == nil {
		clients = filepath.Join(cache, "trunkline", "mcp-clients")
	}
	packages := filepath.Join(clients, "node")
	_, statErr := os.Stat(filepath.Join(packages, "node_modules", nodePackage, "package.json"))
	node, err := exec.LookPath("node")
	if err != nil || statErr != nil {
		t.Report.Note("The server of %s was not measured: it is not installed, see handlers/threads/conformance/testdata/clients/install.sh.", nodePackage)
		return nil
	}
	script := filepath.Join(t.Rig.Dir, "node.mjs")
	if err := os.WriteFile(script, nodeServer, 0o600); err != nil {
		return fmt.Errorf("cannot write the server for node: %w", err)
	}
	t.node, err = t.Start(load.Command{Name: nodeSDK, Path: node, Args: []string{script, packages}, Listening: load.PeerListening})
	return err
}

// addHandlers builds the benchmark of the handlers of MCP alone (no socket, no token, a method that
// does nothing), so that no round waits for a compiler, and adds its run. It has four rows, which
// take a window together.
func (t *talk) addHandlers() error {
	binary := filepath.Join(t.Rig.Dir, "mcp.test")
	if out, err := exec.Command("go", "test", "-c", "-o", binary, "./handlers/threads/mcp").CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build the benchmark of the handlers: %w\n%s", err, out)
	}
	t.steps = append(t.steps, goal.Step{Name: "the handlers of MCP", Measure: func() ([]goal.Sample, error) {
		out, err := exec.Command(binary, "-test.run", "^$", "-test.bench", "^Benchmark(Front|SDK)$", "-test.benchtime", (t.Window / 4).String(),
			"-test.timeout", time.Minute.String()).CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("cannot run the benchmark of the handlers: %w\n%s", err, out)
		}
		return readHandlers(out)
	}})
	return nil
}

// readHandlers reads the rows of the benchmark's report.
func readHandlers(out []byte) (all []goal.Sample, err error) {
	row := regexp.MustCompile(`(?m)^Benchmark(Front|SDK)/(\d{4}-\d\d-\d\d)\S*\s+(\d+)\s+([0-9.]+) ns/op`)
	for _, m := range row.FindAllSubmatch(out, -1) {
		ns, err := strconv.ParseFloat(string(m[4]), 64)
		if err != nil || ns <= 0 {
			return nil, fmt.Errorf("cannot read %q", m[0])
		}
		server := map[string]string{"Front": threadServer, "SDK": goSDK}[string(m[1])]
		all = append(all, goal.Sample{Cell: handlerCell(server, string(m[2])), PerSec: 1e9 / ns})
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("cannot find a row in the report of the handlers: %q", out)
	}
	return all, nil
}

// handlerCell is a handler under the calls of a revision.
func handlerCell(server, revision string) goal.Cell {
	return over(viaNothing, server, "tools/call, "+revision, size{1, 1})
}
