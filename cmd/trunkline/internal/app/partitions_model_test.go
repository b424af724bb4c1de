package app

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tinylib/msgp/msgp"
	"pgregory.net/rapid"

	"trunkline/cmd/trunkline/internal/config"
	"trunkline/codec/wire"
	"trunkline/handlers/ipc/ipcclient"
)

// partitionClients is a cluster as its clients know it, one of each node.
type partitionClients struct {
	t       *rapid.T
	rig     *partitionsRig
	clients []*ipcclient.Conn
	user    string           // of all processes of the round
	order   []string         // its processes, oldest first
	created int              // requests to create one
	calls   map[string]int64 // llm_calls
	ended   map[string]bool
	made    []msgp.Raw // envelopes
}

// any returns the client of some node.
func (m *partitionClients) any() *ipcclient.Conn {
	return m.clients[rapid.IntRange(0, len(m.clients)-1).Draw(m.t, "node")]
}

// pid draws a process, which may not exist.
func (m *partitionClients) pid() string {
	return fmt.Sprint(m.user, "-", rapid.IntRange(0, 30).Draw(m.t, "pid"))
}

// code compares the code of an error, 0 for none.
func (m *partitionClients) code(what string, err error, want wire.Code) {
	var said *ipcclient.Error
	got := wire.OK
	if errors.As(err, &said) {
		got = said.Code
	} else if err != nil {
		m.t.Fatalf("%s: %v", what, err)
	}
	if got != want {
		m.t.Fatalf("%s: %v (%v), want %v", what, got, err, want)
	}
}

// step makes one request. Time passes before it, so that processes have an order.
func (m *partitionClients) step() {
	m.rig.advance(time.Millisecond)
	ctx, c := m.rig.t.Context(), m.any()
	switch rapid.IntRange(0, 9).Draw(m.t, "request") {
	case 0, 1, 2:
		pid := m.pid()
		if m.created++; m.created%10 == 0 { // a partition refuses the eleventh of a user within 10 s
			m.rig.advance(time.Minute)
		}
		_, err := c.CreateProcess(ctx, ipcclient.CreateProcess{PID: pid, UserID: m.user})
		if slices.Contains(m.order, pid) {
			m.code("CreateProcess "+pid, err, wire.FailedPrecondition)
			return
		}
		m.code("CreateProcess "+pid, err, wire.OK)
		m.order = append(m.order, pid)
	case 3, 4:
		pid := m.pid()
		u, err := c.RecordUsage(ctx, ipcclient.RecordUsage{PID: pid, LLMCalls: 1})
		if !slices.Contains(m.order, pid) {
			m.code("RecordUsage "+pid, err, wire.NotFound)
			return
		}
		m.code("RecordUsage "+pid, err, wire.OK)
		if m.calls[pid]++; u.LLMCalls != m.calls[pid] {
			m.t.Fatalf("%s has %d calls, want %d", pid, u.LLMCalls, m.calls[pid])
		}
	case 5:
		pid := m.pid()
		p, err := c.TerminateProcess(ctx, ipcclient.TerminateProcess{PID: pid})
		if !slices.Contains(m.order, pid) {
			m.code("TerminateProcess "+pid, err, wire.NotFound)
			return
		}
		if m.code("TerminateProcess "+pid, err, wire.OK); p.State != "TERMINATED" {
			m.t.Fatalf("%s is %s", pid, p.State)
		}
		m.ended[pid] = true
	case 6:
		m.pages(rapid.SampledFrom([]int64{1, 2, 3, 7, 100}).Draw(m.t, "limit"), "")
		m.pages(2, "TERMINATED")
	case 7:
		e, err := c.CreateEnvelope(ctx, ipcclient.CreateEnvelope{RawInput: "hi", UserID: m.user})
		m.code("CreateEnvelope", err, wire.OK)
		m.made = append(m.made, e)
	case 8:
		if len(m.made) > 0 {
			e, err := c.CloneEnvelope(ctx, rapid.SampledFrom(m.made).Draw(m.t, "envelope"))
			m.code("CloneEnvelope", err, wire.OK)
			m.made = append(m.made, e)
		}
		for _, e := range m.made {
			_, err := m.any().UpdateEnvelope(ctx, e)
			m.code("UpdateEnvelope", err, wire.OK)
		}
	case 9:
		a, err := c.Query(ctx, ipcclient.Query{QueryType: "echo", Payload: strconv.Quote(m.user), TimeoutMS: 30_000})
		m.code("Query", err, wire.OK)
		if !bytes.Equal(a.Result, msgp.AppendString(nil, m.user)) {
			m.t.Fatalf("the answer to %s is %q", m.user, a.Result)
		}
	}
}

