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
	if t.bare, err = t.Child("net/http", childHandler); err != nil {
		return err
	}
	clients := t.Clients
	if cache, err := os.UserCacheDir(); clients == "" && err == nil {
		clients = filepath.Join(cache, "trunkline", "mcp-clients")
	}
	packages := filepath.Join(clients, "node")
	_, missing := os.Stat(filepath.Join(packages, "node_modules", nodePackage, "package.json"))
	node, err := exec.LookPath("node")
	if err != nil || missing != nil {
		t.Report.Note("The server of %s was not measured: it is not installed, see handlers/threads/conformance/testdata/clients/install.sh.", nodePackage)
		return nil
	}
	script := filepath.Join(t.Rig.Dir, "node.mjs")
	if err := os.WriteFile(script, nodeServer, 0o600); err != nil {
		return fmt.Errorf("cannot write the server for node: %w", err)
	}
	t.node, err = t.Start(load.Command{Name: "node", Path: node, Args: []string{script, packages}, Listening: load.PeerListening})
	return err
}
