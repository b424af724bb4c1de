package conformance

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"trunkline/engine/envelope"
	"trunkline/handlers/exchange"
)

// shown is one command of a console block, what it printed, and its exit status.
type shown struct {
	command string
	output  string
	exit    int
}

// consoles reads the page's console blocks: "$ command", the lines it prints, and "exit N" if that
// is not 0.
func consoles(t *testing.T) (all []shown) {
	t.Helper()
	for _, text := range fenced(t, "console") {
		for line := range strings.Lines(text) {
			command, isCommand := strings.CutPrefix(line, "$ ")
			code, isExit := strings.CutPrefix(strings.TrimSpace(line), "exit ")
			switch {
			case isCommand:
				all = append(all, shown{command: strings.TrimSpace(command)})
			case isExit:
				all[len(all)-1].exit, _ = strconv.Atoi(code)
			default:
				all[len(all)-1].output += line
			}
		}
	}
	return all
}

var (
	piped  = regexp.MustCompile(`^echo '([^']*)' \| trunkline ([a-z-]+)$`)
	posted = regexp.MustCompile(`^curl -s http://127\.0\.0\.1:50080(\S+) -H 'Content-Type: ([^']*)' -d '([^']*)'$`)
)

// TestDocumentedCommands runs the page's commands and requests of boundary A.
func TestDocumentedCommands(t *testing.T) {
	engine := envelope.NewEngine(envelope.Options{Now: func() time.Time { return documentedNow }})
	base := serveHTTP(t, engine)
	for _, s := range consoles(t) {
		var got string
		exit := 0
		if m := piped.FindStringSubmatch(s.command); m != nil {
			var out, complaints bytes.Buffer
			exit = exchange.Command(m[2], strings.NewReader(m[1]+"\n"), &out, &complaints, exchange.Options{MaxBodyBytes: 1 << 20, Engine: engine})
			got = out.String() + complaints.String()
		} else if m := posted.FindStringSubmatch(s.command); m != nil {
			got = post(t, base+m[1], m[2], m[3])
		} else if !strings.HasPrefix(s.command, "python3 ") {
			t.Fatalf("%s: cannot run %q", envelopePage, s.command)
		} else {
			continue // TestDocumentedWorker
		}
		p := &page{ids: map[string]string{}}
		if exit != s.exit || !p.same(parseElided(s.output), parseTwin(got)) {
			t.Errorf("$ %s\ndocumented %sexit %d\nanswered   %sexit %d", s.command, s.output, s.exit, got, exit)
		}
	}
}

func serveHTTP(t *testing.T, engine *envelope.Engine) (base string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := exchange.NewServer(engine, exchange.HTTPConfig{
		MaxBodyBytes: 1 << 20, MaxInFlight: 16, MaxHeaderBytes: 64 << 10, MaxConnections: 16, ReadHeaderTimeout: time.Minute,
		ReadBodyTimeout: time.Minute, IdleTimeout: time.Minute, WriteTimeout: time.Minute, Logger: slog.New(slog.DiscardHandler),
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		srv.Serve(ln)
	}()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := srv.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		<-done
	})
	return "http://" + ln.Addr().String()
}

func post(t *testing.T, url, contentType, body string) string {
	t.Helper()
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	reply, err := c.Post(url, contentType, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestDocumentedWorker runs the page's Python program against a server.
func TestDocumentedWorker(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3 here")
	}
	script := filepath.Join(t.TempDir(), "worker.py")
	if err := os.WriteFile(script, []byte(fenced(t, "python")[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(documentedServer(t).Addr)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	got, err := exec.CommandContext(ctx, python, script, port).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, got)
	}
	for _, s := range consoles(t) {
		if strings.HasPrefix(s.command, "python3 ") && s.output != string(got) {
			t.Errorf("documented\n%sanswered\n%s", s.output, got)
		}
	}
}
