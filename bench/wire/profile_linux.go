package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"trunkline/bench/internal/load"
)

var adminListening = regexp.MustCompile(`admin listening on (\S+)`)

// profile says where the server's time goes: for each hot method it takes a CPU profile of the server under the pipelined load,
// keeps it in dir and prints the functions at the top.
func (f *field) profile(dir string) error {
	m := adminListening.FindStringSubmatch(f.trunk.Output())
	if m == nil {
		return errors.New("cannot profile: the server names no admin address")
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for _, method := range methods {
		path := filepath.Join(dir, method+".pprof")
		if err := f.profileMethod(method, "http://"+m[1]+"/debug/pprof/profile?seconds=2", path); err != nil {
			return fmt.Errorf("cannot profile %s: %w", method, err)
		}
		top, err := exec.Command("go", "tool", "pprof", "-top", "-nodecount=40", path).Output()
		if err != nil {
			return fmt.Errorf("cannot read the profile of %s: %w", method, err)
		}
		fmt.Printf("\nprofile of %s, %d connections, %d in flight: %s\n%s", method, f.o.conns, f.o.depth, path, body(string(top)))
	}
	return nil
}

// body is pprof's table without the lines that name the machine's files.
func body(top string) string {
	_, table, _ := strings.Cut(top, "Duration:")
	return "Duration:" + table
}

func (f *field) profileMethod(method, url, path string) error {
	session, err := load.Start(load.Config{Addr: f.trunk.Addr, Protocol: load.Kernel,
		Tapes: f.tapes[method], Depth: f.o.depth, Workers: f.o.workers, CPUs: f.loadCPUs, Spin: f.o.spin})
	if err != nil {
		return err
	}
	time.Sleep(f.o.warmup)
	err = download(url, path)
	_, stopErr := session.Stop()
	return errors.Join(err, stopErr)
}

func download(url, path string) error {
	client := http.Client{Timeout: 20 * time.Second}
	res, err := client.Get(url)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, res.Status)
	}
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, res.Body)
	return errors.Join(err, out.Close())
}
