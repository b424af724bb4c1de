package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"

	"trunkline/bench/internal/load"
)

// manyConns is the connection count of the goals that are about many clients.
const manyConns = 1024

// Server names as they stand in the table.
const (
	always        = "always"
	interval      = "interval"
	memory        = "memory"
	loopAlways    = "bare loop, always"
	loopEverysec  = "bare loop, everysec"
	redisAlways   = "redis, always"
	redisEverysec = "redis, everysec"
)

// bench is a run: the folder with all stores, the server binary, and every process that was started.
type bench struct {
	o        options
	dir      string
	binary   string
	servers  []*load.Server
	loadCPUs []int
	cpus     []int
	stores   int
	files    int
}

func newBench(o options) (*bench, error) {
	b := &bench{o: o}
	err := b.prepare()
	if err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

func (b *bench) prepare() (err error) {
	if b.o.pin {
		if b.cpus, b.loadCPUs, err = load.SplitCPUs(); err != nil {
			return err
		}
	}
	if b.dir, err = storeFolder(b.o.dir); err != nil {
		return err
	}
	b.binary, err = load.FindBinary(b.o.server, "./cmd/trunkline", b.dir)
	return err
}

// close ends every server that runs and removes what was written.
func (b *bench) close() {
	for _, s := range b.servers {
		if s.Alive() {
			s.Stop()
		}
	}
	if b.dir != "" {
		os.RemoveAll(b.dir)
	}
}

// cleanOnSignal ends the program on SIGINT or SIGTERM without leaving the stores behind. The servers go with it.
func (b *bench) cleanOnSignal() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	<-signals
	os.RemoveAll(b.dir)
	os.Exit(exitInterrupted)
}

// exitInterrupted is what a shell says of a program that SIGINT ended.
const exitInterrupted = 130

func (b *bench) launch(c load.Command) (*load.Server, error) {
	c.CPUs = b.cpus
	s, err := load.StartServer(c)
	if err == nil {
		b.servers = append(b.servers, s)
	}
	return s, err
}

// trunkline starts the server in a mode, with room for the load. dir is its store; settings come on top.
func (b *bench) trunkline(mode, dir string, settings ...string) (*load.Server, error) {
	all := append([]string{"store.mode=" + mode, "store.dir=" + dir, "kernel.loops=" + strconv.Itoa(b.o.loops),
		"kernel.max_connections=" + strconv.Itoa(2*manyConns), "kernel.max_processes=10000000", "kernel.max_envelopes=100000"}, settings...)
	return b.launch(load.Trunkline(b.binary, all...))
}

// newStore names a directory that is not there yet.
func (b *bench) newStore() string {
	b.stores++
	return filepath.Join(b.dir, "store-"+strconv.Itoa(b.stores))
}

// startPeer starts the bare loop: this program, as a process of its own.
func (b *bench) startPeer(name, mode string) (*load.Server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot find this program: %w", err)
	}
	b.files++
	args := []string{"-peer", mode, "-peer-file", filepath.Join(b.dir, "peer-"+strconv.Itoa(b.files))}
	return b.launch(load.Command{Name: name, Path: self, Args: args, Listening: load.PeerListening})
}

// redisPath returns the binary of redis-server, empty if redis is not measured.
func (b *bench) redisPath() (string, error) {
	switch b.o.redis {
	case "off":
		return "", nil
	case "auto":
		path, err := exec.LookPath("redis-server")
		if errors.Is(err, exec.ErrNotFound) {
			return "", nil
		}
		return path, err
	}
	return b.o.redis, nil
}

// startRedis starts redis with an append-only file and nothing else that writes.
func (b *bench) startRedis(path, name, fsync string) (*load.Server, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot find a port for redis: %w", err)
	}
	addr := ln.Addr().(*net.TCPAddr)
	ln.Close()
	b.files++
	dir := filepath.Join(b.dir, "redis-"+strconv.Itoa(b.files))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make a folder for redis: %w", err)
	}
	s, err := b.launch(load.Command{Name: name, Path: path, Listening: load.RedisReady, Args: []string{"--port", strconv.Itoa(addr.Port),
		"--bind", "127.0.0.1", "--save", "", "--appendonly", "yes", "--appendfsync", fsync, "--auto-aof-rewrite-percentage", "0",
		"--maxclients", strconv.Itoa(2 * manyConns), "--dir", dir}})
	if err == nil {
		s.Addr = addr.String()
	}
	return s, err
}

func (b *bench) config(addr string, p load.Protocol, tapes []*load.Tape, depth int) load.Config {
	return load.Config{Addr: addr, Protocol: p, Tapes: tapes, Depth: depth, Workers: b.o.workers, CPUs: b.loadCPUs, Spin: b.o.spin}
}

// disk measures the bare writes once.
func (b *bench) disk() ([]diskRow, error) {
	d := diskTimes{}
	err := d.measure(b.dir)
	return d.rows(), err
}
