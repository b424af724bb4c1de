package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"trunkline/codec/transcode"
	"trunkline/fuzz/kit"
	"trunkline/handlers/ipc/ipcclient"
)

// TestFewDescriptors: with a low limit of open files connections are refused while there are
// descriptors left for the store and for connections that leave their loops.
func TestFewDescriptors(t *testing.T) {
	const limit, most = 128, 200
	dir := t.TempDir()
	cmd := exec.Command("sh", "-c", fmt.Sprintf(`ulimit -n %d; exec -a trunkline "$0" serve --listen=unix://%s/s --http-listen= --admin-listen= --log-format=text --set store.dir=%s/store`, limit, dir, dir), os.Args[0])
	if bash, err := exec.LookPath("bash"); err == nil {
		cmd.Path = bash // exec -a
	} else {
		t.Skip("no bash")
	}
	talk, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := kit.Start(cmd); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var said strings.Builder
	serving, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(talk); lines.Scan(); {
			mu.Lock()
			said.WriteString(lines.Text() + "\n")
			mu.Unlock()
			if strings.Contains(lines.Text(), " serving ") {
				close(serving)
			}
		}
	}()
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-ended
		if err := cmd.Wait(); err != nil || t.Failed() {
			t.Errorf("%v\n%s", err, said.String())
		}
	}()
	select {
	case <-serving:
	case <-ended:
		t.Fatal("it does not serve")
	}
	var conns []*ipcclient.Conn
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	refused := 0
	for i := 0; i < most && refused < 5; i++ {
		nc, err := net.Dial("unix", dir+"/s")
		if err != nil {
			t.Fatal(err)
		}
		c := ipcclient.New(nc)
		defer c.Close()
		_, err = c.Call(ctx, "kernel", "CreateProcess", body(t, fmt.Sprintf(`{"pid":"p%d","user_id":"u%[1]d"}`, i)))
		switch {
		case err == nil:
			conns = append(conns, c)
		case strings.Contains(err.Error(), "RESOURCE_EXHAUSTED") || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF):
			refused++
		default:
			t.Fatalf("connection %d: %v", i, err)
		}
	}
	if refused == 0 || len(conns) < limit/4 {
		t.Fatalf("%d connections taken, %d refused", len(conns), refused)
	}
	// An event that no socket takes whole makes all of them leave their loops.
	for i, c := range conns[1:] {
		if _, err := c.Subscribe(ctx, ipcclient.Subscribe{EventTypes: []string{"big"}}); err != nil {
			t.Fatalf("subscription %d: %v", i, err)
		}
	}
	const bytes = 2 << 20
	if _, err := conns[0].Call(ctx, "commbus", "Publish", body(t, `{"event_type":"big","payload":"\"`+strings.Repeat("x", bytes)+`\""}`)); err != nil {
		t.Fatal(err)
	}
	for i, c := range conns {
		if _, err := c.Call(ctx, "kernel", "CreateProcess", body(t, fmt.Sprintf(`{"pid":"q%d","user_id":"v%[1]d"}`, i))); err != nil {
			t.Errorf("connection %d: %v", i, err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if text := said.String(); strings.Contains(text, "off its loop") || strings.Contains(text, "full") || !strings.Contains(text, "RLIMIT_NOFILE") {
		t.Error("see the log")
	}
}

func body(t *testing.T, json string) []byte {
	t.Helper()
	b, err := transcode.EncodeJSON([]byte(json))
	if err != nil {
		t.Fatal(err)
	}
	return b
}
