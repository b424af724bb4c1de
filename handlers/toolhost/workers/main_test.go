package workers

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"trunkline/handlers/toolhost/tool"

	"go.uber.org/goleak"
)

// asWorker is the first argument that turns the test binary into a worker; the second states how it
// behaves.
const asWorker = "-as-worker"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == asWorker {
		behave(os.Args[2], os.Args[3:])
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

const okReply = `{"ok":true,"status":"OK","output_json":"{\"n\":1}","error":"","ds_state":{"delta":true,"slots":{},"removed_slots":[]}}` + "\n"

// behave is a worker, good or bad. It answers a request by its kind.
func behave(kind string, args []string) {
	in := bufio.NewReaderSize(os.Stdin, 16<<20)
	switch kind {
	case "slowstart":
		time.Sleep(100 * time.Millisecond)
	case "oneshot":
		oneshot(in, args)
		return
	case "early-exit":
		fmt.Fprintln(os.Stderr, "cannot start")
		os.Exit(7)
	case "ignore-end":
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
		defer time.Sleep(time.Hour)
	case "server":
		serveAndDie(ProcessConfig{Command: []string{os.Args[0], asWorker, "ignore-end"}, Pool: tool.Pool{Min: 1, Max: 1}})
		return
	case "module-server":
		serveAndDie(ProcessConfig{Module: args[0], Pool: tool.Pool{Min: 1, Max: 1}})
		return
	case "loud-start":
		fmt.Print(okReply)
		time.Sleep(time.Minute) // and reads nothing
	case "linger":
		defer time.Sleep(50 * time.Millisecond)
	case "ahead":
		ahead(in, args[0])
		return
	case "zombies":
		for range 3 {
			_ = exec.Command("/bin/true").Start()
		}
	}
	seen := 0
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		seen++
		answer(kind, args, string(line), seen)
	}
}

// answer answers request number seen.
func answer(kind string, args []string, line string, seen int) {
	switch kind {
	case "hang":
		fmt.Fprint(os.Stderr, "still\x1b[1m here\n")
		time.Sleep(time.Hour)
	case "crash":
		fmt.Fprint(os.Stderr, "out of\tluck")
		os.Exit(3)
	case "abort":
		_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
		time.Sleep(time.Hour)
	case "garbage":
		fmt.Println("Traceback (most recent call last):")
	case "raw":
		fmt.Print(args[0])
	case "flood":
		for {
			if _, err := os.Stdout.Write(bytes.Repeat([]byte("x"), 64<<10)); err != nil {
				return
			}
		}
	case "long":
		n, _ := strconv.Atoi(args[0])
		pad := n - len(`{"status":"OK","output_json":""}`)
		fmt.Print(`{"status":"OK","output_json":"`, strings.Repeat("x", pad), `"}`+"\n")
	case "twice":
		fmt.Print(okReply, okReply)
	case "later":
		fmt.Print(okReply)
		time.Sleep(20 * time.Millisecond)
		fmt.Print(okReply)
	case "close":
		_ = os.Stdout.Close()
		time.Sleep(time.Hour)
	case "close-exit":
		_ = os.Stdout.Close()
		time.Sleep(50 * time.Millisecond)
		os.Exit(9)
	case "reply-exit":
		fmt.Print(okReply)
		os.Exit(0)
	case "idle-exit":
		fmt.Print(okReply)
		time.Sleep(20 * time.Millisecond)
		os.Exit(4)
	case "grandchild", "orphan", "daemon":
		leave(kind, args)
	case "family":
		family(args)
	case "leak":
		fmt.Print(`{"status":"OK","output_json":`, strconv.Quote(fmt.Sprint(seen, " ", line)), `,"ds_state":{"delta":true,"slots":{"1":{"content_json":"seen`, seen, `"}}}}`+"\n")
	case "stray":
		stray(args, line, seen)
	case "echo", "ignore-end", "linger":
		fmt.Print(`{"status":"OK","output_json":`, strconv.Quote(strings.TrimSuffix(line, "\n")), "}\n")
	case "env":
		fmt.Print(`{"status":"OK","output_json":`, strconv.Quote(about()), "}\n")
	case "stderr":
		fmt.Fprint(os.Stderr, "secret of ", seen)
		time.Sleep(20 * time.Millisecond)
		if seen == 2 {
			os.Exit(5)
		}
		fmt.Print(okReply)
	case "slow":
		time.Sleep(20 * time.Millisecond)
		fmt.Print(okReply)
	default:
		fmt.Print(okReply)
	}
}

