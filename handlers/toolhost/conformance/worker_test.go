package conformance

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// order is what a request's input shows the worker to do.
type order struct {
	Do    string `json:"do"`
	Reply string `json:"reply"`
	Err   string `json:"err"`
	Began string `json:"began"` // marked before it waits
	File  string `json:"file"`  // marked after that
	N     int    `json:"n"`
	Ms    int    `json:"ms"`
}

// workerMain is an external tool that obeys its input. With ONESHOT set it answers one line and
// ends.
func workerMain(in io.Reader, out, errs io.Writer) int {
	if code := os.Getenv("DIE"); code != "" {
		fmt.Fprint(errs, "cannot start")
		var n int
		fmt.Sscan(code, &n)
		return n
	}
	r := bufio.NewReaderSize(in, 1<<20)
	for served := 1; ; served++ {
		line, err := r.ReadString('\n')
		if line == "" || err != nil && err != io.EOF {
			return 0
		}
		var q struct {
			Input string `json:"input_json"`
		}
		var o order
		if json.Unmarshal([]byte(line), &q) == nil {
			json.Unmarshal([]byte(q.Input), &o)
		}
		if code, end := obey(o, strings.TrimSuffix(line, "\n"), served, out, errs); end {
			return code
		}
	}
}

func obey(o order, line string, served int, out, errs io.Writer) (code int, end bool) {
	if o.Began != "" {
		mark(o.Began)
	}
	if o.Ms > 0 {
		time.Sleep(time.Duration(o.Ms) * time.Millisecond)
	}
	if o.File != "" {
		mark(o.File)
	}
	fmt.Fprint(errs, o.Err)
	switch o.Do {
	case "mirror":
		say(out, line)
	case "who":
		say(out, fmt.Sprintf(`{"pid":%d,"served":%d}`, os.Getpid(), served))
	case "env":
		say(out, mustJSON(os.Environ()))
	case "server-env":
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", os.Getppid()))
		if err != nil {
			text = []byte(err.Error())
		}
		say(out, mustJSON(strings.Split(string(text), "\x00")))
	case "fds":
		files, _ := filepath.Glob("/proc/self/fd/*")
		for i, name := range files {
			files[i], _ = os.Readlink(name)
		}
		say(out, mustJSON(files))
	case "cwd":
		wd, _ := os.Getwd()
		say(out, wd)
	case "reply":
		fmt.Fprintln(out, o.Reply)
	case "bytes":
		fmt.Fprintf(out, `{"status":"OK","output_json":"%s"}`+"\n", "\xff")
	case "long":
		long(out, o.N)
	case "exit":
		return o.N, true
	case "last": // answers, then fails
		say(out, "{}")
		return o.N, true
	case "kill":
		syscall.Kill(os.Getpid(), syscall.Signal(o.N))
		time.Sleep(time.Minute)
	case "hang":
		child := exec.Command("sleep", "600") // in the same process group
		if child.Start() == nil && o.Reply != "" {
			os.WriteFile(o.Reply, []byte(strconv.Itoa(child.Process.Pid)), 0o600)
		}
		time.Sleep(10 * time.Minute)
	case "slow":
		os.WriteFile(o.Reply+".begun", nil, 0o600)
		time.Sleep(700 * time.Millisecond)
		os.WriteFile(o.Reply+".done", nil, 0o600)
		say(out, "{}")
	case "mute":
		os.Stdout.Close()
		time.Sleep(10 * time.Minute)
	case "twice":
		var both bytes.Buffer // written at once: of two writes the second may come when the first was taken
		say(&both, "{}")
		say(&both, "{}")
		out.Write(both.Bytes())
	default:
		say(out, "{}")
	}
	return 0, os.Getenv("ONESHOT") != ""
}

// state answers OK with an output text.
func say(out io.Writer, output string) {
	fmt.Fprintf(out, `{"ok":true,"status":"OK","output_json":%s,"error":""}`+"\n", mustJSON(output))
}

// long answers a line of exactly n bytes and its end.
func long(out io.Writer, n int) {
	const head, tail = `{"status":"OK","output_json":"{}","error":"","pad":"`, `"}`
	fmt.Fprintln(out, head+strings.Repeat("x", n-len(head)-len(tail))+tail)
}

// mark adds a line to a file, so that a test can count executions.
func mark(path string) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	fmt.Fprintln(f, "x")
	f.Close()
}

func mustJSON(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.Encode(v)
	return strings.TrimSuffix(b.String(), "\n")
}
