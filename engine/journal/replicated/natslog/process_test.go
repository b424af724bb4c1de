package natslog_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"trunkline/engine/journal"
	"trunkline/engine/journal/replicated/natslog"
	"trunkline/fuzz/kit"
	"trunkline/fuzz/rounds"
)

// serverVariable has the test binary run one server in place of the tests. It holds a process.
const serverVariable = "TRUNKLINE_NATSLOG_SERVER"

func TestMain(m *testing.M) {
	if p := os.Getenv(serverVariable); p != "" {
		fmt.Fprintln(os.Stderr, serve(p))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// process is a server in a process of its own, which can be killed.
type process struct {
	Name, Dir   string
	Port, Route int
	Routes      []int // ports of all
	cmd         *exec.Cmd
}

// serve runs a server until its process is killed, or its parent is.
func serve(text string) error {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // it ends with the parent
		os.Exit(1)
	}()
	var p process
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return err
	}
	o := &server.Options{
		ServerName: p.Name, Host: "127.0.0.1", Port: p.Port, JetStream: true, StoreDir: p.Dir, SyncAlways: true,
		NoSigs: true, NoLog: true, DisableJetStreamBanner: true,
		Cluster: server.ClusterOpts{Name: "processes", Host: "127.0.0.1", Port: p.Route, NoAdvertise: true, PoolSize: 1},
	}
	for _, port := range p.Routes {
		o.Routes = append(o.Routes, &url.URL{Scheme: "nats", Host: fmt.Sprint("127.0.0.1:", port)})
	}
	s, err := server.NewServer(o)
	if err != nil {
		return err
	}
	s.Start()
	s.WaitForShutdown()
	return nil
}

// start starts the process.
func (p *process) start(t *testing.T) {
	t.Helper()
	text, err := json.Marshal(p)
	must(t, err)
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), serverVariable+"="+string(text))
	p.cmd.Stderr = os.Stderr
	_, err = p.cmd.StdinPipe() // Wait closes it
	must(t, err)
	must(t, kit.Start(p.cmd))
}

// kill kills it, and nothing of it runs any more when it returns.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may be gone already
	_ = p.cmd.Wait()
}

// processes starts three of them and connects to all.
func processes(t *testing.T) ([]*process, *nats.Conn) {
	t.Helper()
	var ports []int
	for range 6 {
		_, text, err := net.SplitHostPort(kit.Reserve(t))
		must(t, err)
		port, err := strconv.Atoi(text)
		must(t, err)
		ports = append(ports, port)
	}
	var all []*process
	addresses := ""
	for i := range 3 {
		all = append(all, &process{Name: fmt.Sprint("p", i), Dir: t.TempDir(), Port: ports[i], Route: ports[3+i], Routes: ports[3:]})
		all[i].start(t)
		t.Cleanup(all[i].kill)
		addresses += fmt.Sprintf("nats://127.0.0.1:%d,", ports[i])
	}
	nc, err := nats.Connect(addresses[:len(addresses)-1], nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond))
	must(t, err)
	t.Cleanup(nc.Close)
	return all, nc
}

// eventually repeats what servers may refuse while they elect a leader.
func eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("there is still not %s: %v", what, err)
		}
	}
}

// TestKillNine: the server that leads the stream, or all of them, are killed while an owner
// appends. What was acknowledged is in the log, at its index and once.
func TestKillNine(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for elections")
	}
	all, nc := processes(t)
	l := &ledger{acked: make(map[journal.Index]string)}
	rng := rand.New(rand.NewPCG(5, 6))
	for round := range rounds.Few(1, 1) {
		j := own(t, nc, l)
		done := make(chan struct{})
		var writers sync.WaitGroup
		for w := range 4 {
			seed := uint64(round*4 + w)
			writers.Go(func() { l.write(t, j, rand.New(rand.NewPCG(seed, 7)), done) })
		}
		time.Sleep(300 * time.Millisecond)
		victims := all
		if round%2 == 0 {
			victims = []*process{leader(t, nc, all)}
		}
		for _, p := range victims {
			p.kill()
		}
		time.Sleep(time.Duration(rng.IntN(500)) * time.Millisecond)
		for _, p := range victims {
			p.start(t)
		}
		time.Sleep(time.Second)
		close(done)
		writers.Wait()
		_ = j.Close() // it returns why it has ended, if so
	}
	j := own(t, nc, l)
	t.Logf("%d of %d records were acknowledged", len(l.acked), l.count)
	must(t, j.Close())
}

// own takes the log over and checks it.
func own(t *testing.T, nc *nats.Conn, l *ledger) (j *journal.Log) {
	t.Helper()
	eventually(t, "an owner", func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		log, err := natslog.Open(ctx, natslog.Config{Conn: nc, Name: "killed", AnswerWithin: 2 * time.Second})
		if err != nil {
			return err
		}
		var state map[journal.Index]string
		if j, state, err = claim(t, log, 30*time.Second); err == nil {
			l.check(t, state)
		}
		return err
	})
	return j
}

// leader returns the process that leads the stream.
func leader(t *testing.T, nc *nats.Conn, all []*process) (found *process) {
	t.Helper()
	js, err := jetstream.New(nc)
	must(t, err)
	eventually(t, "a leader", func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		s, err := js.Stream(ctx, "killed")
		if err != nil {
			return err
		}
		for _, p := range all {
			if p.Name == s.CachedInfo().Cluster.Leader {
				found = p
				return nil
			}
		}
		return fmt.Errorf("%q leads", s.CachedInfo().Cluster.Leader)
	})
	return found
}