// once reports true to one process only.
func once(file string) bool {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL, 0o600)
	_ = f.Close() // nil, or nothing was written
	return err == nil
}

// stray answers, and the first time states one thing more some time after the answer.
func stray(args []string, line string, seen int) {
	time.Sleep(time.Millisecond)
	answer("echo", nil, line, seen)
	if seen == 1 && once(args[0]) {
		wait, _ := time.ParseDuration(args[1])
		time.Sleep(wait)
		fmt.Print(okReply)
	}
}

// ahead answers while it takes further requests, and once states one thing more.
func ahead(in *bufio.Reader, file string) {
	lines := make(chan string, 64)
	go func() {
		for seen := 1; ; seen++ {
			line, more := <-lines
			if !more {
				return
			}
			time.Sleep(time.Millisecond)
			answer("echo", nil, line, seen)
			if seen == 1 && once(file) {
				time.Sleep(500 * time.Microsecond) // the next request is taken by then
				fmt.Print(okReply)
			}
		}
	}()
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		lines <- line
	}
}

// serveAndDie is a server with one worker, whose number it prints.
func serveAndDie(cfg ProcessConfig) {
	cfg.Started = func(pid int) { fmt.Println(pid) }
	t := NewProcess(cfg)
	if err := t.Warm(); err != nil {
		fmt.Println(err)
	}
	time.Sleep(time.Hour)
}

// leave starts a process that holds stdout and outlives this one.
func leave(kind string, args []string) {
	child := exec.Command("/bin/sleep", "3600")
	child.Stdout, child.Stderr = os.Stdout, os.Stderr
	if kind == "daemon" {
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	}
	_ = child.Start()
	if len(args) > 0 {
		_ = os.WriteFile(args[0], []byte(strconv.Itoa(child.Process.Pid)), 0o644)
	}
	if kind == "grandchild" {
		time.Sleep(time.Hour)
	}
	os.Exit(6)
}

// family starts processes in its group, of which every second one ends at once and is not reaped,
// and then answers or does not.
func family(args []string) {
	fmt.Fprint(os.Stderr, "words")
	n, _ := strconv.Atoi(args[0])
	for i := range n {
		child := exec.Command("/bin/sleep", strconv.Itoa(i%2*3600))
		_ = child.Start()
	}
	if args[1] == "hang" {
		time.Sleep(time.Hour)
	}
	fmt.Print(okReply)
}

// about shows what a worker sees of its surroundings.
func about() string {
	dir, _ := os.Getwd()
	limits, _ := os.ReadFile("/proc/self/limits")
	return fmt.Sprint("dir ", dir, "\n", "pgid ", syscall.Getpgrp() == os.Getpid(), "\nenv ", strings.Join(os.Environ(), " "), "\n", string(limits))
}

// oneshot is a worker for one call: args state what it prints, to which code it exits.
func oneshot(in io.Reader, args []string) {
	all, _ := io.ReadAll(in)
	switch args[0] {
	case "echo":
		fmt.Print(`{"status":"OK","output_json":`, strconv.Quote(strings.TrimSuffix(string(all), "\n")), "}\n")
	case "print":
		fmt.Print(args[1])
		fmt.Fprint(os.Stderr, "words")
		code, _ := strconv.Atoi(args[2])
		os.Exit(code)
	case "long":
		answer("long", args[1:], "", 1)
	case "hang":
		time.Sleep(time.Hour)
	case "flood":
		answer("flood", nil, "", 1)
	case "daemon":
		fmt.Print(okReply)
		leave("orphan", nil)
	case "spin":
		for {
			continue
		}
	}
}
