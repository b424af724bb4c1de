package main

import (
	_ "embed"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"trunkline/bench/internal/load"
)

// peerHTTP is the peer that reads bodies.
const peerHTTP = "http"

// bareReply is as long as the reply to a post.
const bareReply = `{"message_id":"msg_01KHP2Q3W4X5Y6Z7A8B9C0D1E2","seq":27,"thread_status":"active","created_at":"2026-02-17T12:00:00.000Z"}`

// bareBuffer is what the bare handler reads at a time: a whole body.
const bareBuffer = 4 << 10

// runBareHandler serves on a free loopback port what net/http does for a handler that reads the
// body and answers a constant. It ends with the process.
func runBareHandler(out io.Writer) error {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "listening %s\n", ln.Addr())
	return http.Serve(ln, bare())
}

func bare() http.Handler {
	pool := sync.Pool{New: func() any { return new([bareBuffer]byte) }}
	json := []string{"application/json"}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		buf := pool.Get().(*[bareBuffer]byte)
		defer pool.Put(buf)
		for {
			if _, err := r.Body.Read(buf[:]); err != nil {
				break
			}
		}
		w.Header()["Content-Type"] = json
		_, _ = io.WriteString(w, bareReply) // an error is dropped: the peer is gone
	})
}

// nodeServer is a stateless server of the SDK in TypeScript, as its documentation has it.
//
//go:embed node.mjs
var nodeServer []byte

// nodePackage is the package that it needs.
const nodePackage = "@modelcontextprotocol/sdk"

// startNode starts the server of the SDK in TypeScript, where node and the package are installed.
func (t *talk) startNode() error {
	node, dir, err := findNode(t.o.clients)
	if err != nil {
		fmt.Fprintf(os.Stderr, "the server of %s is not measured: %v\n", nodePackage, err)
		return nil
	}
	script := filepath.Join(t.Dir, "node.mjs")
	if err := os.WriteFile(script, nodeServer, 0o600); err != nil {
		return fmt.Errorf("cannot write the server for node: %w", err)
	}
	t.node, err = t.Start(load.Command{Name: nodeSDK, Path: node, Args: []string{script, dir}, Listening: load.PeerListening})
	return err
}

// findNode finds node, and the folder with its packages in a folder of clients.
func findNode(clients string) (node, dir string, err error) {
	if clients == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", "", err
		}
		clients = filepath.Join(cache, "trunkline", "mcp-clients")
	}
	dir = filepath.Join(clients, "node")
	if _, err := os.Stat(filepath.Join(dir, "node_modules", nodePackage, "package.json")); err != nil {
		return "", "", fmt.Errorf("it is not installed, see handlers/threads/conformance/testdata/clients/install.sh: %w", err)
	}
	node, err = exec.LookPath("node")
	return node, dir, err
}
