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

// profile says where the server's time goes in mode always, 1024 requests in flight: it keeps CPU profiles of RecordUsage and prints
// the functions at the top.
func (b *bench) profile() error {
	if err := os.MkdirAll(b.o.profile, 0o777); err != nil {
		return err
	}
	dir := b.newStore()
	defer os.RemoveAll(dir)
	s, err := b.trunkline(always, dir)
	if err != nil {
		return err
	}
	if err := prepare(s.Addr, b.o.rows); err != nil {
		return err
	}
	m := adminListening.FindStringSubmatch(s.Output())
	if m == nil {
		return errors.New("cannot profile: the server names no admin address")
	}
	for _, at := range thousand() {
		path := filepath.Join(b.o.profile, fmt.Sprintf("%s-%dx%d.pprof", recordUsage, at.conns, at.depth))
		cfg := b.config(s.Addr, load.Kernel, tapesOf(recordUsage, span{0, b.o.rows}, at.conns, nil), at.depth)
		if err := profileLoad(cfg, "http://"+m[1]+"/debug/pprof/profile?seconds=3", path, b.o.warmup); err != nil {
			return fmt.Errorf("cannot profile %d×%d: %w", at.conns, at.depth, err)
		}
		top, err := exec.Command("go", "tool", "pprof", "-top", "-nodecount=40", path).Output()
		if err != nil {
			return fmt.Errorf("cannot read the profile: %w", err)
		}
		_, table, _ := strings.Cut(string(top), "Duration:") // what is before it names the machine's files
		fmt.Printf("\nprofile of %s, mode always, %d connections, %d in flight: %s\nDuration:%s", recordUsage, at.conns, at.depth, path, table)
	}
	return nil
}

func profileLoad(cfg load.Config, url, path string, warmup time.Duration) error {
	session, err := load.Start(cfg)
	if err != nil {
		return err
	}
	time.Sleep(warmup)
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