// pages lists the processes of the round page by page, each at some node.
func (m *partitionClients) pages(limit int64, state string) {
	var got []string
	in := ipcclient.ListProcesses{UserID: m.user, State: state, Limit: limit}
	for {
		page, err := m.any().ListProcesses(m.rig.t.Context(), in)
		m.code("ListProcesses", err, wire.OK)
		for _, p := range page.Processes {
			got = append(got, p.PID)
		}
		if in.Cursor = page.NextCursor; in.Cursor == nil {
			break
		}
	}
	want := slices.DeleteFunc(slices.Clone(m.order), func(pid string) bool { return state != "" && !m.ended[pid] })
	if !slices.Equal(got, want) {
		m.t.Fatalf("in pages of %d: %v, want %v", limit, got, want)
	}
}

// TestPartitionsAsOneServer: whatever clients of three nodes ask three partitions of the program,
// they see one server. Lists have each process once, oldest first, in pages of every size; what a
// partition names itself is found again; each query has its answer.
func TestPartitionsAsOneServer(t *testing.T) {
	rig := newPartitionsRig(t, nil)
	var clients []*ipcclient.Conn
	for node := range rigNodes {
		clients = append(clients, rig.client(node))
	}
	h, err := clients[0].RegisterQueryHandler(t.Context(), ipcclient.RegisterQueryHandler{QueryTypes: []string{"echo"}})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for q := range h.All(t.Context()) {
			_, _ = clients[0].Reply(t.Context(), ipcclient.Reply{QueryID: q.QueryID, Success: true, Result: q.Payload})
		}
	}()
	round := 0
	rapid.Check(t, func(rt *rapid.T) {
		round++
		m := &partitionClients{t: rt, rig: rig, clients: clients, user: fmt.Sprint("u", round), calls: map[string]int64{}, ended: map[string]bool{}}
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			m.step()
		}
		m.pages(1, "")
		rig.advance(time.Minute) // the windows of rates are over
	})
}

// Variables of the environment that have the settings of a server for a transcript, and its clock
// where that is not the one of the rig.
const (
	envTranscript = "TRUNKLINE_TRANSCRIPT_SERVER"
	envClock      = "TRUNKLINE_TRANSCRIPT_CLOCK"
)

// TestTranscriptServer serves the transcripts of handlers/ipc/conformance, which start this program
// and give it orders, one on each line, that it acknowledges.
func TestTranscriptServer(t *testing.T) {
	asked, serves := os.LookupEnv(envTranscript)
	if !serves {
		t.Skip("the transcripts of handlers/ipc/conformance have this test serve")
	}
	frame := 0
	var set []string
	for kv := range strings.FieldsSeq(asked) {
		if n, _ := fmt.Sscanf(kv, "max_frame_bytes=%d", &frame); n == 0 {
			set = append(set, "kernel."+kv)
		}
	}
	r := newPartitionsRig(t, func(c *config.Config) {
		c.Kernel.MaxFrameBytes = cmp.Or(frame, c.Kernel.MaxFrameBytes) // also smaller than the program takes it
		if os.Getenv(envClock) == "real" {
			c.Kernel.Now = nil
		}
	}, set...)
	for node := range rigNodes {
		fmt.Println("listening", r.addr(node))
	}
	var draining sync.WaitGroup
	defer draining.Wait()
	for in := bufio.NewScanner(os.Stdin); in.Scan(); fmt.Println("done") {
		var ns int64
		switch order := in.Text(); {
		case order == "sweep":
			r.sweep()
		case order == "drain":
			draining.Go(r.drain)
		default:
			if _, err := fmt.Sscanf(order, "advance %d", &ns); err != nil {
				t.Fatalf("order %q: %v", order, err)
			}
			r.advance(time.Duration(ns))
		}
	}
}
